import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { Aedes, type AuthenticateError, type Client } from 'aedes'
import { rateLimitedLog, type RateLimitedLog } from '../../../policy/rate-limited-log.ts'
import type { Platform, Clock } from '../../../policy/platform.ts'
import { mayPublish, maySubscribe, type AgentAddress } from '../../../policy/mqtt-topics.ts'
import type { Log } from '../../platform/foundation/log.ts'
import type { ServerCertificate } from '../../platform/foundation/config.ts'
import {
  watchHandshakes,
  BACKLOG,
  waitingConnections,
  type WaitingConnections,
} from '../../platform/foundation/waiting-connections.ts'
import {
  BROKER_LIMITS,
  type BrokerLimits,
  loginBudget,
  PacketBudgets,
  packetGuard,
  type PacketGuard,
} from './packet-guard.ts'

/** Connection slots for agents at the broker. */
interface AgentSlots {
  /** Reserves a slot for an authenticated agent. Returns false if all slots, or those of its account, are reserved. */
  reserve(agentId: string, accountId: string): boolean
  /** Records the end of the agent's connection. Its slot stays reserved for a day. */
  disconnected(agentId: string): void
  /** Frees the slot of a revoked agent. */
  release(agentId: string): void
}

/** Time for which the slot of a disconnected agent stays reserved, ms. */
export const RESERVED_MS = 24 * 3_600_000

/**
 * Makes `limit` slots, of which one account gets half. If all slots are reserved, `reserve` frees the slots of agents
 * that were disconnected for a day. If no slot becomes free, `reserve` rejects the new agent.
 */
export function agentSlots(
  limit: number,
  clock: Pick<Clock, 'elapsed'>,
  isConnected: (agentId: string) => boolean,
): AgentSlots {
  /** Last connect or disconnect of each agent, oldest first. */
  const seen = new Map<string, { atMs: number; accountId: string }>()
  const ofAccount = new Map<string, number>()

  function count(accountId: string, more: 1 | -1): void {
    const sum = (ofAccount.get(accountId) ?? 0) + more
    if (sum > 0) ofAccount.set(accountId, sum)
    else ofAccount.delete(accountId)
  }

  function release(agentId: string): void {
    const known = seen.get(agentId)
    if (known && seen.delete(agentId)) count(known.accountId, -1)
  }

  function note(agentId: string, accountId: string): void {
    release(agentId)
    seen.set(agentId, { atMs: clock.elapsed(), accountId })
    count(accountId, 1)
  }

  function dropAbsent(): void {
    const beforeMs = clock.elapsed() - RESERVED_MS
    for (const [agentId, { atMs }] of seen) {
      if (atMs > beforeMs) return
      if (!isConnected(agentId)) release(agentId)
    }
  }

  return {
    reserve(agentId, accountId) {
      const isFull = () => seen.size >= limit || (ofAccount.get(accountId) ?? 0) >= Math.ceil(limit / 2)
      if (!seen.has(agentId) && isFull()) dropAbsent()
      if (!seen.has(agentId) && isFull()) return false
      note(agentId, accountId)
      return true
    },
    disconnected(agentId) {
      const known = seen.get(agentId)
      if (known) note(agentId, known.accountId)
    },
    release,
  }
}

/** A message to publish. */
export interface Message {
  topic: string
  payload: string
  retain: boolean
}

/**
 * The MQTT broker. Agents need not trust the broker: documents are signed, and agents can also fetch documents over
 * HTTP.
 */
export interface Broker {
  readonly port: number
  /** False after the listener was closed or failed. */
  isListening(): boolean
  publish(message: Message): void
  /** Connected agents by agentId. */
  connected(): ReadonlyMap<string, AgentAddress>
  /** Disconnects a revoked agent at once and frees its slot. */
  disconnect(agentId: string): void
  /** True if several processes receive batches of one agent. Absent: false. */
  mayReorder?(): boolean
  /** Counts these agents as connected, although the outside broker has not announced them. */
  assumeConnected?(agents: readonly AgentAddress[]): void
  /** True if this process publishes for the store. Absent: it publishes for all stores. */
  owns?(storeId: string): boolean
  close(): Promise<void>
}

/** The part of a broker that the code for agent messages uses. Embedded and outside brokers implement this type. */
export type AgentBroker = Omit<Broker, 'port'>

export interface BrokerHooks {
  /** Resolves to the address of the agent if the password is right, else to undefined. */
  authenticate(agentId: string, password: string): Promise<(AgentAddress & { accountId: string }) | undefined>
  onMessage(from: AgentAddress, topic: string, payload: string): void
  onConnected(agent: AgentAddress): void
  /** Called when the last connection of the agent has ended, also without a last will. */
  onDisconnected(agent: AgentAddress): void
  /**
   * Called for each packet that the agent sends, also for pings. The broker does not call it for last wills, which the
   * broker publishes itself.
   */
  onActivity(agentId: string): void
}

/** Maximum topics to which a connection subscribes. */
const TOPICS_LIMIT = 32
/** Time limit for the login, ms. */
const LOGIN_WITHIN_MS = 5_000
const DRAIN_TIMEOUT_MS = 10_000
/** CONNACK codes of MQTT 3.1.1 §3.2.2.3. */
const SERVER_UNAVAILABLE = 3
const BAD_USERNAME_OR_PASSWORD = 4

interface BrokerParts {
  log: Log
  platform: Pick<Platform, 'clock' | 'timers'>
  limits?: BrokerLimits
}

/**
 * Starts the broker in the cloud process. Each connection belongs to one agent and may use only the topics of that
 * agent.
 */
export async function startBroker(
  listen: { host: string; port: number; certificate?: ServerCertificate | undefined },
  hooks: BrokerHooks,
  parts: BrokerParts,
): Promise<Broker> {
  const clients = new AgentClients(hooks, parts)
  const { aedes, refusals } = await mqttOf(clients, hooks, parts)
  const { unauthenticated, unauthenticatedPerNetwork } = parts.limits ?? BROKER_LIMITS
  const waiting = waitingConnections({ most: unauthenticated, mostOfNetwork: unauthenticatedPerNetwork })
  const onCutOf = (socket: Socket) => {
    const from = socket.remoteAddress ?? ''
    return (why: string) => refusals.write({ from, why }, 'a broker connection was cut')
  }
  const server = serverOf(
    listen.certificate,
    (socket) => aedes.handle(clients.admit(socket, waiting, onCutOf(socket))),
    (socket) => clients.wait(socket, waiting, onCutOf(socket)),
  )
  const port = await listening(server, listen).catch((error: unknown) => {
    aedes.close()
    throw error
  })
  return {
    port,
    isListening: () => server.listening,
    publish: ({ topic, payload, retain }) =>
      aedes.publish({ cmd: 'publish', topic, payload: Buffer.from(payload), qos: 1, retain, dup: false }, (error) => {
        if (error) parts.log.warn({ topic, reason: error.message }, 'a message to agents could not be published')
      }),
    connected: () => clients.online,
    disconnect: (agentId) => clients.disconnect(agentId),
    close: () =>
      new Promise((resolve) => {
        refusals.stop()
        server.close()
        aedes.close(() => resolve())
      }),
  }
}

/** Creates the MQTT part of the broker. `clients` checks logins and topics; `hooks` receives messages. */
async function mqttOf(
  clients: AgentClients,
  hooks: BrokerHooks,
  { log, platform }: BrokerParts,
): Promise<{ aedes: Aedes; refusals: RateLimitedLog }> {
  const refusals = rateLimitedLog((fields, message) => log.warn(fields, message), platform)
  const aedes = await Aedes.createBroker({
    drainTimeout: DRAIN_TIMEOUT_MS,
    keepaliveLimit: 300,
    maxInflightInbound: 64,
    maxTopicLevels: 12,
    maxClientsIdLength: 64,
    authenticate: (client, username, password, done) => clients.authenticate(client, username, password, done),
    // Also called for wills, which the broker publishes for a disconnected client.
    authorizePublish: (client, packet, done) => {
      const agent = client && clients.agentOf(client)
      if (!agent || !mayPublish(agent, packet.topic)) return done(new Error('not your topic'))
      // Who reads the state is connected: a retained one would stay in memory for ever, also of a revoked agent.
      packet.retain = false
      done(null)
    },
    authorizeSubscribe: (client, subscription, done) => {
      const agent = clients.agentOf(client)
      const isFirst = clients.isFirstSubscription(client, subscription.topic)
      done(null, agent && isFirst && maySubscribe(agent, subscription.topic) ? subscription : null)
    },
  })
  aedes.on('clientReady', (client) => clients.ready(client))
  aedes.on('clientDisconnect', (client) => clients.disconnected(client))
  aedes.on('publish', (packet, client) => {
    const agent = client && clients.agentOf(client)
    if (agent) hooks.onMessage(agent, packet.topic, packet.payload.toString())
  })
  aedes.on('clientError', (client, error) =>
    refusals.write({ client: client.id, reason: error.message }, 'a broker client failed'),
  )
  return { aedes, refusals }
}

/** Maps connections to agents, from login to disconnect. */
class AgentClients {
  readonly #hooks: BrokerHooks
  readonly #parts: BrokerParts
  readonly #limits: BrokerLimits
  readonly #agents = new WeakMap<Client, AgentAddress>()
  readonly #online = new Map<string, AgentAddress>()
  readonly #clients = new Map<string, Client>()
  readonly #guards = new WeakMap<object, { accept(agentId: string, accountId: string): void }>()
  readonly #subscribed = new WeakMap<Client, Set<string>>()
  readonly #budgets: PacketBudgets
  readonly #slots: AgentSlots

  constructor(hooks: BrokerHooks, parts: BrokerParts) {
    this.#hooks = hooks
    this.#parts = parts
    this.#limits = parts.limits ?? BROKER_LIMITS
    this.#budgets = new PacketBudgets(parts.platform.clock)
    this.#slots = agentSlots(this.#limits.agents, parts.platform.clock, (agentId) => this.#clients.has(agentId))
  }

  /** Each subscription brings all retained documents, so a connection may subscribe to a topic once. */
  isFirstSubscription(client: Client, topic: string): boolean {
    const known = this.#subscribed.get(client) ?? new Set()
    this.#subscribed.set(client, known)
    // More topics than an agent may read.
    if (known.has(topic) || known.size >= TOPICS_LIMIT) return false
    known.add(topic)
    return true
  }

  get online(): ReadonlyMap<string, AgentAddress> {
    return this.#online
  }

  agentOf(client: Client): AgentAddress | undefined {
    return this.#agents.get(client)
  }

  /**
   * Wraps a new connection. Cuts the connection if no agent logs in within 5 s, or if too many connections wait for a
   * login.
   */
  admit(socket: Socket, waiting: WaitingConnections, onCut: (why: string) => void): PacketGuard {
    const endWait = this.wait(socket, waiting, onCut)
    socket.setNoDelay(true)
    const { clock, timers } = this.#parts.platform
    const guard = packetGuard(socket, { budget: loginBudget(clock), timers, onRefused: onCut })
    socket.once('close', endWait)
    this.#guards.set(guard, {
      accept: (agentId, accountId) => {
        guard.accept(this.#budgets.of(agentId, accountId))
        endWait()
        socket.on('data', () => this.#hooks.onActivity(agentId))
      },
    })
    return guard
  }

  /** Cuts the connection after 5 s, or if too many connections wait. The returned function ends the wait. */
  wait(socket: Socket, waiting: WaitingConnections, onCut: (why: string) => void): () => void {
    const cut = (why: string) => {
      onCut(why)
      socket.destroy()
    }
    const leave = waiting.add(socket.remoteAddress ?? '', () => cut('too many connections wait for their login'))
    const cancel = this.#parts.platform.timers.after(LOGIN_WITHIN_MS, () =>
      cut(`no login within ${LOGIN_WITHIN_MS / 1_000} s`),
    )
    return () => {
      cancel()
      leave()
    }
  }

  authenticate(
    client: Client,
    username: string | undefined,
    password: Buffer | undefined,
    done: (error: AuthenticateError | null, success: boolean | null) => void,
  ): void {
    // Rejects persistent sessions: the broker would queue their missed messages in memory without a limit.
    if (!client.clean) return done(refusal('sessions are not kept', SERVER_UNAVAILABLE), false)
    const refused = refusal('not an agent of this cloud', BAD_USERNAME_OR_PASSWORD)
    const full = refusal(
      `all ${this.#limits.agents} slots for agents, or those of its account, are taken`,
      SERVER_UNAVAILABLE,
    )
    // The client id must equal the user name: otherwise one agent could displace another.
    if (username === undefined || username !== client.id || !password) return done(refused, false)
    this.#hooks.authenticate(username, password.toString()).then(
      (agent) => {
        if (!agent) return done(refused, false)
        if (!this.#slots.reserve(agent.agentId, agent.accountId)) return done(full, false)
        const { accountId, ...address } = agent
        this.#agents.set(client, address)
        this.#guards.get(client.conn)?.accept(agent.agentId, accountId)
        done(null, true)
      },
      (error: unknown) => {
        this.#parts.log.error({ err: error }, 'a broker login could not be checked')
        done(refused, false)
      },
    )
  }

  ready(client: Client): void {
    const agent = this.#agents.get(client)
    if (!agent) return
    this.#online.set(agent.agentId, agent)
    this.#clients.set(agent.agentId, client)
    this.#hooks.onConnected(agent)
  }

  disconnected(client: Client): void {
    const agent = this.#agents.get(client)
    if (agent && this.#online.get(agent.agentId) === agent) this.#online.delete(agent.agentId)
    if (!agent || this.#clients.get(agent.agentId) !== client) return
    this.#clients.delete(agent.agentId)
    this.#slots.disconnected(agent.agentId)
    this.#hooks.onDisconnected(agent)
  }

  /** Cuts the agent's connection and frees its slot. */
  disconnect(agentId: string): void {
    this.#slots.release(agentId)
    this.#clients.get(agentId)?.close()
  }
}

function refusal(message: string, returnCode: number): AuthenticateError {
  return Object.assign(new Error(message), { returnCode }) as AuthenticateError
}

/** A TCP server, or a TLS server if there is a certificate. `onHandshake`: see `watchHandshakes`. */
function serverOf(
  certificate: ServerCertificate | undefined,
  onConnected: (socket: Socket) => void,
  onHandshake: (socket: Socket) => () => void,
): Server {
  if (!certificate) return createServer(onConnected)
  const server = createTlsServer({ ...certificate.options(), handshakeTimeout: LOGIN_WITHIN_MS }, onConnected)
  certificate.attach(server)
  watchHandshakes(server, onHandshake)
  return server
}

function listening(server: Server, { host, port }: { host: string; port: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // `exclusive`: a worker opens this port itself and does not share it, because no other worker has a broker.
    server.listen({ port, host, backlog: BACKLOG, exclusive: true }, () =>
      resolve((server.address() as AddressInfo).port),
    )
  })
}
