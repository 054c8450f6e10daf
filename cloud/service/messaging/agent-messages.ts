import { agentTopic, parseTopic, type AgentAddress } from '../../../policy/mqtt-topics.ts'
import { agentsSeenSince, revokedAmong } from '../../protection/agent-identity/agent-queries.ts'
import { signCommand } from '../../protection/agents/documents/freshness-and-denials.ts'
import { assertAgent } from '../../protection/agents/login/agent-login.ts'
import type { AgentChannel, AgentCommand, SiblingMessage, Siblings } from '../../platform/foundation/ports.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Database } from '../../platform/persistence/database.ts'
import type { AgentBroker, BrokerHooks } from './embedded-broker.ts'
import { StoreAnnouncements, type AnnouncementScope } from './store-announcements.ts'
import { BackgroundTasks } from './broker-connection.ts'
import { pause } from '../../../policy/platform.ts'
import { newId } from '../../../policy/ids.ts'
import { rateLimitedLog, type RateLimitedLog } from '../../../policy/rate-limited-log.ts'
import { agentCaller, findAgent } from '../../protection/agent-identity/sessions.ts'
import { storeEnd, storeState } from '../../protection/agents/documents/agent-state.ts'
import { reportProtectionEvents } from '../../protection/agents/journal/ingest.ts'
import { perform } from '../../platform/operations/perform.ts'
import { shares, type Shares } from '../../platform/foundation/shared-slots.ts'

/** Maximum number of batches of one agent that wait to be stored. */
export const BATCHES_OF_AGENT = 4
/** Maximum number of batches of all agents of an account that wait to be stored. */
export const BATCHES_OF_ACCOUNT = 250
/** Maximum number of batches of all agents that wait to be stored. A batch has up to 300 KB. */
export const BATCHES_OF_ALL = 500

/** Counts the batches of events that wait to be stored. The agent sends a batch that does not fit again after 5 s. */
interface WaitingBatches {
  readonly ofAgent: Shares
  /** The cloud knows the account only after it has looked up the agent. */
  readonly ofAccount: Shares
}

/** Empty shares of the batches that wait: for each agent and for each account. */
export function waitingBatches(): WaitingBatches {
  return {
    ofAgent: shares({ ofOne: BATCHES_OF_AGENT, total: BATCHES_OF_ALL }),
    ofAccount: shares({ ofOne: BATCHES_OF_ACCOUNT, total: BATCHES_OF_ALL }),
  }
}

interface InboxParts {
  database: Database
  services: () => Services
  tasks: BackgroundTasks
  /** True if other processes may store earlier batches of the same agent at this moment. */
  mayReorder(): boolean
  /** Sends the acknowledgement of a batch to its agent. */
  acknowledge(agent: AgentAddress, ack: string): void
}

/** Maximum number of agents whose states wait to be stored. */
const STATES_LIMIT = 10_000
/** If earlier rows of the agent are missing, its batch waits at most 1 s for the process that stores these rows. */
const GAP_TRIES = 6
const GAP_PAUSE_MS = 200
/** Takes the place of a state when the connection of the agent has ended. */
const ENDED = ''

/** Stores the messages that agents publish. Stores the batches of one agent in the order of their arrival. */
class AgentInbox {
  readonly #parts: InboxParts
  readonly #batches = waitingBatches()
  /** For each agent, a promise that resolves when its last batch has been processed. */
  readonly #lastBatches = new Map<string, Promise<void>>()
  readonly #states = new Map<string, string>()
  #refusals: RateLimitedLog | undefined

  constructor(parts: InboxParts) {
    this.#parts = parts
  }

  /**
   * Stores a batch of an agent's journal and acknowledges it. If too many batches wait, drops the batch; the agent then
   * sends it again.
   */
  receiveBatch(from: AgentAddress, batch: string): void {
    const stored = this.#batches.ofAgent(from.agentId)
    if (stored)
      void this.#parts.tasks.track(this.#inOrder(from.agentId, () => this.#storeBatch(from, batch)).finally(stored))
  }

  /** Stores the state of an agent. If several states arrive during a write, only the last one is stored. */
  receiveState(from: AgentAddress, payload: string): void {
    const { agentId } = from
    const isUnderWay = this.#states.has(agentId)
    if (!isUnderWay && this.#states.size >= STATES_LIMIT) return
    this.#states.set(agentId, payload)
    if (!isUnderWay) void this.#parts.tasks.track(this.#writeStates(from, payload))
  }

  /** Stores that the agent is no longer connected. An agent that was cut off publishes nothing. */
  receiveEnd(from: AgentAddress): void {
    this.receiveState(from, ENDED)
  }

  async #writeStates(from: AgentAddress, first: string): Promise<void> {
    const { agentId } = from
    try {
      for (let next: string | undefined = first; next !== undefined; next = this.#states.get(agentId)) {
        const state = next
        const { platform, changes } = this.#parts.services()
        const nowMs = platform.clock.wall()
        const changed = await this.#parts.database.write((db) =>
          state === ENDED ? storeEnd(db, from, nowMs) : storeState(db, from, state, nowMs),
        )
        if (changed) changes.publish(agentCaller(changed), { area: 'agents', storeIds: [], events: [] })
        if (this.#states.get(agentId) === state) this.#states.delete(agentId)
      }
    } finally {
      this.#states.delete(agentId)
    }
  }

  /**
   * Runs the batches of one agent in order. SQLite has a single writer, which already keeps the order and lets waiting
   * batches share a commit. On PostgreSQL, parallel batches of one agent would conflict, so each batch waits for the
   * previous one.
   */
  #inOrder(agentId: string, work: () => Promise<void>): Promise<void> {
    if (this.#parts.database.dialect === 'sqlite') return work()
    const last = this.#lastBatches
    const batch = (last.get(agentId) ?? Promise.resolve()).then(work)
    const end = batch.catch(() => undefined).then(() => void (last.get(agentId) === end && last.delete(agentId)))
    last.set(agentId, end)
    return batch
  }

  async #storeBatch(from: AgentAddress, batch: string): Promise<void> {
    const { database, acknowledge, mayReorder } = this.#parts
    const services = this.#parts.services()
    const agent = await findAgent(database.reads, from.agentId)
    // An outside broker may deliver a batch under a topic of another store.
    if (!agent || agent.revoked_ms !== null || agent.store_id !== from.storeId) return
    const caller = agentCaller(agent)
    const stored = this.#batches.ofAccount(caller.accountId)
    if (!stored) return
    const request = {
      operation: reportProtectionEvents,
      caller,
      input: { batch },
      isLegacyForm: false,
      idempotencyKey: undefined,
      requestId: newId('req', services.platform),
    }
    try {
      for (let tries = 1; ; tries++) {
        const { body } = await perform(request, database, services)
        const { accepted, duplicates, ack } = JSON.parse(body) as { accepted: number; duplicates: number; ack: string }
        const isAfterGap = accepted + duplicates === 0
        if (!isAfterGap || !mayReorder() || tries === GAP_TRIES) return acknowledge(from, ack)
        await pause(services.platform.timers, GAP_PAUSE_MS)
      }
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      this.#logRefusal(from.agentId, error, services)
    } finally {
      stored()
    }
  }

  #logRefusal(agentId: string, { message: reason }: Failure, { log, platform }: Services): void {
    this.#refusals ??= rateLimitedLog((fields, message) => log.warn(fields, message), platform)
    this.#refusals.write({ agentId, reason }, 'a batch was refused', agentId)
  }
}

/**
 * After a connect to an outside broker, agents count as connected if they sent something to the cloud within this time,
 * ms.
 */
const SEEN_MS = 2 * 60_000

/**
 * Messages between the cloud and its agents over the broker. Agents publish batches of events, which the cloud stores
 * and acknowledges. The cloud publishes documents of a store after changes, and the freshness of the store
 * periodically.
 */
export interface AgentMessages {
  readonly hooks: BrokerHooks
  readonly channel: AgentChannel
  /**
   * For every store with a connected agent, publishes the freshness. Also publishes the changed documents (`changed`)
   * or all documents (`all`).
   */
  refresh(what: AnnouncementScope): Promise<void>
  /** Disconnects agents that this or another process has revoked. */
  cutRevoked(): Promise<void>
  /** Sets the broker of this process; undefined if this process has no broker. */
  attach(broker: AgentBroker | undefined): void
  /** Sends the other workers the list of agents that are connected to the embedded broker of this process. */
  announceAgents(): void
  /** True if agents can connect to the broker. */
  isBrokerListening(): boolean
  /** Resolves when no background task runs. */
  settled(): Promise<void>
}

/** What this process knows about the other processes of the cloud. */
export interface OtherProcesses {
  siblings?: Siblings | undefined
  /** True if another process holds the broker. Default: never. */
  isBrokerElsewhere?: (() => boolean) | undefined
}

/**
 * Connects the broker with the inbox for messages of agents and with the announcements
 * (store-announcements.ts).
 */
export function agentMessages(
  database: Database,
  services: () => Services,
  { siblings, isBrokerElsewhere = () => false }: OtherProcesses = {},
): AgentMessages {
  let broker: AgentBroker | undefined
  const tasks = new BackgroundTasks(() => services().log)
  const stores = new StoreAnnouncements({ database, services, tasks })
  const publish = ({ storeId, agentId }: AgentAddress, name: 'ack' | 'command', payload: string) =>
    broker?.publish({ topic: agentTopic(storeId, agentId, name), payload, retain: false })
  const inbox = new AgentInbox({
    database,
    services,
    tasks,
    mayReorder: () => broker?.mayReorder?.() ?? false,
    acknowledge: (to, ack) => publish(to, 'ack', ack),
  })

  async function refreshConnected(attached: AgentBroker): Promise<void> {
    const sinceMs = services().platform.clock.wall() - SEEN_MS
    // Some brokers do not send the retained `state` messages of agents after a subscription with wildcards. So agents
    // that recently sent something to the cloud count as connected.
    if (attached.assumeConnected) attached.assumeConnected(await agentsSeenSince(database.reads, sinceMs))
    await stores.refresh('changed')
  }

  function sendCommand(agent: AgentAddress, command: AgentCommand): void {
    if (!broker || services().authority.clock.untrustedReason() !== null) return
    publish(agent, 'command', signCommand(agent.agentId, command, services()))
  }

  /** If this process has a broker, runs `work`. Otherwise sends the message to the worker that has the broker. */
  const here = <T>(work: () => T, message: SiblingMessage): T | undefined =>
    broker ? work() : void siblings?.send(message)
  const agents = new SiblingAgents(siblings, () => broker)
  const channel: AgentChannel = {
    storeChanged: (storeId) => here(() => stores.storeChanged(storeId), { kind: 'storeChanged', storeId }),
    itemsChanged: (storeId) =>
      here(() => stores.itemsChanged(storeId), { kind: 'itemsChanged', storeId }) ?? Promise.resolve(),
    keysChanged: () => here(() => void tasks.track(stores.refresh('all')), { kind: 'keysChanged' }),
    agentRevoked: (agent) =>
      here(
        () => {
          // If the connection ends first, the agent learns of its revocation at the next login.
          sendCommand(agent, { command: 'revoke' })
          broker?.disconnect(agent.agentId)
        },
        { kind: 'revoked', agent },
      ),
    sendCommand: (agent, command) => here(() => sendCommand(agent, command), { kind: 'command', agent, command }),
    isConnected: (agentId) => agents.isConnected(agentId),
  }
  siblings?.subscribe((message) => {
    if (broker) receive(channel, message)
  })
  return {
    channel,
    announceAgents: () => agents.announce(),
    isBrokerListening: () => broker?.isListening() ?? isBrokerElsewhere(),
    attach(attached) {
      broker = attached
      stores.attach(attached)
      // An outside broker may have lost its retained messages while agents stayed connected.
      if (attached) void tasks.track(refreshConnected(attached))
    },
    refresh: (what) => stores.refresh(what),
    async cutRevoked() {
      const connected = [...(broker?.connected().keys() ?? [])]
      if (connected.length === 0) return
      for (const agentId of await revokedAmong(database.reads, connected)) broker?.disconnect(agentId)
    },
    settled: () => tasks.settled(),
    hooks: hooksOf({ database, services, stores, inbox }),
  }
}

/** Does the work that a worker without a broker requested. */
function receive(channel: AgentChannel, message: SiblingMessage): void {
  switch (message.kind) {
    case 'storeChanged':
      return channel.storeChanged(message.storeId)
    case 'itemsChanged':
      return void channel.itemsChanged(message.storeId)
    case 'keysChanged':
      return channel.keysChanged()
    case 'revoked':
      return channel.agentRevoked(message.agent)
    case 'command':
      return channel.sendCommand(message.agent, message.command)
    default:
  }
}

interface HookParts {
  database: Database
  services: () => Services
  stores: StoreAnnouncements
  inbox: AgentInbox
}

/** Implements the callbacks of the broker. */
function hooksOf({ database, services, stores, inbox }: HookParts): BrokerHooks {
  return {
    async authenticate(agentId, password) {
      const { platform, lastSeen } = services()
      try {
        const agent = await database.write((db) =>
          assertAgent({ db, services: services(), nowMs: platform.clock.wall() }, agentId, password),
        )
        lastSeen.note(agent.agent_id, platform.clock.wall())
        return { storeId: agent.store_id, agentId: agent.agent_id, accountId: agent.tenant.split('.')[0] ?? '' }
      } catch (error) {
        if (error instanceof Failure) return undefined
        throw error
      }
    },
    onConnected: (agent) => stores.connected(agent.storeId),
    onDisconnected: (agent) => inbox.receiveEnd(agent),
    onActivity: (agentId) => services().lastSeen.note(agentId, services().platform.clock.wall()),
    onMessage(from, topic, payload) {
      const { name } = parseTopic(topic) ?? {}
      if (name === 'state') inbox.receiveState(from, payload)
      if (name === 'events') inbox.receiveBatch(from, payload)
    },
  }
}

/** Time after which the holder of the broker checks again for new or ended connections, ms. */
export const CONNECTED_MS = 500

/** Tracks which agents are connected to the embedded broker, also if another worker holds the broker. */
class SiblingAgents {
  readonly #siblings: Siblings | undefined
  readonly #broker: () => AgentBroker | undefined
  #elsewhere: ReadonlySet<string> = new Set()
  #announced = ''

  constructor(siblings: Siblings | undefined, broker: () => AgentBroker | undefined) {
    this.#siblings = siblings
    this.#broker = broker
    siblings?.subscribe((message) => {
      if (message.kind === 'agents') this.#elsewhere = new Set(message.connected)
      if (message.kind === 'hello') this.#announced = ''
    })
    siblings?.send({ kind: 'hello' })
  }

  isConnected(agentId: string): boolean {
    return this.#broker()?.connected().has(agentId) ?? this.#elsewhere.has(agentId)
  }

  /**
   * If this process holds the embedded broker, sends the list of connected agents to the other workers if the list has
   * changed.
   */
  announce(): void {
    const broker = this.#broker()
    if (!broker) this.#announced = ''
    if (!broker || broker.owns) return
    const connected = [...broker.connected().keys()]
    const now = `agents ${connected.join(' ')}`
    if (now === this.#announced) return
    this.#announced = now
    this.#siblings?.send({ kind: 'agents', connected })
  }
}
