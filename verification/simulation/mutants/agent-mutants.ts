import { change, type Mutant } from './mutant.ts'

/** Bugs of a single agent: its ledger, its time, what it takes from the cloud. */
export const AGENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'offline-without-category',
    what: 'an offline decision by a receipt takes every unit for one without a category',
    changes: [
      change('edge-agent/decisions/by-receipt.js', 'category: known?.category ?? signed?.category,', "category: '',"),
    ],
  },
  {
    name: 'offline-without-brand',
    what: 'an offline decision by a receipt takes every unit for one without a brand',
    changes: [change('edge-agent/decisions/by-receipt.js', 'brand: known?.brand ?? signed?.brand,', "brand: '',")],
  },
  {
    name: 'ledger-not-flushed',
    what: 'the ledger is opened with synchronous=NORMAL',
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
    what: 'the cloud’s database is opened with synchronous=NORMAL',
    changes: [
      change('cloud/persistence/sqlite.js', "db.pragma('synchronous = FULL')", "db.pragma('synchronous = NORMAL')"),
      change('cloud/persistence/sqlite.js', '{ simple: true }) === 2', '{ simple: true }) === 1'),
    ],
  },
  {
    name: 'release-before-ledger',
    what: 'the device moves before the claim is durable',
    changes: [
      change(
        'edge-agent/decisions/authorize.js',
        'const redemption = {',
        'const result = await commandRelease(this.#parts, redemptionId, context);\nconst redemption = {',
      ),
      change(
        'edge-agent/decisions/authorize.js',
        'return this.#notClaimed(redemption, claimed);\n        const result = await commandRelease(this.#parts, redemptionId, context);',
        'return this.#notClaimed(redemption, claimed);',
      ),
    ],
  },
  {
    name: 'release-again-at-boot',
    what: 'claims without outcome are commanded once more after a restart',
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
    name: 'no-unique-claim',
    what: 'a right that was used and confirmed may be claimed again',
    changes: [
      change(
        'edge-agent/ledger/claims/free-rights.js',
        'if (!row)\n            return 0;',
        "if (!row || row.state === 'confirmed')\n            return (row?.attempt ?? -1) + 1;",
      ),
    ],
  },
  {
    name: 'nonces-forgotten-by-wall-clock',
    what: 'used nonces are cleared away by the wall clock, and no floor is kept',
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
    name: 'floor-by-wall-clock',
    what: 'the floor below which tokens are dead is raised by the wall clock',
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
    name: 'done-when-published',
    what: 'a row of the journal is done when it was handed to the network (PUBACK), not when the cloud has signed for it',
    changes: [
      change(
        'edge-agent/link/reports/outbox.js',
        'return last && { batch',
        'if (last) ledger.commits.now(() => ledger.journal.acknowledge(last.seq, last.hash));\nreturn last && { batch',
      ),
    ],
  },
  {
    name: 'never-sent-again',
    what: 'a batch that was published and lost is not sent again',
    changes: [
      change(
        'edge-agent/link/reports/sender.js',
        'this.#later(() => {\n            this.#parts.onPublished(false);\n            this.#sendOverHttp();\n        });',
        '',
      ),
    ],
  },
  {
    name: 'numbers-not-taken-back',
    what: 'after a transaction was undone the journal goes on with the next number',
    changes: [change('edge-agent/ledger/ledger.js', 'this.journal.reload();', '')],
  },
  {
    name: 'go-on-after-io-error',
    what: 'an I/O error of the disk is taken for an ordinary failure, and the process goes on',
    changes: [change('edge-agent/ledger/file/commit.js', '(IOERR|CORRUPT', '(CORRUPT')],
  },
  {
    name: 'commit-error-ignored',
    what: 'a commit that failed is taken for done',
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
    what: 'claims that a crash left without outcome stay so for ever',
    changes: [change('edge-agent/ledger/recovery.js', 'if (open.length === 0)', 'if (open.length >= 0)')],
  },
  {
    name: 'ended-token-accepted',
    what: 'a token’s end is not looked at',
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
    what: 'trusted time goes by the wall clock',
    changes: [
      change(
        'policy/trusted-clock.js',
        'nowMs: Math.max(state.anchorMs + passed, state.highWaterMs)',
        'nowMs: clock.wall()',
      ),
    ],
  },
  {
    name: 'time-asked-once',
    what: 'a clock that a wrong signed time has put ahead is never set back while the connection lasts',
    changes: [change('edge-agent/link/login/time-requests.js', 'elapsed() >= dueAtMs', 'elapsed() === Infinity')],
    liveness: true,
  },
  {
    name: 'policy-half-applied',
    what: 'a new policy is used and not kept',
    changes: [change('edge-agent/trust/trusted-policy.js', 'this.#store(jws, claims);', '')],
  },
  {
    name: 'policy-goes-back',
    what: 'an older policy that arrives late is taken',
    changes: [
      change(
        'edge-agent/trust/judge-version.js',
        'if (order < 0)',
        'if (order < 0 && kind === "policy")\n            return undefined;\n        if (order < 0)',
      ),
    ],
  },
  {
    name: 'denials-counted-not-taken',
    what: 'a page of denials is marked as taken without its entries',
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
    what: 'a full disk that a message from the broker runs into is nobody’s to catch',
    changes: [
      change(
        'edge-agent/link/documents/receive-documents.js',
        'if (!(error instanceof LedgerFull))\n                throw error;',
        'throw error;',
      ),
      change(
        'edge-agent/link/broker-messages.js',
        '            takeMessage(topic, payload);\n        }\n        catch (error) {',
        '            takeMessage(topic, payload);\n        }\n        catch (error) {\n            throw error;',
      ),
    ],
  },
  {
    name: 'devices-told-more',
    what: 'a device is told the nonce with the answer',
    changes: [
      change(
        'edge-agent/decisions/authorize.js',
        'outcome: result.outcome,\n',
        'outcome: result.outcome,\nnonce: grant.nonce,\n',
      ),
    ],
  },
  {
    name: 'yes-without-outcome',
    what: 'offline, a paid item may leave by its name alone: nothing moves and nothing is recorded',
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
    what: 'an agent whose ledger was restored while the cloud was unreachable goes on deciding alone',
    changes: [
      change(
        'edge-agent/ledger/file/watermark.js',
        'let isAhead = stored !== undefined &&',
        'let isAhead = stored === null &&',
      ),
    ],
    faults: ['rollback', 'partition'],
  },
]
