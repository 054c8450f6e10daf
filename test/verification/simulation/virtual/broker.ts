import type { Broker, BrokerHooks, Message } from '../../../../cloud/service/messaging/embedded-broker.ts'
import type { MqttLine, MqttLineOptions } from '../../../../edge-agent/link/wire/broker-line.ts'
import { mayPublish, maySubscribe, type AgentAddress } from '../../../../policy/mqtt-topics.ts'
import type { Chance } from './chance.ts'
import type { Process } from './machine.ts'
import type { Scheduler } from './scheduler.ts'
import type { Wire } from './wire.ts'

/**
 * The broker in the cloud's process, with the faults of real brokers. QoS 1 messages may be lost, duplicated and
 * reordered. A restart loses retained messages, and a retained message may be old.
 */
export interface SimBroker extends Broker {
  /** Connects an agent over its wire. Rejects if the broker refuses or sends no answer within 3,000 ms. */
  open(options: MqttLineOptions, by: Process, wire: Wire): Promise<MqttLine>
  /** Ends all connections and deletes retained messages. */
  restart(): void
}

interface Client {
  agent: AgentAddress
  topics: Set<string>
  wire: Wire
  by: Process
  options: MqttLineOptions
  isOpen: boolean
  /** True once the agent has received its connection. Before that, `onClosed` is not called. */
  isHandedOut: boolean
}

/** Longest time until a side notices that the connection ended: one and a half keepalives, ms. */
const SILENCE_MS = 22_500

interface BrokerParts {
  scheduler: Scheduler
  chance: Chance
  /** Called if a listener threw. A real process would end in this case. */
  onThrow(agentId: string, by: Process, error: unknown): void
}

/** Creates a broker in the cloud process `home`. */
export function simBroker(hooks: BrokerHooks, home: Process, parts2: BrokerParts): SimBroker {
  return new BrokerInCloud(hooks, home, parts2)
}

class BrokerInCloud implements SimBroker {
  readonly #hooks: BrokerHooks
  readonly #home: Process
  readonly #scheduler: BrokerParts['scheduler']
  readonly #onThrow: BrokerParts['onThrow']
  readonly #chance: Chance
  readonly #clients = new Map<string, Client>()
  #retained = new Map<string, Message>()
  readonly port: number = 1883

  constructor(hooks: BrokerHooks, home: Process, { scheduler, chance: world, onThrow }: BrokerParts) {
    this.#hooks = hooks
    this.#home = home
    this.#scheduler = scheduler
    this.#onThrow = onThrow
    this.#chance = world.fork('broker')
    this.#home.onEnd(() => this.#endAll('the broker is gone'))
  }

  open(options: MqttLineOptions, by: Process, wire: Wire): Promise<MqttLine> {
    return new Promise((resolve, reject) => {
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
      this.#scheduler.after(3_000, () => refuse(new Error('no answer from the broker')))
      wire.carry(false, () => {
        if (this.#home.isAlive) this.#connect(options, by, wire, once(resolve), refuse).catch(refuse)
        else refuse(new Error('connection refused'))
      })
    })
  }

  isListening(): boolean {
    return this.#home.isAlive
  }

  publish(message: Message): void {
    if (!this.#home.isAlive) return
    if (message.retain) this.#retained.set(message.topic, message)
    for (const client of this.#clients.values()) if (client.topics.has(message.topic)) this.#deliver(client, message)
  }

  connected(): ReadonlyMap<string, AgentAddress> {
    return new Map([...this.#clients].map(([id, client]) => [id, client.agent]))
  }

  disconnect(agentId: string): void {
    const client = this.#clients.get(agentId)
    if (client) this.#end(client, 'cut by the cloud', 1)
  }

  restart(): void {
    this.#endAll('the broker has restarted')
  }

  close(): Promise<void> {
    this.#endAll('closed')
    return Promise.resolve()
  }

  #deliver(client: Client, { topic, payload }: Message): void {
    client.wire.carry(true, () => {
      if (!client.isOpen || !client.by.isAlive || !this.#home.isAlive) return
      try {
        client.options.onMessage(topic, payload)
      } catch (error) {
        this.#onThrow(client.agent.agentId, client.by, error)
      }
    })
  }

  /** Ends a connection. The agent notices the end after `afterMs`. */
  #end(client: Client, why: string, afterMs: number): void {
    if (!client.isOpen) return
    client.isOpen = false
    if (this.#clients.get(client.agent.agentId) === client) this.#clients.delete(client.agent.agentId)
    this.#scheduler.after(afterMs, () => {
      if (client.by.isAlive && client.isHandedOut) client.options.onClosed(why)
    })
  }

  #lineOf(client: Client): MqttLine {
    return {
      publish: (topic, payload) => {
        if (!client.by.isAlive) return
        client.wire.carry(false, () => {
          if (!client.isOpen || !this.#home.isAlive) return
          this.#hooks.onActivity(client.agent.agentId)
          if (mayPublish(client.agent, topic)) this.#hooks.onMessage(client.agent, topic, payload)
        })
      },
      subscribe: (topics) => {
        client.wire.carry(false, () => {
          if (!client.isOpen || !this.#home.isAlive) return
          for (const topic of topics.filter((t) => maySubscribe(client.agent, t))) {
            client.topics.add(topic)
            const kept = this.#retained.get(topic)
            if (kept) this.#deliver(client, kept)
          }
        })
      },
      close: () => this.#end(client, 'closed', 1),
    }
  }

  async #connect(
    options: MqttLineOptions,
    by: Process,
    wire: Wire,
    done: (line: MqttLine) => boolean,
    refuse: (why: Error) => boolean,
  ): Promise<void> {
    const agent = await this.#hooks.authenticate(options.clientId, options.password)
    if (!this.#home.isAlive) return
    if (!agent || options.username !== options.clientId)
      return wire.carry(true, () => void refuse(new Error('not an agent of this cloud')))
    const known = this.#clients.get(agent.agentId)
    if (known) this.#end(known, 'taken over', 1)
    const client: Client = { agent, topics: new Set(), wire, by, options, isOpen: true, isHandedOut: false }
    this.#clients.set(agent.agentId, client)
    by.onEnd(() => this.#end(client, 'gone', 1))
    wire.onCut(() =>
      this.#end(client, 'the network is gone', this.#chance.happens(0.5) ? 1 : this.#chance.between(1, SILENCE_MS)),
    )
    wire.carry(true, () => {
      if (!client.isOpen) return void refuse(new Error('the broker closed the line'))
      if (done(this.#lineOf(client))) client.isHandedOut = true
    })
    this.#hooks.onConnected(agent)
  }

  #endAll(why: string): void {
    for (const client of this.#clients.values())
      this.#end(client, why, this.#chance.happens(0.8) ? 1 : this.#chance.between(1, SILENCE_MS))
    this.#retained = new Map()
  }
}
