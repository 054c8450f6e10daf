import { change, type Mutant } from '../simulation/mutants/mutant.ts'
import type { Rule } from './judge.ts'

/** A bug that an API may have, and the rules of the fuzzer of which one finds it. */
export interface FuzzMutant extends Mutant {
  readonly rules: readonly Rule[]
}

/**
 * The fuzzer is itself tested by these, as the simulation is by its own (verification/simulation/mutants): each is planted in the code as
 * it is built, in a process of its own, and must be found.
 */
export const FUZZ_MUTANTS: readonly FuzzMutant[] = [
  {
    name: 'unknown-field-taken',
    what: 'the schema of one request ignores fields that it does not know',
    rules: ['unknown-field'],
    changes: [
      change(
        'cloud/assistance/operations.js',
        'request: z.strictObject({ storeId: Id, name: text(80)',
        'request: z.object({ storeId: Id, name: text(80)',
      ),
    ],
  },
  {
    name: 'list-of-all-tenants',
    what: 'a list lacks the filter by tenant',
    rules: ['foreign-data'],
    changes: [
      change(
        'cloud/accounts/audit-queries.js',
        "db.selectFrom('audit_entry').selectAll().where('tenant', '=', tenant);",
        "db.selectFrom('audit_entry').selectAll().where('tenant', 'is not', null);",
      ),
    ],
  },
  {
    name: 'store-of-another-tenant',
    what: 'a store is found by its id alone',
    rules: ['foreign-data', 'foreign-id'],
    changes: [change('cloud/stores/own-store.js', 'if (!store || !maySee(caller, store))', 'if (!store)')],
  },
  {
    name: 'foreign-id-told-apart',
    what: 'an id of another tenant is refused in other words than an unknown one',
    rules: ['foreign-id'],
    changes: [
      change(
        'cloud/stores/own-store.js',
        "if (!store || !maySee(caller, store))\n        throw notFound('store');",
        "if (!store)\n        throw notFound('store');\n    if (!maySee(caller, store))\n        throw notFound('store of yours');",
      ),
    ],
  },
  {
    name: 'unhandled-exception',
    what: 'one operation throws for a text that is no regular expression',
    rules: ['server-error'],
    changes: [
      change(
        'cloud/catalogue/search.js',
        'const [rarest, ...others] = await byRarity(',
        'void new RegExp(q);\n    const [rarest, ...others] = await byRarity(',
      ),
    ],
  },
  {
    name: 'no-package-of-the-account',
    what: 'the package of the account is not checked',
    rules: ['package'],
    changes: [change('cloud/operations/perform.js', '    checkAccountPackage(operation, caller);\n', '')],
  },
  {
    name: 'no-package-of-the-store',
    what: 'the package of the store is not checked',
    rules: ['package'],
    changes: [
      change(
        'cloud/stores/own-store.js',
        '    if (needsPackage(call.operation, caller.mode) &&',
        '    if (false && needsPackage(call.operation, caller.mode) &&',
      ),
    ],
  },
  {
    name: 'any-kind-of-key',
    what: 'operations can be called with every kind of key',
    rules: ['key-kind'],
    changes: [
      change(
        'cloud/http/api.js',
        'if (operation.callers.includes(caller.kind))',
        "if (operation.callers.includes(caller.kind) || caller.kind === 'publishable')",
      ),
    ],
  },
  {
    name: 'key-without-its-end',
    what: 'keys are recognised by their beginning',
    rules: ['authentication'],
    changes: [
      change(
        'cloud/http/authentication.js',
        '/^Bearer +(\\S+)$/i.exec(header)?.[1]',
        '/^Bearer +(\\S+)/i.exec(header)?.[1]',
      ),
    ],
  },
  {
    name: 'answer-with-a-column',
    what: 'an answer holds a column that its schema does not name',
    rules: ['answer-schema'],
    changes: [
      change('cloud/assistance/operations.js', 'zoneId: row.zone_id,', 'tenant: row.tenant, zoneId: row.zone_id,'),
    ],
  },
]
