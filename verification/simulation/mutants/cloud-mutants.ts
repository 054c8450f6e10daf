import { change, type Mutant } from './mutant.ts'

/** Bugs of the cloud: its database, its answers, what it grants and tells. */
export const CLOUD_MUTANTS: readonly Mutant[] = [
  {
    name: 'answer-before-commit',
    what: 'a caller is answered before the transaction is durable',
    changes: [
      change(
        'cloud/persistence/group-commit.js',
        'done.push({ job, value: await job.work() });',
        'const value = await job.work();\njob.resolve(value);\ndone.push({ job, value });\nawait new Promise((resolve) => setImmediate(resolve));',
      ),
    ],
  },
  {
    name: 'outbox-after-commit',
    what: 'events are written after the transaction that they belong to',
    changes: [
      change(
        'cloud/operations/perform.js',
        'await writeOutbox(db, request, opened.events, nowMs, services);\n            if (identity)',
        'setImmediate(() => void database.write((later) => writeOutbox(later, request, opened.events, nowMs, services)).catch(() => undefined));\n            if (identity)',
      ),
    ],
  },
  {
    name: 'idempotency-not-kept',
    what: 'the answer under an Idempotency-Key is not kept',
    changes: [
      change(
        'cloud/operations/idempotency.js',
        'await insertResponse(db, {',
        'if (status === RUNNING) await insertResponse(db, {',
      ),
    ],
  },
  {
    name: 'idempotency-across-tenants',
    what: 'Idempotency-Keys are not scoped to the tenant',
    changes: [change('cloud/operations/idempotency.js', "    .where('tenant', '=', p.tenant)\n", '')],
  },
  {
    name: 'granted-unpaid',
    what: 'a purchase counts as paid while its payment is pending',
    changes: [
      change(
        'cloud/protection/authorize/item-facts.js',
        "return purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED';",
        "return purchase.status !== 'CANCELLED';",
      ),
    ],
  },
  {
    name: 'granted-after-cancel',
    what: 'a cancelled purchase still counts as paid',
    changes: [
      change(
        'cloud/protection/authorize/item-facts.js',
        "return purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED';",
        "return ['SUCCESS', 'UNLOADED', 'CANCELLED'].includes(purchase.status);",
      ),
    ],
  },
  {
    name: 'lease-not-exclusive',
    what: 'a unit that one device holds a token for is lent to another as well',
    changes: [
      change('cloud/protection/leases/leases.js', 'if (row.agent_id === null || row.voided_ms !== null)', 'if (row)'),
    ],
  },
  {
    name: 'freed-though-released',
    what: 'a failed release frees a unit that another one has released',
    changes: [
      change(
        'policy/redemption-merge.js',
        'return { effective, failures',
        'return { effective: redemptions.length > notFailed.length ? null : effective, failures',
      ),
    ],
  },
  {
    name: 'paid-after-end',
    what: 'a checkout that has ended can still be paid',
    changes: [
      change(
        'cloud/scan-and-go/operations.js',
        "if ((purchase.status !== 'PENDING_PAYMENT' && purchase.status !== 'CREATED') || isLate) {",
        'if (isLate) {',
      ),
    ],
  },
  {
    name: 'items-without-numbers',
    what: 'a change of an item gets no number of its own, so gates are not told',
    changes: [change('cloud/protection/items/item-queries.js', 'item_seq: seq,', '')],
  },
  {
    name: 'webhooks-without-schedule',
    what: 'a webhook that failed is posted again at once',
    changes: [
      change(
        'cloud/webhooks/record.js',
        'export const SCHEDULE_MS = [0, 1 * MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS];',
        'export const SCHEDULE_MS = [0, 0, 0, 0];',
      ),
    ],
  },
  {
    name: 'webhooks-under-new-ids',
    what: 'each attempt has an id of its own',
    changes: [change('cloud/webhooks/signatures.js', "'webhook-id': id,", "'webhook-id': `${id}-${sentS}`,")],
  },
  {
    name: 'verifiers-of-the-former-key',
    what: 'the cloud replaces the store key when an agent is revoked, and leaves the verifiers under the former one',
    changes: [
      change(
        'cloud/protection/operators/store-keys.js',
        'for (const chunk of insertChunks(rows))',
        'for (const chunk of [])',
      ),
    ],
    faults: ['enrol'],
  },
]
