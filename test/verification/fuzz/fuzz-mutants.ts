import { change, type Mutant } from '../simulation/mutants/mutant.ts'
import type { Rule } from './judge.ts'

/** A mutant of the API. At least one of `rules` must find the mutant. */
export interface FuzzMutant extends Mutant {
  readonly rules: readonly Rule[]
}

/**
 * Mutants that test the fuzzer. Each mutant runs in its own process, with one change in the built code. The fuzzer must
 * find all of them.
 */
export const FUZZ_MUTANTS: readonly FuzzMutant[] = [
  {
    name: 'unknown-field-accepted',
    what: 'A request schema ignores unknown fields.',
    rules: ['unknown-field'],
    changes: [
      change(
        'cloud/shop/assistance/operations.js',
        'request: z.strictObject({ storeId: Id, name: text(80)',
        'request: z.object({ storeId: Id, name: text(80)',
      ),
    ],
  },
  {
    name: 'list-of-all-tenants',
    what: 'A list has no tenant filter.',
    rules: ['foreign-data'],
    changes: [
      change(
        'cloud/platform/accounts/audit-operations.js',
        "db.selectFrom('audit_entry').selectAll().where('tenant', '=', tenant);",
        "db.selectFrom('audit_entry').selectAll().where('tenant', 'is not', null);",
      ),
    ],
  },
  {
    name: 'store-of-another-tenant',
    what: 'The cloud finds a store by its id alone, without the tenant.',
    rules: ['foreign-data', 'foreign-id'],
    changes: [change('cloud/platform/stores/own-store.js', 'if (!store || !maySee(caller, store))', 'if (!store)')],
  },
  {
    name: 'foreign-id-distinguishable',
    what: 'The error for an id of another tenant differs from that of an unknown id.',
    rules: ['foreign-id'],
    changes: [
      change(
        'cloud/platform/stores/own-store.js',
        "if (!store || !maySee(caller, store))\n        throw notFound('store');",
        "if (!store)\n        throw notFound('store');\n    if (!maySee(caller, store))\n        throw notFound('store of yours');",
      ),
    ],
  },
  {
    name: 'unhandled-exception',
    what: 'An operation throws if a text is not a valid regular expression.',
    rules: ['server-error'],
    changes: [
      change(
        'cloud/shop/catalogue/search.js',
        'const documents = new Documents(db, storeId);',
        'void new RegExp(q);\n    const documents = new Documents(db, storeId);',
      ),
    ],
  },
  {
    name: 'account-package-not-checked',
    what: 'The cloud does not check the package of the account.',
    rules: ['package'],
    changes: [change('cloud/platform/operations/perform.js', '    checkAccountPackage(operation, caller);\n', '')],
  },
  {
    name: 'store-package-not-checked',
    what: 'The cloud does not check the package of the store.',
    rules: ['package'],
    changes: [
      change(
        'cloud/platform/stores/own-store.js',
        '    if (needsPackage(call.operation, caller.mode) &&',
        '    if (false && needsPackage(call.operation, caller.mode) &&',
      ),
    ],
  },
  {
    name: 'key-kind-not-checked',
    what: 'A publishable key can call every operation.',
    rules: ['key-kind'],
    changes: [
      change(
        'cloud/service/http/pick-caller.js',
        'operation.callers.includes(caller.kind);',
        "(operation.callers.includes(caller.kind) || caller.kind === 'publishable');",
      ),
    ],
  },
  {
    name: 'key-with-suffix-accepted',
    what: 'The cloud accepts a key with additional text after it.',
    rules: ['authentication'],
    changes: [
      change(
        'cloud/service/http/authentication.js',
        '/^Bearer +(\\S+)$/i.exec(header)?.[1]',
        '/^Bearer +(\\S+)/i.exec(header)?.[1]',
      ),
    ],
  },
  {
    name: 'undeclared-column-in-answer',
    what: 'An answer contains a column that its schema does not declare.',
    rules: ['answer-schema'],
    changes: [
      change('cloud/shop/assistance/operations.js', 'zoneId: row.zone_id,', 'tenant: row.tenant, zoneId: row.zone_id,'),
    ],
  },
]
