import type { AgentNode } from '../nodes/agent-node.ts'
import type { CloudNode } from '../nodes/cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import type { Enrolments } from './enrolments.ts'
import type { LedgerOracle } from '../oracles/ledger-oracle.ts'
import type { Merchant } from '../nodes/merchant.ts'

/**
 *   disk of agent-1 ─ copied ─▶ agent-1-copy on another machine, under the same identity ─▶ both report ─▶ agent_fork
 *                                                  ┌─ the copy is taken away, resolveAgentFork ◀─┤
 *        └─ the copy has changed the key: agent-1 is enrolled anew, the copy is taken away ◀┘
 *
 * Two of one ledger at once, as when somebody sets up a spare machine from an image. What each used alone is not promised to be used
 * once; that it is noticed, that both ask the cloud from then on, and that all comes right when somebody has decided, is.
 */
export interface Copies {
  /** Somebody starts a copy of this agent while that runs on. */
  make(node: AgentNode): void
  /** Whom people meet at the devices of this agent: it, or its copy. */
  at(node: AgentNode | undefined): AgentNode | undefined
  readonly nodes: readonly AgentNode[]
  /** All is well again: now somebody decides. */
  decide(): void
  /** What somebody is still at; undefined when all is decided, or there was nothing to decide. */
  readonly underWay: string | undefined
}

export interface CopiesParts {
  core: Core
  cloud: CloudNode
  manager: Merchant
  enrolments: Enrolments
  ledgers: Map<string, LedgerOracle>
  /** Puts a machine with these files beside the agent, and starts it; whenever it ends somebody starts it again, while it is there. */
  install(node: AgentNode, name: string, files: string, isThere: () => boolean): AgentNode
  /** What the machine used is known to nobody. */
  onTakenAway(name: string): void
}

interface Pair {
  readonly original: AgentNode
  readonly copy: AgentNode
}

const LOOK_MS = 5_000
/** Two that report differently must be noticed within, ms. */
const NOTICED_WITHIN_MS = 10 * 60_000
/** The longest pause before an agent tries again, and some, ms. */
const ONLINE_WITHIN_MS = 2 * 60_000
/** Messages of before are over by then, ms: the slowest took five minutes. */
const QUIET_MS = 6 * 60_000

/** The copies of one world. */
export function copies({ core, cloud, manager, enrolments, ledgers, install, onTakenAway }: CopiesParts): Copies {
  const { scheduler, trace } = core
  const chance = core.chance.fork('copies')
  const nodes: AgentNode[] = []
  let pair: Pair | undefined
  let state: 'alone' | 'both' | 'deciding' | 'decided' = 'alone'

  const isForked = (agentId: string) =>
    cloud.disk.reading
      ?.prepare<[string]>('SELECT 1 FROM agent WHERE agent_id = ? AND fork_ms IS NOT NULL')
      .get(agentId) !== undefined
  const rowsOf = ({ name }: AgentNode) => ledgers.get(name)?.rows ?? []

  /** The first number under which each has something else. */
  function parting({ original, copy }: Pair): number | undefined {
    const mine = new Map(rowsOf(original).map(({ seq, hash }) => [seq, hash]))
    return rowsOf(copy).find(({ seq, hash }) => mine.has(seq) && mine.get(seq) !== hash)?.seq
  }

  async function until(limitMs: number, done: () => boolean): Promise<boolean> {
    for (const from = scheduler.nowMs; !done();) {
      if (scheduler.nowMs - from > limitMs) return false
      await scheduler.pause(LOOK_MS)
    }
    return true
  }

  function takeAway(copy: AgentNode): void {
    trace.note('manager', `${copy.name} is taken away`)
    state = 'decided'
    copy.crash({ powerCut: false })
    ledgers.delete(copy.name)
    onTakenAway(copy.name)
  }

  async function resolve(both: Pair): Promise<void> {
    const { original, copy } = both
    const { agentId } = original.identity
    for (const { wire } of [original, copy]) wire.restore()
    const isNoticed = await until(NOTICED_WITHIN_MS, () => isForked(agentId) || parting(both) === undefined)
    const at = parting(both)
    // One that has changed the key has shut the other out.
    const isShutOut = (node: AgentNode) =>
      until(ONLINE_WITHIN_MS, () => node.agent?.link.isOnline === true).then((isOnline) => !isOnline)
    const isOriginalOut = await isShutOut(original)
    if (!isNoticed && !isOriginalOut && !(await isShutOut(copy)))
      return core.violate(
        'liveness',
        `${original.name} and ${copy.name} say different things from row ${at} on, and nobody has noticed`,
      )
    if (isOriginalOut) {
      enrolments.enrolAnew(original)
      await until(NOTICED_WITHIN_MS, () => enrolments.underWay === undefined)
      // It may run on for a while: nobody knows it any more.
      if (chance.happens(0.5)) await scheduler.pause(NOTICED_WITHIN_MS / 10)
      return takeAway(copy)
    }
    takeAway(copy)
    // What it had sent may still be on its way, and raise it again.
    for (const from = scheduler.nowMs; scheduler.nowMs - from < QUIET_MS;) {
      if (isForked(agentId)) await manager.call('resolveAgentFork', { agentId, decision: 'trust' })
      await scheduler.pause(LOOK_MS)
    }
  }

  return {
    make(node) {
      if (state !== 'alone') return
      state = 'both'
      const copy = install(node, `${node.name}-copy`, node.disk.copy(), () => state !== 'decided')
      nodes.push(copy)
      pair = { original: node, copy }
      const cutOff = chance.one([undefined, node, copy])
      trace.note('trouble', `a copy of ${node.name} is started${cutOff ? `, and ${cutOff.name} is cut off` : ''}`)
      cutOff?.wire.cut()
    },
    at: (node) => (node && state === 'both' && pair?.original === node && chance.happens(0.5) ? pair.copy : node),
    nodes,
    decide() {
      if (!pair || state !== 'both') return
      state = 'deciding'
      resolve(pair)
        .catch((error: unknown) =>
          core.violate('fault', `nobody decides about ${pair?.copy.name}: ${(error as Error).stack}`),
        )
        .finally(() => void (pair = undefined))
    },
    get underWay() {
      return state !== 'alone' && pair ? `two copies of ${pair.original.name}` : undefined
    },
  }
}
