import type { Trouble } from './troubles.ts'

/**
 * Bugs that this kind of system has had, each as the change of a line or two in the code as it is built. The simulation is
 * itself tested by them: planted one at a time, from outside, each must be found. A change whose text is no
 * longer there, or there twice, is refused, so that the bank cannot go stale unnoticed.
 */
export interface Bug {
  readonly name: string
  /** What somebody would have done wrong. */
  readonly what: string
  readonly changes: readonly Change[]
  /** Found only where trouble lasts longer. */
  readonly liveness?: true
  /** Hunted in worlds with these alone: few have the rare ones by themselves. */
  readonly troubles?: readonly Trouble[]
}

export interface Change {
  /** Below the folder of the build. */
  readonly file: string
  readonly find: string
  readonly put: string
}

const change = (file: string, find: string, put: string): Change => ({ file, find, put })

/** Every bug of the bank. */
export const BUGS: readonly Bug[] = [
  {
    name: 'ledger-not-flushed',
    what: 'the ledger is opened with synchronous=NORMAL',
    changes: [change('edge-agent/ledger/database.js', "db.pragma('synchronous = FULL')", "db.pragma('synchronous = NORMAL')"), change('edge-agent/ledger/database.js', '{ simple: true }) === 2', '{ simple: true }) === 1')],
  },
  {
    name: 'cloud-not-flushed',
    what: 'the cloud’s database is opened with synchronous=NORMAL',
    changes: [change('cloud/persistence/sqlite.js', "db.pragma('synchronous = FULL')", "db.pragma('synchronous = NORMAL')"), change('cloud/persistence/sqlite.js', '{ simple: true }) === 2', '{ simple: true }) === 1')],
  },
  {
    name: 'release-before-ledger',
    what: 'the device moves before the claim is durable',
    changes: [
      change('edge-agent/decisions/authorize.js', 'let told;', 'let told;\nconst done = await actuate(redemptionId, ask);'),
      change('edge-agent/decisions/authorize.js', 'const done = openAlready(ask) ?? (await actuate(redemptionId, ask));', ''),
    ],
  },
  {
    name: 'release-again-at-boot',
    what: 'claims without outcome are commanded once more after a restart',
    changes: [
      change('edge-agent/runtime.js', 'const recovered = recover(', 'const unfinished = ledger.claims.open();\nconst recovered = recover('),
      change('edge-agent/runtime.js', 'link.start();', "link.start();\nfor (const claim of unfinished) void execute(claim.device_id, { kind: 'release' }, new AbortController().signal);"),
    ],
  },
  {
    name: 'no-unique-claim',
    what: 'a right that was used and confirmed may be claimed again',
    changes: [change('edge-agent/ledger/claims.js', 'if (!row)\n            return 0;', "if (!row || row.state === 'confirmed')\n            return (row?.attempt ?? -1) + 1;")],
  },
  {
    name: 'nonces-forgotten-by-wall-clock',
    what: 'used nonces are cleared away by the wall clock, and no floor is kept',
    changes: [
      change('edge-agent/housekeeping.js', 'const HOUSEKEEPING_MS = 600_000;', 'const HOUSEKEEPING_MS = 20_000;'),
      change('edge-agent/runtime.js', 'keepTidy({ ledger, clock, ', 'keepTidy({ ledger, clock: { now: () => ({ nowMs: platform.clock.wall() }) }, '),
      change('edge-agent/ledger/claims.js', "writeMark.run('floor', String(before));", ''),
    ],
  },
  {
    name: 'floor-by-wall-clock',
    what: 'the floor below which tokens are dead is raised by the wall clock',
    changes: [
      change('edge-agent/housekeeping.js', 'const HOUSEKEEPING_MS = 600_000;', 'const HOUSEKEEPING_MS = 20_000;'),
      change('edge-agent/runtime.js', 'keepTidy({ ledger, clock, ', 'keepTidy({ ledger, clock: { now: () => ({ nowMs: platform.clock.wall() }) }, '),
    ],
  },
  {
    name: 'done-when-published',
    what: 'a row of the journal is done when it was handed to the network (PUBACK), not when the cloud has signed for it',
    changes: [change('edge-agent/link/outbox.js', 'return last && { batch', 'if (last) ledger.commits.now(() => ledger.journal.acknowledge(last.seq, last.hash));\nreturn last && { batch')],
  },
  {
    name: 'never-sent-again',
    what: 'a batch that was published and lost is not sent again',
    changes: [change('edge-agent/link/sender.js', 'later(() => {\n            parts.onPublished(false);\n            viaHttp();\n        });', '')],
  },
  {
    name: 'numbers-not-taken-back',
    what: 'after a transaction was undone the journal goes on with the next number',
    changes: [change('edge-agent/ledger/ledger.js', 'journal.reload();', '')],
  },
  {
    name: 'go-on-after-io-error',
    what: 'an I/O error of the disk is taken for an ordinary failure, and the process goes on',
    changes: [change('edge-agent/ledger/commit.js', '(IOERR|CORRUPT', '(CORRUPT')],
  },
  {
    name: 'commit-error-ignored',
    what: 'a commit that failed is taken for done',
    changes: [change('edge-agent/ledger/commit.js', 'commit.run();', "try { commit.run(); } catch { if (db.inTransaction) db.exec('ROLLBACK'); }")],
  },
  {
    name: 'outcome-not-recovered',
    what: 'claims that a crash left without outcome stay so for ever',
    changes: [change('edge-agent/ledger/recovery.js', 'if (open.length === 0)', 'if (open.length >= 0)')],
  },
  {
    name: 'ended-token-accepted',
    what: 'a token’s end is not looked at',
    changes: [change('policy/documents/signed-document.js', "return refuse('expired', `expired ${Math.round(now - expires)} s ago`);", '{ }')],
  },
  {
    name: 'time-by-wall-clock',
    what: 'trusted time goes by the wall clock',
    changes: [change('policy/trusted-clock.js', 'nowMs: Math.max(state.anchorMs + passed, state.highWaterMs)', 'nowMs: clock.wall()')],
  },
  {
    name: 'time-asked-once',
    what: 'a clock that a wrong signed time has put ahead is never set back while the connection lasts',
    changes: [change('edge-agent/link/ask-time.js', 'elapsed() >= dueAtMs', 'elapsed() === Infinity')],
    liveness: true,
  },
  {
    name: 'policy-half-applied',
    what: 'a new policy is used and not kept',
    changes: [change('edge-agent/trust/trust.js', "store('policy', jws, opened.claims);", '')],
  },
  {
    name: 'policy-goes-back',
    what: 'an older policy that arrives late is taken',
    changes: [change('edge-agent/trust/trust.js', 'if (order < 0)', 'if (order < 0 && kind === "policy")\n            return undefined;\n        if (order < 0)')],
  },
  {
    name: 'denials-counted-not-taken',
    what: 'a page of denials is marked as taken without its entries',
    changes: [change('edge-agent/trust/denials.js', '                    takeEntry(entry);', '                void entry;')],
  },
  {
    name: 'full-disk-ends-process',
    what: 'a full disk that a message from the broker runs into is nobody’s to catch',
    changes: [
      change('edge-agent/link/documents.js', "if (!(error instanceof LedgerFull))\n                throw error;", 'throw error;'),
      change('edge-agent/link/connection.js', '            takeMessage(topic, payload);\n        }\n        catch (error) {', '            takeMessage(topic, payload);\n        }\n        catch (error) {\n            throw error;'),
    ],
  },
  {
    name: 'devices-told-more',
    what: 'a device is told the nonce with the answer',
    changes: [change('edge-agent/decisions/authorize.js', 'outcome: done.outcome,\n', 'outcome: done.outcome,\nnonce: grant.nonce,\n')],
  },
  {
    name: 'answer-before-commit',
    what: 'a caller is answered before the transaction is durable',
    changes: [change('cloud/persistence/group-commit.js', 'done.push({ job, value: await job.work() });', 'const value = await job.work();\njob.resolve(value);\ndone.push({ job, value });\nawait new Promise((resolve) => setImmediate(resolve));')],
  },
  {
    name: 'outbox-after-commit',
    what: 'events are written after the transaction that they belong to',
    changes: [change('cloud/operations/perform.js', 'await writeOutbox(db, request.caller, opened.events, nowMs, services);\n            if (identity)', 'setImmediate(() => void database.write((later) => writeOutbox(later, request.caller, opened.events, nowMs, services)).catch(() => undefined));\n            if (identity)')],
  },
  {
    name: 'idempotency-not-kept',
    what: 'the answer under an Idempotency-Key is not kept',
    changes: [change('cloud/operations/idempotency.js', 'await insertAnswer(db, {', 'if (status_of(answer)) await insertAnswer(db, {'), change('cloud/operations/idempotency.js', 'const RUNNING_LEASE_MS = 60_000;', 'const RUNNING_LEASE_MS = 60_000;\nconst status_of = (answer) => answer.status === RUNNING;')],
  },
  {
    name: 'idempotency-across-tenants',
    what: 'Idempotency-Keys are not scoped to the tenant',
    changes: [change('cloud/operations/idempotency.js', "    .where('tenant', '=', p.tenant)\n", '')],
  },
  {
    name: 'granted-unpaid',
    what: 'a purchase counts as paid while its payment is pending',
    changes: [change('cloud/protection/subject.js', "return purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED';", "return purchase.status !== 'CANCELLED';")],
  },
  {
    name: 'granted-after-cancel',
    what: 'a cancelled purchase still counts as paid',
    changes: [change('cloud/protection/subject.js', "return purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED';", "return ['SUCCESS', 'UNLOADED', 'CANCELLED'].includes(purchase.status);")],
  },
  {
    name: 'lease-not-exclusive',
    what: 'a unit that one device holds a token for is lent to another as well',
    changes: [change('cloud/protection/leases.js', 'if (row.agent_id === null || row.voided_ms !== null)', 'if (row)')],
  },
  {
    name: 'freed-though-released',
    what: 'a failed release frees a unit that another one has released',
    changes: [change('policy/unit-uses.js', 'return { use, failures', 'return { use: uses.length > standing.length ? null : use, failures')],
  },
  {
    name: 'paid-after-end',
    what: 'a checkout that has ended can still be paid',
    changes: [change('cloud/scan-and-go/operations.js', "if ((purchase.status !== 'PENDING_PAYMENT' && purchase.status !== 'CREATED') || isLate) {", 'if (isLate) {')],
  },
  {
    name: 'home-moves-empty-handed',
    what: 'a new home honours receipts from before the move before it knows what was used of them',
    changes: [change('edge-agent/trust/trust.js', 'return move !== undefined && denials.seq < move.denySeq', 'return move === null && denials.seq < move.denySeq')],
    troubles: ['home', 'devices'],
  },
  {
    name: 'home-gives-twice',
    what: 'the home gives another agent what was used already',
    changes: [change('edge-agent/ledger/home-grants.js', 'candidates.filter((ordinal) => claims.isFree(cti, rightClass, ordinal, nowMs, false, isTheirs))', '[...candidates]')],
    troubles: ['home', 'lan', 'devices'],
  },
  {
    name: 'items-without-numbers',
    what: 'a change of an item gets no number of its own, so gates are not told',
    changes: [change('cloud/protection/item-queries.js', 'item_seq: seq,', '')],
  },
  {
    name: 'restored-and-granting',
    what: 'a cloud that was put back to a backup grants before its agents have told what they used since',
    changes: [change('cloud/restore/resync.js', 'if (leftMs <= 0)', 'if (leftMs !== 0)')],
    troubles: ['restore', 'partition'],
  },
  {
    name: 'restored-as-before',
    what: 'agents do not hear that the cloud was put back: tokens of the one before count on',
    changes: [change('edge-agent/decisions/by-token.js', 'ledger.cloudGeneration.tokensSince', '0')],
    troubles: ['restore', 'partition'],
  },
  {
    name: 'put-back-and-sure',
    what: 'an agent whose ledger was put back goes on deciding alone, though the cloud has told it',
    changes: [change('edge-agent/trust/ledger-doubt.js', "return Number(marks.get(ONLINE_ONLY) ?? 0) > nowMs || !isWhole ? 'put_back' : undefined;", 'return undefined;')],
    troubles: ['rollback', 'partition'],
  },
  {
    name: 'anew-and-silent',
    what: 'what the cloud had not acknowledged is not told under the new identity',
    changes: [change('edge-agent/link/take-over.js', 'journal.restart(next.generation);', "db.exec('DELETE FROM journal');\n            journal.restart(next.generation);")],
    troubles: ['enrol', 'partition'],
  },
  {
    name: 'anew-and-unheard',
    what: 'what an agent has used up before it was enrolled anew is taken for another’s word',
    changes: [change('cloud/protection/evidence-facts.js', 'if (owner === null || agentId === null)', 'if (owner !== agentId)')],
    troubles: ['enrol', 'partition'],
    liveness: true,
  },
  {
    name: 'copied-and-sure',
    what: 'an agent that knows that there are two of it goes on deciding alone',
    changes: [change('edge-agent/trust/ledger-doubt.js', "if (marks.get(FORKED) === '1')", "if (marks.get(FORKED) === '2')")],
    troubles: ['copy', 'partition'],
  },
  {
    name: 'copies-believed',
    what: 'rows under numbers that are taken are not compared with those',
    changes: [change('cloud/agents/ingest.js', 'if (known !== undefined && known !== last.hash) {', 'if (known === null) {')],
    troubles: ['copy', 'partition'],
    liveness: true,
  },
  {
    name: 'late-money-kept',
    what: 'money that arrives for a purchase that is over does not go back',
    changes: [change('cloud/payments/apply-notice.js', "await insertRefund(call, { purchase, payment, kind: 'late'", "if (nowMs < 0)\n        await insertRefund(call, { purchase, payment, kind: 'late'")],
    troubles: ['provider'],
    liveness: true,
  },
  {
    name: 'any-amount-pays',
    what: 'a purchase counts as paid whatever amount the provider names',
    changes: [change('cloud/payments/apply-notice.js', 'const isRight = amountCent === payment.amount_cent && ', 'const isRight = ')],
    troubles: ['provider'],
  },
  {
    name: 'refund-under-new-names',
    what: 'a refund that nobody answered is sent again under another idempotency key',
    changes: [change('cloud/payments/send-refund.js', 'const wish = { refundId,', 'const wish = { refundId: `${refundId}-${refund.attempts}`,')],
    troubles: ['provider'],
    liveness: true,
  },
  {
    name: 'money-before-denial',
    what: 'a cancelled purchase is paid back while its tokens and its receipt still count',
    changes: [change('cloud/scan-and-go/cancel-purchase.js', 'const isOpen = await hasOpenAuthorizations(call, purchase);', 'const isOpen = false;')],
    troubles: ['provider', 'partition'],
  },
  {
    name: 'came-back-unheard',
    what: 'a refund that the customer’s bank sends back counts as gone',
    changes: [change('cloud/payments/refund-outcome.js', "return refund.state !== 'failed' || refund.in_doubt === 1;", "return refund.state === 'due';")],
    troubles: ['provider'],
    liveness: true,
  },
  {
    name: 'nobody-asks-the-provider',
    what: 'a payment whose notification was lost is never asked about',
    changes: [change('cloud/payments/due-payments.js', 'const payments = await duePayments(database.reads, nowMs, READ_LIMIT);', 'const payments = [];')],
    troubles: ['provider'],
    liveness: true,
  },
  {
    name: 'cancelled-for-the-next',
    what: 'cancelling a purchase takes back what was brought back meanwhile, and bought by somebody else',
    changes: [change('cloud/protection/return-units.js', 'return item.line_id === unit.line_id && item.unit_no === unit.unit_no;', 'return true;')],
  },
  {
    name: 'brought-back-and-released',
    what: 'who brings goods back keeps the right to have them released',
    changes: [change('cloud/protection/move-by-hand.js', "await returnUnits(call, purchase, [unit], newId('ret', services.platform));", '')],
  },
  {
    name: 'webhooks-without-schedule',
    what: 'a webhook that failed is posted again at once',
    changes: [change('cloud/webhooks/record.js', 'export const SCHEDULE_MS = [0, 1 * MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS];', 'export const SCHEDULE_MS = [0, 0, 0, 0];')],
  },
  {
    name: 'webhooks-under-new-ids',
    what: 'each attempt has an id of its own',
    changes: [change('cloud/webhooks/signatures.js', "'webhook-id': id,", "'webhook-id': `${id}-${sentS}`,")],
  },
]
