import { agentTopic, parseTopic, type AgentAddress } from '../../policy/mqtt-topics.ts'
import { agentsSeenSince, revokedAmong } from '../agent-identity/agent-queries.ts'
import { signCommand } from '../agents/documents/pending-commands.ts'
import { assertAgent } from '../agents/login/agent-login.ts'
import type { AgentChannel, AgentCommand } from '../foundation/agent-channel.ts'
import { Failure } from '../foundation/failure.ts'
import type { SiblingMessage, Siblings } from '../foundation/siblings.ts'
import type { Services } from '../operations/operation.ts'
import type { Database } from '../persistence/database.ts'
import { AgentInbox } from './agent-inbox.ts'
import type { AgentBroker, BrokerHooks } from './embedded-broker.ts'
import { SiblingAgents } from './sibling-agents.ts'
import { StoreAnnouncements, type AnnouncementScope } from './store-announcements.ts'
import { BackgroundTasks } from './background-tasks.ts'

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
 * Connects the broker with the inbox for messages of agents (agent-inbox.ts) and with the announcements
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
    onActivity: (agentId) => services().lastSeen.note(agentId, services().platform.clock.wall()),
    onMessage(from, topic, payload) {
      const { name } = parseTopic(topic) ?? {}
      if (name === 'state') inbox.receiveState(from, payload)
      if (name === 'events') inbox.receiveBatch(from, payload)
    },
  }
}
