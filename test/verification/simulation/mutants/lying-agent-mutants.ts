import { change, type Mutant } from './mutant.ts'

/** Mutants that accept false reports of one agent about another. */
export const LYING_AGENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'delegation-from-any-agent',
    what: 'The cloud accepts `delegated` from any agent of the store.',
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
    name: 'delegation-without-epoch',
    what: 'The cloud accepts `delegated` without the epoch of the receipt home.',
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
    name: 'return-without-signature',
    what: 'The cloud accepts `delegation_returned` without the signature of the requesting agent.',
    changes: [
      change(
        'cloud/protection/evidence/apply-delegated.js',
        'opened.ok ? HomeRequest.safeParse(opened.claims).data : undefined',
        'HomeRequest.safeParse(opened.ok ? opened.claims : decodeUnverifiedClaims(report)).data',
      ),
    ],
    faults: ['liar'],
  },
  {
    name: 'outcome-of-other-agent',
    what: 'The cloud accepts an outcome of another agent’s redemption.',
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
    name: 'alarm-of-other-agent',
    what: 'The cloud accepts dispositions of alarms at another agent’s gate.',
    changes: [
      change(
        'cloud/protection/evidence/apply-delegated.js',
        '!(await facts.isOwn(gate.agent_id, source))',
        'gate.agent_id === null',
      ),
    ],
    faults: ['liar'],
  },
  {
    name: 'release-notice-without-receipt',
    what: 'A gate accepts a release notice with a forged receipt and stays silent.',
    changes: [
      change(
        'edge-agent/lanes/gate/released-units.js',
        'return refuse(`the receipt is ${opened.fault}`)',
        "return { ok: true, proof: { kind: 'receipt', cti: new Uint8Array(16), ordinal, entry: '00000000' } }",
      ),
    ],
    faults: ['liar'],
  },
  {
    name: 'acknowledgement-of-other-ledger',
    what: 'An agent accepts the acknowledgement of another agent’s ledger.',
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
