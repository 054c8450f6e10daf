import type { AgentNode } from '../nodes/agent-node.ts'
import type { CloudNode } from '../nodes/cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import type { ReEnrolments } from './re-enrolments.ts'
import type { LedgerOracle } from '../oracles/ledger-oracle.ts'
import type { Merchant } from '../nodes/merchant.ts'
import type { Chance } from '../virtual/chance.ts'

/**
 * Runs two agents with one ledger. This happens if staff set up a spare machine from a disk image. untag does not
 * promise single use for rights that both agents use without the cloud. The cloud must notice the fork. After that,
 * both agents need the cloud for each claim. At the end staff remove the copy and call `resolveAgentFork`. If the copy
 * changed the key, staff re-enrol the original.
 */
export interface AgentCopies {
  /** Starts a copy of this agent beside the original. */
  make(node: AgentNode): void
  /** The agent that customers reach at these devices: the original or its copy. */
  original(node: AgentNode | undefined): AgentNode | undefined
  readonly nodes: readonly AgentNode[]
  /** After all faults have ended, staff resolve each pair of original and copy. */
  decide(): void
  /** Describes the open work of staff; undefined if all pairs are resolved. */
  readonly underWay: string | undefined
}

export interface CopiesParts {
  core: Core
  cloud: CloudNode
  manager: Merchant
  enrolments: ReEnrolments
  ledgers: Map<string, LedgerOracle>
  /**
   * Adds a machine with these files beside the agent, and starts the machine. The process restarts after each end while
   * `isThere` returns true.
   */
  install(node: AgentNode, name: string, files: string, isThere: () => boolean): AgentNode
  /** Called after a machine was removed. The redemptions of that machine never reach the cloud. */
  onRemoved(name: string): void
}

interface Pair {
  readonly original: AgentNode
  readonly copy: AgentNode
}

const CHECK_EVERY_MS = 5_000
/** Time limit for the cloud to notice the fork, ms. */
const NOTICED_WITHIN_MS = 10 * 60_000
/** Time limit for an agent to get online, ms. It is a little longer than the agent's longest retry pause. */
const ONLINE_WITHIN_MS = 2 * 60_000
/** Time in which all earlier messages arrive, ms. The slowest message takes 300,000 ms. */
const QUIET_MS = 6 * 60_000

/** Creates the copies of a run. */
export function agentCopies(parts: CopiesParts): AgentCopies {
  return new CopiedAgents(parts)
}

class CopiedAgents implements AgentCopies {
  readonly #core: CopiesParts['core']
  readonly #cloud: CopiesParts['cloud']
  readonly #manager: CopiesParts['manager']
  readonly #enrolments: CopiesParts['enrolments']
  readonly #ledgers: CopiesParts['ledgers']
  readonly #install: CopiesParts['install']
  readonly #onRemoved: CopiesParts['onRemoved']
  readonly #chance: Chance
  readonly nodes: AgentNode[] = []
  #pair: Pair | undefined
  #state: 'alone' | 'both' | 'deciding' | 'decided' = 'alone'

  constructor({ core, cloud, manager, enrolments, ledgers, install, onRemoved }: CopiesParts) {
    this.#core = core
    this.#cloud = cloud
    this.#manager = manager
    this.#enrolments = enrolments
    this.#ledgers = ledgers
    this.#install = install
    this.#onRemoved = onRemoved
    this.#chance = this.#core.chance.fork('copies')
  }

  make(node: AgentNode): void {
    if (this.#state !== 'alone') return
    this.#state = 'both'
    const copy = this.#install(node, `${node.name}-copy`, node.disk.copy(), () => this.#state !== 'decided')
    this.nodes.push(copy)
    this.#pair = { original: node, copy }
    const cutOff = this.#chance.one([undefined, node, copy])
    this.#core.trace.add(
      'fault',
      `a copy of ${node.name} is started${cutOff ? `, and ${cutOff.name} is disconnected` : ''}`,
    )
    cutOff?.wire.cut()
  }

  readonly original = (node: AgentNode | undefined): AgentNode | undefined => {
    return node && this.#state === 'both' && this.#pair?.original === node && this.#chance.happens(0.5)
      ? this.#pair.copy
      : node
  }

  decide(): void {
    if (!this.#pair || this.#state !== 'both') return
    this.#state = 'deciding'
    this.#resolve(this.#pair)
      .catch((error: unknown) =>
        this.#core.violate('fault', `no decision about ${this.#pair?.copy.name}: ${(error as Error).stack}`),
      )
      .finally(() => void (this.#pair = undefined))
  }

  get underWay(): string | undefined {
    return this.#state !== 'alone' && this.#pair ? `two copies of ${this.#pair.original.name}` : undefined
  }

  #isForked(agentId: string) {
    return (
      this.#cloud.disk.reading
        ?.prepare<[string]>('SELECT 1 FROM agent WHERE agent_id = ? AND fork_ms IS NOT NULL')
        .get(agentId) !== undefined
    )
  }

  #rowsOf({ name }: AgentNode) {
    return this.#ledgers.get(name)?.rows ?? []
  }

  /** The first row number under which both ledgers have different rows. */
  #firstDifference({ original, copy }: Pair): number | undefined {
    const mine = new Map(this.#rowsOf(original).map(({ seq, hash }) => [seq, hash]))
    return this.#rowsOf(copy).find(({ seq, hash }) => mine.has(seq) && mine.get(seq) !== hash)?.seq
  }

  async #until(limitMs: number, done: () => boolean): Promise<boolean> {
    for (const from = this.#core.scheduler.nowMs; !done();) {
      if (this.#core.scheduler.nowMs - from > limitMs) return false
      await this.#core.scheduler.pause(CHECK_EVERY_MS)
    }
    return true
  }

  #removeCopy(copy: AgentNode): void {
    this.#core.trace.add('manager', `${copy.name} is removed`)
    this.#state = 'decided'
    copy.crash({ powerCut: false })
    this.#ledgers.delete(copy.name)
    this.#onRemoved(copy.name)
  }

  async #resolve(both: Pair): Promise<void> {
    const { original, copy } = both
    const { agentId } = original.identity
    for (const { wire } of [original, copy]) wire.restore()
    const isNoticed = await this.#until(
      NOTICED_WITHIN_MS,
      () => this.#isForked(agentId) || this.#firstDifference(both) === undefined,
    )
    const at = this.#firstDifference(both)
    // If one of the two agents has changed the key, the cloud rejects the other agent.
    const isShutOut = (node: AgentNode) =>
      this.#until(ONLINE_WITHIN_MS, () => node.agent?.link.isOnline === true).then((isOnline) => !isOnline)
    const isOriginalOut = await isShutOut(original)
    if (!isNoticed && !isOriginalOut && !(await isShutOut(copy)))
      return this.#core.violate(
        'liveness',
        `${original.name} and ${copy.name} have different rows from row ${at} on, but neither agents nor cloud noticed it`,
      )
    if (isOriginalOut) {
      this.#enrolments.reEnrol(original)
      await this.#until(NOTICED_WITHIN_MS, () => this.#enrolments.underWay === undefined)
      // The copy may still run for a while after the re-enrolment.
      if (this.#chance.happens(0.5)) await this.#core.scheduler.pause(NOTICED_WITHIN_MS / 10)
      return this.#removeCopy(copy)
    }
    this.#removeCopy(copy)
    // Messages of the copy may still arrive, after which the cloud marks the fork again.
    for (const from = this.#core.scheduler.nowMs; this.#core.scheduler.nowMs - from < QUIET_MS;) {
      if (this.#isForked(agentId)) await this.#manager.call('resolveAgentFork', { agentId, decision: 'trust' })
      await this.#core.scheduler.pause(CHECK_EVERY_MS)
    }
  }
}
