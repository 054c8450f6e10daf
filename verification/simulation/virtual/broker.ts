import type { Broker, BrokerHooks, Message } from '../../../cloud/messaging/embedded-broker.ts'
import type { MqttLine, MqttLineOptions } from '../../../edge-agent/link/wire/mqtt-line.ts'
import { mayPublish, maySubscribe, type AgentAddress } from '../../../policy/topics.ts'
import type { Chance } from './chance.ts'
import type { Process } from './machine.ts'
import type { Scheduler } from './scheduler.ts'
import type { Wire } from './wire.ts'

/**
 * The broker in the cloud's process, with the weakness of real ones: QoS 1 messages are lost, doubled and
 * overtaken, a restart forgets everything, and what is retained may be old.
 */
export interface SimBroker extends Broker {
  /** An agent's line over its wire. Rejects when refused; waits while nothing comes back. */
  open(options: MqttLineOptions, by: Process, wire: Wire): Promise<MqttLine>
  /** Throws all lines off and forgets what was retained. */
  restart(): void
}

interface Client {
  agent: AgentAddress
  topics: Set<string>
  wire: Wire
  by: Process
  options: MqttLineOptions
  isOpen: boolean
  /** The agent has its line: only then can that be closed. */
  isHandedOut: boolean
}

/** A socket's end is noticed at once, or when the line was silent for one and a half keepalives, ms. */
const SILENCE_MS = 22_500

interface BrokerParts {
  scheduler: Scheduler
  chance: Chance
  /** A listener threw: in a real process nobody would catch that, and it would end. */
  onThrow(agentId: string, by: Process, error: unknown): void
}

/** A broker for the cloud process `home`. */
export function simBroker(
  hooks: BrokerHooks,
  home: Process,
  { scheduler, chance: world, onThrow }: BrokerParts,
): SimBroker {
  const chance = world.fork('broker')
  const clients = new Map<string, Client>()
  let retained = new Map<string, Message>()

  function deliver(client: Client, { topic, payload }: Message): void {
    client.wire.carry(true, () => {
      if (!client.isOpen || !client.by.isAlive || !home.isAlive) return
      try {
        client.options.onMessage(topic, payload)
      } catch (error) {
        onThrow(client.agent.agentId, client.by, error)
      }
    })
  }

  /** The connection is gone; the agent notices after `afterMs`. */
  function end(client: Client, why: string, afterMs: number): void {
    if (!client.isOpen) return
    client.isOpen = false
    if (clients.get(client.agent.agentId) === client) clients.delete(client.agent.agentId)
    scheduler.after(afterMs, () => {
      if (client.by.isAlive && client.isHandedOut) client.options.onClosed(why)
    })
  }

  function lineOf(client: Client): MqttLine {
    return {
      publish(topic, payload) {
        if (!client.by.isAlive) return
        client.wire.carry(false, () => {
          if (!client.isOpen || !home.isAlive) return
          hooks.onActivity(client.agent.agentId)
          if (mayPublish(client.agent, topic)) hooks.onMessage(client.agent, topic, payload)
        })
      },
      subscribe(topics) {
        client.wire.carry(false, () => {
          if (!client.isOpen || !home.isAlive) return
          for (const topic of topics.filter((t) => maySubscribe(client.agent, t))) {
            client.topics.add(topic)
            const kept = retained.get(topic)
            if (kept) deliver(client, kept)
          }
        })
      },
      close: () => end(client, 'closed', 1),
    }
  }

  async function connect(
    options: MqttLineOptions,
    by: Process,
    wire: Wire,
    done: (line: MqttLine) => boolean,
    refuse: (why: Error) => boolean,
  ): Promise<void> {
    const agent = await hooks.authenticate(options.clientId, options.password)
    if (!home.isAlive) return
    if (!agent || options.username !== options.clientId)
      return wire.carry(true, () => void refuse(new Error('not an agent of this cloud')))
    const known = clients.get(agent.agentId)
    if (known) end(known, 'taken over', 1)
    const client: Client = { agent, topics: new Set(), wire, by, options, isOpen: true, isHandedOut: false }
    clients.set(agent.agentId, client)
    by.onEnd(() => end(client, 'gone', 1))
    wire.onCut(() => end(client, 'the network is gone', chance.happens(0.5) ? 1 : chance.between(1, SILENCE_MS)))
    wire.carry(true, () => {
      if (!client.isOpen) return void refuse(new Error('the broker closed the line'))
      if (done(lineOf(client))) client.isHandedOut = true
    })
    hooks.onConnected(agent)
  }

  function endAll(why: string): void {
    for (const client of clients.values()) end(client, why, chance.happens(0.8) ? 1 : chance.between(1, SILENCE_MS))
    retained = new Map()
  }

  home.onEnd(() => endAll('the broker is gone'))
  return {
    port: 1883,
    open: (options, by, wire) =>
      new Promise((resolve, reject) => {
        let isOver = false
        const once =
          <T>(act: (value: T) => void) =>
          (value: T) => {
            if (isOver || !by.isAlive) return false
            isOver = true
            act(value)
            return true
          }
        const refuse = once(reject)
        scheduler.after(3_000, () => refuse(new Error('no answer from the broker')))
        wire.carry(false, () => {
          if (home.isAlive) connect(options, by, wire, once(resolve), refuse).catch(refuse)
          else refuse(new Error('connection refused'))
        })
      }),
    isListening: () => home.isAlive,
    publish(message) {
      if (!home.isAlive) return
      if (message.retain) retained.set(message.topic, message)
      for (const client of clients.values()) if (client.topics.has(message.topic)) deliver(client, message)
    },
    connected: () => new Map([...clients].map(([id, client]) => [id, client.agent])),
    disconnect(agentId) {
      const client = clients.get(agentId)
      if (client) end(client, 'cut by the cloud', 1)
    },
    restart: () => endAll('the broker has restarted'),
    close: () => {
      endAll('closed')
      return Promise.resolve()
    },
  }
}
