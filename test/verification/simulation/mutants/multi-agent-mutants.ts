import { change, type Mutant } from './mutant.ts'

/** Mutants that need several agents, a moved receipt home, a restore or a copy. */
export const MULTI_AGENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'new-home-without-denials',
    what: 'A new receipt home accepts older receipts before it knows which rights were used.',
    changes: [
      change(
        'edge-agent/trust/trust.js',
        'return move !== undefined && this.#denials.seq < move.denySeq',
        'return move === null && this.#denials.seq < move.denySeq',
      ),
    ],
    faults: ['home', 'devices'],
  },
  {
    name: 'home-delegates-used-right',
    what: 'The receipt home delegates a release right that was already used.',
    changes: [
      change(
        'edge-agent/ledger/home/home-grants.js',
        'allowed.filter((ordinal) => claims.isFree(cti, rightClass, ordinal, nowMs, false, isRetried) &&',
        'allowed.filter((ordinal) =>',
      ),
    ],
    faults: ['home', 'lan', 'devices'],
  },
  {
    name: 'delegation-not-reported',
    what: 'The receipt home does not report delegated rights to the cloud.',
    changes: [
      change(
        'edge-agent/ledger/home/home-grants.js',
        'if (!answer.reason)\n                append(',
        'if (answer.reason === null)\n                append(',
      ),
    ],
    faults: ['home', 'lan', 'devices'],
  },
  {
    name: 'grant-of-delegated-right',
    what: 'The cloud grants a right that the receipt home delegated to an offline agent.',
    changes: [
      change(
        'cloud/protection/rights/delegated-rights.js',
        "if (!row?.was_given || right.state === 'used')",
        'if (right)',
      ),
    ],
    faults: ['home', 'partition', 'lan'],
  },
  {
    name: 'grant-before-resync',
    what: 'A restored cloud grants before its agents have reported their later redemptions.',
    changes: [change('cloud/protection/leases/authorizations.js', 'if (leftMs <= 0)', 'if (leftMs !== 0)')],
    faults: ['restore', 'partition'],
  },
  {
    name: 'tokens-of-lost-cloud-accepted',
    what: 'After a restore of the cloud agents accept tokens of the lost generation.',
    changes: [change('edge-agent/decisions/by-token.js', 'ledger.cloudGeneration.tokensSince', '0')],
    faults: ['restore', 'partition'],
  },
  {
    name: 'rollback-ignored',
    what: 'An agent that knows of its rollback continues to decide alone.',
    changes: [
      change(
        'edge-agent/trust/revocation/untrusted-ledger.js',
        "return Number(metadata.get(ONLINE_ONLY) ?? 0) > nowMs || !isWhole ? 'put_back' : undefined;",
        'return undefined;',
      ),
    ],
    faults: ['rollback', 'partition'],
  },
  {
    name: 'journal-lost-at-re-enrolment',
    what: 'Re-enrolment discards the rows that the cloud has not acknowledged.',
    changes: [
      change(
        'edge-agent/enrolment/enrol.js',
        'journal.restart(next.generation);',
        "db.exec('DELETE FROM journal');\n            journal.restart(next.generation);",
      ),
    ],
    faults: ['enrol', 'partition'],
  },
  {
    name: 'predecessor-rows-rejected',
    what: 'The cloud rejects evidence of the predecessor from a re-enrolled agent.',
    changes: [
      change(
        'cloud/protection/evidence/evidence-facts.js',
        'if (owner === null || agentId === null)',
        'if (owner !== agentId)',
      ),
    ],
    faults: ['enrol', 'partition'],
    liveness: true,
  },
  {
    name: 'fork-ignored',
    what: 'An agent that knows of its copy continues to decide alone.',
    changes: [
      change(
        'edge-agent/trust/revocation/untrusted-ledger.js',
        "if (metadata.get(FORKED) === '1')",
        "if (metadata.get(FORKED) === '2')",
      ),
    ],
    faults: ['copy', 'partition'],
  },
  {
    name: 'fork-not-detected',
    what: 'The cloud does not compare rows with stored rows of the same number.',
    changes: [
      change(
        'cloud/protection/agents/journal/ingest.js',
        'if (known !== undefined && known !== last.hash) {',
        'if (known === null) {',
      ),
    ],
    faults: ['copy', 'partition'],
    liveness: true,
  },
]
