import { change, type Mutant } from './mutant.ts'

/** Mutants of one agent: ledger, time, and documents from the cloud. */
export const AGENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'offline-without-category',
    what: 'An offline decision by receipt ignores the category of every unit.',
    changes: [
      change('edge-agent/decisions/sale-goods.js', 'category: item?.category ?? signed.category,', "category: '',"),
    ],
  },
  {
    name: 'offline-without-hold',
    what: 'An offline decision by receipt and tag ignores the status of the item.',
    changes: [change('edge-agent/decisions/sale-goods.js', 'status: item?.status ?? null,', 'status: null,')],
    faults: ['partition'],
  },
  {
    name: 'offline-receipt-without-hold',
    what: 'An offline decision by a receipt without a tag ignores the status of its items.',
    changes: [
      change(
        'edge-agent/decisions/sale-goods.js',
        'if (n !== undefined && item && statuses.has(item.status))',
        'if (n !== undefined && item && statuses.size === 0)',
      ),
    ],
    faults: ['partition'],
  },
  {
    name: 'isolated-not-counted',
    what: 'An isolated agent does not count the receipts that it honours.',
    changes: [
      change(
        'edge-agent/ledger/claims/claim-request.js',
        'if (isolated && this.#add.run(nonce).changes > 0)',
        'if (isolated && this.#add.run(nonce).changes > 1)',
      ),
    ],
    faults: ['partition', 'lan'],
  },
  {
    name: 'offline-without-brand',
    what: 'An offline decision by receipt ignores the brand of every unit.',
    changes: [change('edge-agent/decisions/sale-goods.js', 'brand: item?.brand ?? signed.brand,', "brand: '',")],
  },
  {
    name: 'ledger-not-flushed',
    what: 'The agent opens its ledger with synchronous=NORMAL.',
    changes: [
      change(
        'edge-agent/ledger/file/ledger-file.js',
        "db.pragma('synchronous = FULL')",
        "db.pragma('synchronous = NORMAL')",
      ),
      change('edge-agent/ledger/file/ledger-file.js', '{ simple: true }) === 2', '{ simple: true }) === 1'),
    ],
  },
  {
    name: 'cloud-not-flushed',
    what: 'The cloud opens its database with synchronous=NORMAL.',
    changes: [
      change(
        'cloud/platform/persistence/sqlite.js',
        "db.pragma('synchronous = FULL')",
        "db.pragma('synchronous = NORMAL')",
      ),
      change('cloud/platform/persistence/sqlite.js', '{ simple: true }) === 2', '{ simple: true }) === 1'),
    ],
  },
  {
    name: 'release-before-claim',
    what: 'The agent commands the device before the claim is durable.',
    changes: [
      change(
        'edge-agent/decisions/authorize.js',
        'const redemption = {',
        'const result = await commandRelease(this.#parts, context);\nconst redemption = {',
      ),
      change(
        'edge-agent/decisions/authorize.js',
        'return this.#notClaimed(redemption, claimed);\n        const result = await commandRelease(this.#parts, context);',
        'return this.#notClaimed(redemption, claimed);',
      ),
    ],
  },
  {
    name: 'release-again-at-start',
    what: 'After a restart the agent repeats the command of every claim without an outcome.',
    changes: [
      change(
        'edge-agent/startup/stored.js',
        'const recovered = recoverClaims(',
        'ledger.unfinished = ledger.claims.unsettled();\nconst recovered = recoverClaims(',
      ),
      change(
        'edge-agent/runtime.js',
        'link.start();',
        "link.start();\nfor (const claim of ledger.unfinished) void this.#devices.execute(claim.device_id, { kind: 'release' }, new AbortController().signal);",
      ),
    ],
  },
  {
    name: 'claim-not-unique',
    what: 'The ledger accepts a second claim on a confirmed release right.',
    changes: [
      change(
        'edge-agent/ledger/claims/free-rights.js',
        'if (!row)\n            return 0;',
        "if (!row || row.state === 'confirmed')\n            return (row?.attempt ?? -1) + 1;",
      ),
    ],
  },
  {
    name: 'nonces-expire-by-wall-clock',
    what: 'The agent deletes used nonces by the wall clock and stores no lower limit for token times.',
    changes: [
      change('edge-agent/housekeeping.js', 'const HOUSEKEEPING_MS = 600_000;', 'const HOUSEKEEPING_MS = 20_000;'),
      change(
        'edge-agent/runtime.js',
        'startHousekeeping({ ledger, clock, ',
        'startHousekeeping({ ledger, clock: { now: () => ({ nowMs: platform.clock.wall() }) }, ',
      ),
      change('edge-agent/ledger/claims/claims.js', "this.#metadata.set('floor', String(before));", ''),
    ],
  },
  {
    name: 'token-limit-by-wall-clock',
    what: 'The wall clock raises the limit below which the agent rejects old tokens.',
    changes: [
      change('edge-agent/housekeeping.js', 'const HOUSEKEEPING_MS = 600_000;', 'const HOUSEKEEPING_MS = 20_000;'),
      change(
        'edge-agent/runtime.js',
        'startHousekeeping({ ledger, clock, ',
        'startHousekeeping({ ledger, clock: { now: () => ({ nowMs: platform.clock.wall() }) }, ',
      ),
    ],
  },
  {
    name: 'acknowledged-when-published',
    what: 'The agent treats a row as acknowledged at PUBACK instead of at the signed acknowledgement.',
    changes: [
      change(
        'edge-agent/link/reports/outbox.js',
        'return last && { batch',
        'if (last) ledger.commits.now(() => ledger.journal.acknowledge(last.seq, last.hash));\nreturn last && { batch',
      ),
    ],
  },
  {
    name: 'batch-not-retried',
    what: 'The agent does not retry a batch that was lost after publishing.',
    changes: [
      change(
        'edge-agent/link/reports/sender.js',
        'this.#later(() => {\n            this.#parts.onPublished(false);\n            this.#sendOverHttp();\n        });',
        '',
      ),
    ],
  },
  {
    name: 'sequence-not-rolled-back',
    what: 'After a rolled back transaction the journal continues with the next number.',
    changes: [change('edge-agent/ledger/ledger.js', 'this.journal.reload();', '')],
  },
  {
    name: 'continue-after-io-error',
    what: 'The agent continues after an I/O error of the disk.',
    changes: [change('edge-agent/ledger/file/commit.js', '(IOERR|CORRUPT', '(CORRUPT')],
  },
  {
    name: 'commit-error-ignored',
    what: 'The agent ignores a failed commit.',
    changes: [
      change(
        'edge-agent/ledger/file/commit.js',
        'this.#commit.run();',
        "try { this.#commit.run(); } catch { if (this.#db.inTransaction) this.#db.exec('ROLLBACK'); }",
      ),
    ],
  },
  {
    name: 'outcome-not-recovered',
    what: 'After a crash the agent records no outcome for unfinished claims.',
    changes: [change('edge-agent/startup/stored.js', 'if (open.length === 0)', 'if (open.length >= 0)')],
  },
  {
    name: 'expired-token-accepted',
    what: 'The agent accepts expired tokens.',
    changes: [
      change(
        'policy/documents/signed-document.js',
        "return refuse('expired', `expired ${Math.round(now - expires)} s ago`);",
        '{ }',
      ),
    ],
  },
  {
    name: 'time-by-wall-clock',
    what: 'Trusted time follows the wall clock.',
    changes: [
      change(
        'policy/trusted-clock.js',
        'nowMs: Math.max(state.anchorMs + passed, state.highWaterMs)',
        'nowMs: clock.wall()',
      ),
    ],
  },
  {
    name: 'time-requested-once',
    what: 'The agent requests the time once per connection, so a clock that is ahead is never corrected.',
    changes: [change('edge-agent/link/login/time-requests.js', 'elapsed() >= dueAtMs', 'elapsed() === Infinity')],
    liveness: true,
  },
  {
    name: 'policy-not-stored',
    what: 'The agent applies a new policy without storing it.',
    changes: [
      change(
        'edge-agent/trust/trusted-documents.js',
        'this.#store(jws, claims);\n        this.#isDropped = false;',
        'this.#isDropped = false;',
      ),
    ],
  },
  {
    name: 'older-policy-accepted',
    what: 'The agent accepts an older policy that arrives late.',
    changes: [
      change(
        'edge-agent/trust/trusted-documents.js',
        'if (order < 0)',
        'if (order < 0 && kind === "policy")\n            return undefined;\n        if (order < 0)',
      ),
    ],
  },
  {
    name: 'denials-not-stored',
    what: 'The agent marks a page of denials as received without storing its entries.',
    changes: [
      change(
        'edge-agent/trust/revocation/denials.js',
        '                    applyEntry(entry);',
        '                void entry;',
      ),
    ],
  },
  {
    name: 'full-disk-ends-process',
    what: 'A full disk while the agent handles a broker message ends the process.',
    changes: [
      change(
        'edge-agent/link/documents/receive-documents.js',
        'if (!(error instanceof LedgerFull))\n                throw error;',
        'throw error;',
      ),
      change(
        'edge-agent/link/cloud-connection.js',
        '            handleMessage(topic, payload);\n        }\n        catch (error) {',
        '            handleMessage(topic, payload);\n        }\n        catch (error) {\n            throw error;',
      ),
    ],
  },
  {
    name: 'nonce-sent-to-device',
    what: 'The answer to a device contains the nonce.',
    changes: [
      change(
        'edge-agent/decisions/authorize.js',
        'outcome: result.outcome,\n',
        'outcome: result.outcome,\nnonce: grant.nonce,\n',
      ),
    ],
  },
  {
    name: 'grant-without-outcome',
    what: 'Offline, the agent grants an exit by item id alone, without device command and record.',
    changes: [
      change(
        'edge-agent/decisions/by-item.js',
        'if (!drivesOutput(action))',
        "if (!drivesOutput(action) || action === 'authorize_exit')",
      ),
      change('edge-agent/decisions/request.js', 'answer.outcome !== null', 'true'),
    ],
  },
  {
    name: 'watermark-ignored',
    what: 'An agent that was restored while the cloud was offline continues to decide alone.',
    changes: [
      change(
        'edge-agent/ledger/file/watermark.js',
        'let isAhead = marks.some(({ last }) => last &&',
        'let isAhead = marks.some(({ last }) => !last &&',
      ),
    ],
    faults: ['rollback', 'partition'],
  },
]
