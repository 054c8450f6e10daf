import { change, type Mutant } from './mutant.ts'

/** Bugs that show where a store has several agents or homes, or something was put back or copied. */
export const MULTI_AGENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'home-moves-empty-handed',
    what: 'a new home honours receipts from before the move before it knows what was used of them',
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
    name: 'home-gives-twice',
    what: 'the home gives another agent what was used already',
    changes: [
      change(
        'edge-agent/ledger/home/home-grants.js',
        'candidates.filter((ordinal) => claims.isFree(cti, rightClass, ordinal, nowMs, false, isTheirs))',
        '[...candidates]',
      ),
    ],
    faults: ['home', 'lan', 'devices'],
  },
  {
    name: 'home-gives-in-silence',
    what: 'the home does not tell the cloud what it gives to other agents',
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
    name: 'given-and-granted',
    what: 'the cloud grants what a home has given to an agent that it does not hear of',
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
    name: 'restored-and-granting',
    what: 'a cloud that was put back to a backup grants before its agents have told what they used since',
    changes: [change('cloud/protection/leases/resync.js', 'if (leftMs <= 0)', 'if (leftMs !== 0)')],
    faults: ['restore', 'partition'],
  },
  {
    name: 'restored-as-before',
    what: 'agents do not hear that the cloud was put back: tokens of the one before count on',
    changes: [change('edge-agent/decisions/by-token.js', 'ledger.cloudGeneration.tokensSince', '0')],
    faults: ['restore', 'partition'],
  },
  {
    name: 'put-back-and-sure',
    what: 'an agent whose ledger was put back goes on deciding alone, though the cloud has told it',
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
    name: 'anew-and-silent',
    what: 'what the cloud had not acknowledged is not told under the new identity',
    changes: [
      change(
        'edge-agent/enrolment/adopt-ledger.js',
        'journal.restart(next.generation);',
        "db.exec('DELETE FROM journal');\n            journal.restart(next.generation);",
      ),
    ],
    faults: ['enrol', 'partition'],
  },
  {
    name: 'anew-and-unheard',
    what: 'what an agent has used up before it was enrolled anew is taken for another’s word',
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
    name: 'copied-and-sure',
    what: 'an agent that knows that there are two of it goes on deciding alone',
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
    name: 'copies-believed',
    what: 'rows under numbers that are taken are not compared with those',
    changes: [
      change(
        'cloud/agents/journal/ingest.js',
        'if (known !== undefined && known !== last.hash) {',
        'if (known === null) {',
      ),
    ],
    faults: ['copy', 'partition'],
    liveness: true,
  },
]
