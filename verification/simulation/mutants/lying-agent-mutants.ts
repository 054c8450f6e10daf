import { change, type Mutant } from './mutant.ts'

/** Bugs that let one agent speak for another: found where an enrolled agent lies. */
export const LYING_AGENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'given-from-anyone',
    what: 'the cloud accepts `delegated` from any agent of the store',
    changes: [
      change(
        'cloud/protection/evidence/apply-delegated.js',
        '!(await facts.isHomeIn(homeEpoch, source))',
        'homeEpoch < 0',
      ),
    ],
    faults: ['liar'],
  },
  {
    name: 'given-without-epoch',
    what: 'the cloud accepts `delegated` without the epoch of the home',
    changes: [
      change(
        'cloud/protection/evidence/apply-delegated.js',
        'homeEpoch === undefined || !(await facts.isHomeIn(homeEpoch, source))',
        '(homeEpoch !== undefined && !(await facts.isHomeIn(homeEpoch, source)))',
      ),
      change(
        'cloud/protection/evidence/apply-delegated.js',
        'homeAgentId, homeEpoch });',
        'homeAgentId, homeEpoch: homeEpoch ?? 0 });',
      ),
    ],
    faults: ['liar'],
  },
  {
    name: 'given-back-unsigned',
    what: 'the cloud accepts `delegation_returned` without the signature of the agent that had asked',
    changes: [
      change(
        'cloud/protection/evidence/outcome-report.js',
        'opened.ok ? HomeRequest.safeParse(opened.claims).data : undefined',
        'HomeRequest.safeParse(opened.ok ? opened.claims : decodeUnverifiedClaims(report)).data',
      ),
    ],
    faults: ['liar'],
  },
  {
    name: 'outcome-of-another',
    what: 'the cloud accepts the outcome of another agent’s redemption',
    changes: [
      change(
        'cloud/protection/evidence/apply-outcome.js',
        'if (await scope.facts.isOwn(row.agent_id, source))',
        'if (row.agent_id !== null)',
      ),
    ],
    faults: ['liar'],
  },
  {
    name: 'notice-without-receipt',
    what: 'a gate falls silent for a release notice whose receipt is not genuine',
    changes: [
      change(
        'edge-agent/lanes/gate/release-proof.js',
        'return refuse(`the receipt is ${opened.fault}`)',
        "return { ok: true, proof: { kind: 'receipt', cti: new Uint8Array(16), ordinal, entry: '00000000' } }",
      ),
    ],
    faults: ['liar'],
  },
  {
    name: 'ack-of-another-ledger',
    what: 'an agent accepts the acknowledgement of another agent’s ledger',
    changes: [
      change(
        'edge-agent/link/reports/outbox.js',
        'audience: agentId',
        "audience: JSON.parse(Buffer.from(ack.split('.')[1] ?? '', 'base64url').toString()).aud",
      ),
      change(
        'edge-agent/link/reports/outbox.js',
        'if (claims?.ledger !== ledger.ledgerId || claims.generation !== ledger.generation)',
        'if (!claims)',
      ),
      change(
        'edge-agent/ledger/journal/journal.js',
        'this.hashAt(seq) !== hash)\n            return false;\n        this.#acked = Math.max',
        'false)\n            return false;\n        this.#acked = Math.max',
      ),
    ],
    faults: ['liar', 'weather'],
  },
]
