import { createServer, type AddressInfo, type Server } from 'node:net'
import { Aedes, type AuthenticateError, type Client } from 'aedes'
import { mayPublish, maySubscribe, type AgentAddress } from '../../policy/topics.ts'
import { networkOf } from '../http/network-of.ts'
import type { Log } from '../log.ts'
import { packetGuard, type PacketGuard } from './packet-guard.ts'

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
  /** Cuts the agent's line at once. */
  disconnect(agentId: string): void
  close(): Promise<void>
}

export interface BrokerHooks {
  /** The agent that this password belongs to, or undefined. */
  authenticate(agentId: string, password: string): Promise<AgentAddress | undefined>
  onMessage(from: AgentAddress, topic: string, payload: string): void
  onConnected(agent: AgentAddress): void
}

const CONNECT_TIMEOUT_MS = 5_000
const DRAIN_TIMEOUT_MS = 10_000
const MAX_CONNECTIONS = 2_000
/** CONNACK codes of MQTT 3.1.1 §3.2.2.3. */
const SERVER_UNAVAILABLE = 3
const BAD_USERNAME_OR_PASSWORD = 4
/** Connections from one address, or its network, that have not said yet who they are. */
const STRANGERS_LIMIT = 64

/** The broker inside the cloud process: every connection is bound to one agent and its topics. */
export async function startBroker(
  listen: { host: string; port: number },
  hooks: BrokerHooks,
  log: Log,
): Promise<Broker> {
  const agents = new WeakMap<Client, AgentAddress>()
  const online = new Map<string, AgentAddress>()
  const lines = new Map<string, Client>()
  const guards = new WeakMap<object, Pick<PacketGuard, 'accept'>>()
  const strangers = countStrangers()

  const aedes = await Aedes.createBroker({
    connectTimeout: CONNECT_TIMEOUT_MS,
    drainTimeout: DRAIN_TIMEOUT_MS,
    keepaliveLimit: 300,
    maxInflightInbound: 64,
    maxTopicLevels: 12,
    maxClientsIdLength: 64,
    authenticate: (client, username, password, done) => {
      // A session that outlives its connection would be kept, with all it misses, in memory and without a limit.
      if (!client.clean)
        return done(
          Object.assign(new Error('sessions are not kept'), { returnCode: SERVER_UNAVAILABLE }) as AuthenticateError,
          false,
        )
      const refused = Object.assign(new Error('not an agent of this cloud'), {
        returnCode: BAD_USERNAME_OR_PASSWORD,
      }) as AuthenticateError
      // The client id is bound to the credential: nobody throws another agent off by taking its name.
      if (username === undefined || username !== client.id || !password) return done(refused, false)
      hooks.authenticate(username, password.toString()).then(
        (agent) => {
          if (!agent) return done(refused, false)
          agents.set(client, agent)
          guards.get(client.conn)?.accept()
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
    if (agent && lines.get(agent.agentId) === client) lines.delete(agent.agentId)
  })
  aedes.on('publish', (packet, client) => {
    const agent = client && agents.get(client)
    if (agent) hooks.onMessage(agent, packet.topic, packet.payload.toString())
  })
  aedes.on('clientError', (client, error) =>
    log.warn({ client: client.id, reason: error.message }, 'a broker client failed'),
  )

  const server = createServer((socket) => {
    const from = socket.remoteAddress ?? ''
    const noLongerStrange = strangers.come(networkOf(from))
    if (!noLongerStrange) return void socket.destroy()
    socket.setNoDelay(true)
    const guard = packetGuard(socket, (why) => log.warn({ from, why }, 'a broker connection was cut'))
    socket.once('close', noLongerStrange)
    guards.set(guard, { accept: () => (guard.accept(), noLongerStrange()) })
    aedes.handle(guard)
  })
  server.maxConnections = MAX_CONNECTIONS
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
    disconnect: (agentId) => lines.get(agentId)?.close(),
    close: () =>
      new Promise((resolve) => {
        server.close()
        aedes.close(() => resolve())
      }),
  }
}

/** Counts those who have not said who they are, so that one address cannot take all places. */
function countStrangers(): { come(from: string): (() => void) | undefined } {
  const waiting = new Map<string, number>()
  return {
    /** Answers how to tell that this one is none any more; undefined when there are too many. */
    come(from) {
      const count = waiting.get(from) ?? 0
      if (count >= STRANGERS_LIMIT) return undefined
      waiting.set(from, count + 1)
      let isCounted = true
      return () => {
        if (!isCounted) return
        isCounted = false
        const left = (waiting.get(from) ?? 1) - 1
        if (left > 0) waiting.set(from, left)
        else waiting.delete(from)
      }
    },
  }
}

function listening(server: Server, { host, port }: { host: string; port: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve((server.address() as AddressInfo).port))
  })
}
