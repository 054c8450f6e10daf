import { createServer, type AddressInfo, type Server } from 'node:net'
import { Aedes, type AuthenticateError, type Client } from 'aedes'
import { limitedLog } from '../../policy/limited-log.ts'
import type { Platform } from '../../policy/platform.ts'
import { mayPublish, maySubscribe, type AgentAddress } from '../../policy/topics.ts'
import { BACKLOG, waitingConnections } from '../foundation/waiting-connections.ts'
import type { Log } from '../foundation/log.ts'
import { agentPlaces } from './agent-places.ts'
import { BROKER_LIMITS, type BrokerLimits } from './broker-limits.ts'
import { packetGuard } from './packet-guard.ts'

/** A message as rooms see it. */
export interface Message {
  topic: string
  payload: string
  retain: boolean
}

/** The broker as the cloud uses it; nothing rests on it, everything that matters is signed and can be fetched. */
export interface Broker {
  readonly port: number
  /** False after the listener was closed or failed. */
  isListening(): boolean
  publish(message: Message): void
  /** Who is connected, by agentId. */
  connected(): ReadonlyMap<string, AgentAddress>
  /** Cuts the line of a revoked agent at once, and frees its place. */
  disconnect(agentId: string): void
  close(): Promise<void>
}

export interface BrokerHooks {
  /** The agent that this password belongs to, or undefined. */
  authenticate(agentId: string, password: string): Promise<AgentAddress | undefined>
  onMessage(from: AgentAddress, topic: string, payload: string): void
  onConnected(agent: AgentAddress): void
  /** Bytes of a packet of this agent arrived, pings and acknowledgements included. A will that the broker publishes is none. */
  onActivity(agentId: string): void
}

/** From the connection to the end of the login, ms. */
const LOGIN_WITHIN_MS = 5_000
const DRAIN_TIMEOUT_MS = 10_000
/** CONNACK codes of MQTT 3.1.1 §3.2.2.3. */
const SERVER_UNAVAILABLE = 3
const BAD_USERNAME_OR_PASSWORD = 4

export interface BrokerParts {
  log: Log
  platform: Pick<Platform, 'clock' | 'timers'>
  limits?: BrokerLimits
}

/** The broker inside the cloud process: every connection is bound to one agent and its topics. */
export async function startBroker(
  listen: { host: string; port: number },
  hooks: BrokerHooks,
  { log, platform, limits = BROKER_LIMITS }: BrokerParts,
): Promise<Broker> {
  const agents = new WeakMap<Client, AgentAddress>()
  const online = new Map<string, AgentAddress>()
  const lines = new Map<string, Client>()
  const guards = new WeakMap<object, { accept(agentId: string): void }>()
  const strangers = waitingConnections({ most: limits.strangers, mostOfNetwork: limits.strangersOfNetwork })
  const refusals = limitedLog((fields, message) => log.warn(fields, message), platform)
  const places = agentPlaces(limits.agents, platform.clock, (agentId) => lines.has(agentId))

  const aedes = await Aedes.createBroker({
    drainTimeout: DRAIN_TIMEOUT_MS,
    keepaliveLimit: 300,
    maxInflightInbound: 64,
    maxTopicLevels: 12,
    maxClientsIdLength: 64,
    authenticate: (client, username, password, done) => {
      // A session that outlives its connection would be kept, with all it misses, in memory and without a limit.
      if (!client.clean) return done(refusal('sessions are not kept', SERVER_UNAVAILABLE), false)
      const refused = refusal('not an agent of this cloud', BAD_USERNAME_OR_PASSWORD)
      const full = refusal(`all ${limits.agents} places for agents are taken`, SERVER_UNAVAILABLE)
      // The client id is bound to the credential: nobody throws another agent off by taking its name.
      if (username === undefined || username !== client.id || !password) return done(refused, false)
      hooks.authenticate(username, password.toString()).then(
        (agent) => {
          if (!agent) return done(refused, false)
          if (!places.take(agent.agentId)) return done(full, false)
          agents.set(client, agent)
          guards.get(client.conn)?.accept(agent.agentId)
          done(null, true)
        },
        (error: unknown) => {
          log.error({ err: error }, 'a broker login could not be checked')
          done(refused, false)
        },
      )
    },
    // Asked for wills too, which are published in a client's name when it is gone.
    authorizePublish: (client, packet, done) => {
      const agent = client && agents.get(client)
      if (!agent || !mayPublish(agent, packet.topic)) return done(new Error('not your topic'))
      if (packet.retain && !packet.topic.endsWith('/state')) return done(new Error('not to be retained'))
      done(null)
    },
    authorizeSubscribe: (client, subscription, done) => {
      const agent = agents.get(client)
      done(null, agent && maySubscribe(agent, subscription.topic) ? subscription : null)
    },
  })

  aedes.on('clientReady', (client) => {
    const agent = agents.get(client)
    if (!agent) return
    online.set(agent.agentId, agent)
    lines.set(agent.agentId, client)
    hooks.onConnected(agent)
  })
  aedes.on('clientDisconnect', (client) => {
    const agent = agents.get(client)
    if (agent && online.get(agent.agentId) === agent) online.delete(agent.agentId)
    if (!agent || lines.get(agent.agentId) !== client) return
    lines.delete(agent.agentId)
    places.leave(agent.agentId)
  })
  aedes.on('publish', (packet, client) => {
    const agent = client && agents.get(client)
    if (agent) hooks.onMessage(agent, packet.topic, packet.payload.toString())
  })
  aedes.on('clientError', (client, error) =>
    refusals.write({ client: client.id, reason: error.message }, 'a broker client failed'),
  )

  const server = createServer((socket) => {
    const from = socket.remoteAddress ?? ''
    const onCut = (why: string) => refusals.write({ from, why }, 'a broker connection was cut')
    const cut = (why: string) => {
      onCut(why)
      socket.destroy()
    }
    const leave = strangers.add(from, () => cut('too many connections wait for their login'))
    const cancel = platform.timers.after(LOGIN_WITHIN_MS, () => cut(`no login within ${LOGIN_WITHIN_MS / 1_000} s`))
    const isKnown = () => {
      cancel()
      leave()
    }
    socket.setNoDelay(true)
    const guard = packetGuard(socket, onCut)
    socket.once('close', isKnown)
    guards.set(guard, {
      accept(agentId) {
        guard.accept()
        isKnown()
        socket.on('data', () => hooks.onActivity(agentId))
      },
    })
    aedes.handle(guard)
  })
  const port = await listening(server, listen).catch((error: unknown) => {
    aedes.close()
    throw error
  })
  return {
    port,
    isListening: () => server.listening,
    publish: ({ topic, payload, retain }) =>
      aedes.publish({ cmd: 'publish', topic, payload: Buffer.from(payload), qos: 1, retain, dup: false }, (error) => {
        if (error) log.warn({ topic, reason: error.message }, 'a message could not be published')
      }),
    connected: () => online,
    disconnect(agentId) {
      places.forget(agentId)
      lines.get(agentId)?.close()
    },
    close: () =>
      new Promise((resolve) => {
        refusals.stop()
        server.close()
        aedes.close(() => resolve())
      }),
  }
}

function refusal(message: string, returnCode: number): AuthenticateError {
  return Object.assign(new Error(message), { returnCode }) as AuthenticateError
}

function listening(server: Server, { host, port }: { host: string; port: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: BACKLOG }, () => resolve((server.address() as AddressInfo).port))
  })
}
