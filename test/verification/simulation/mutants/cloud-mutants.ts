import { change, type Mutant } from './mutant.ts'

/** Mutants of the cloud: database, answers, grants, events. */
export const CLOUD_MUTANTS: readonly Mutant[] = [
  {
    name: 'hold-not-noticed',
    what: 'The cloud raises no exception for goods that were released while they were on hold.',
    changes: [change('cloud/protection/evidence/apply-outcome.js', "await raise('released_on_hold');", 'void 0;')],
    faults: ['partition'],
    liveness: true,
  },
  {
    name: 'recall-not-noticed',
    what: 'The cloud raises no exception for goods that were released while they were recalled.',
    changes: [change('cloud/protection/evidence/apply-outcome.js', '(await wasRecalled(scope, each, atMs))', 'false')],
    faults: ['partition'],
    liveness: true,
  },
  {
    name: 'recall-ignored',
    what: 'The cloud grants tokens for recalled goods.',
    changes: [change('cloud/protection/items/recalls.js', 'return this.stop(goods) ? RECALLED : {};', 'return {};')],
  },
  {
    name: 'staff-release-not-counted',
    what: 'The cloud does not mark the right used that an operator used offline without a receipt.',
    changes: [
      change(
        'cloud/protection/evidence/apply-claim.js',
        "if (claim.source === 'item')\n        return applyItemClaim(scope, source, claim);",
        "if (claim.source === 'item')\n        return true;",
      ),
    ],
  },
  {
    name: 'answer-before-commit',
    what: 'The cloud answers before the transaction is durable.',
    changes: [
      change(
        'cloud/platform/persistence/group-commit.js',
        'done.push({ job, value: await job.work() });',
        'const value = await job.work();\njob.resolve(value);\ndone.push({ job, value });\nawait new Promise((resolve) => setImmediate(resolve));',
      ),
    ],
  },
  {
    name: 'outbox-after-commit',
    what: 'The cloud writes events after the transaction that causes them.',
    changes: [
      change(
        'cloud/platform/operations/perform.js',
        'await writeOutbox(db, request, opened.events, nowMs, services);\n            if (identity)',
        'setImmediate(() => void database.write((later) => writeOutbox(later, request, opened.events, nowMs, services)).catch(() => undefined));\n            if (identity)',
      ),
    ],
  },
  {
    name: 'idempotency-not-stored',
    what: 'The cloud does not store the answer of an Idempotency-Key.',
    changes: [
      change(
        'cloud/platform/operations/idempotency.js',
        'await insertResponse(db, {',
        'if (status === RUNNING) await insertResponse(db, {',
      ),
    ],
  },
  {
    name: 'idempotency-across-tenants',
    what: 'Idempotency-Keys are shared between tenants.',
    changes: [change('cloud/platform/operations/idempotency.js', "    .where('tenant', '=', p.tenant)\n", '')],
  },
  {
    name: 'granted-unpaid',
    what: 'A purchase with a pending payment counts as paid.',
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
    what: 'A cancelled purchase counts as paid.',
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
    what: 'The cloud leases a release right that another device already holds.',
    changes: [
      change('cloud/protection/leases/leases.js', 'if (isClaimedByCloud(row) || row.voided_ms !== null)', 'if (row)'),
    ],
  },
  {
    name: 'failed-release-frees-used-right',
    what: 'A failed release frees a right that another redemption has used.',
    changes: [
      change(
        'policy/authorization-state.js',
        'return { effective, failures',
        'return { effective: redemptions.length > notFailed.length ? null : effective, failures',
      ),
    ],
  },
  {
    name: 'paid-after-expiry',
    what: 'An expired checkout can still be paid.',
    changes: [
      change(
        'cloud/sales/checkout/operations.js',
        "if ((purchase.status !== 'PENDING_PAYMENT' && purchase.status !== 'CREATED') || isLate) {",
        'if (isLate) {',
      ),
    ],
  },
  {
    name: 'item-change-without-number',
    what: 'A change of an item gets no sequence number, so gates do not receive it.',
    changes: [change('cloud/protection/items/item-queries.js', 'item_seq: seq,', '')],
  },
  {
    name: 'webhooks-without-schedule',
    what: 'The cloud retries a failed webhook at once.',
    changes: [
      change(
        'cloud/platform/webhooks/dispatcher.js',
        'const SCHEDULE_MS = [0, 1 * MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS];',
        'const SCHEDULE_MS = [0, 0, 0, 0];',
      ),
    ],
  },
  {
    name: 'webhook-id-per-attempt',
    what: 'Each attempt of a webhook has its own id.',
    changes: [change('cloud/platform/webhooks/secret.js', "'webhook-id': id,", "'webhook-id': `${id}-${sentS}`,")],
  },
  {
    name: 'verifiers-with-revoked-key',
    what: 'After a revocation the cloud changes the store key and leaves the PIN verifiers under the old key.',
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
