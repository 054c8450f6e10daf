import {
  agentTopic,
  cloudTopic,
  parseCloudTopic,
  parseTopic,
  type AgentAddress,
  type CloudTopic,
} from '../../../policy/mqtt-topics.ts'
import { pause, retryDelays, type Cancel, type Platform, type Clock, type Timers } from '../../../policy/platform.ts'
import type { Log } from '../../platform/foundation/log.ts'
import type { BrokerConnection, OpenBrokerConnection } from './broker-connection.ts'
import type { AgentBroker, BrokerHooks, Message } from './embedded-broker.ts'
import { createHash } from 'node:crypto'
import { MAX_PACKET_BYTES } from '../../../policy/mqtt-framing.ts'

/** Interval at which each cloud process announces itself, ms. */
export const ANNOUNCE_MS = 5_000
/** A process that was silent for this time counts as ended, ms. */
const SILENCE_MS = 3 * ANNOUNCE_MS
/** Maximum number of other processes. */
const MEMBERS_LIMIT = 256

/**
 * The cloud processes at one outside broker. Each store has one owner among these processes, and every process computes
 * the same owner. While processes know different members, a store may have no owner or two owners. A missing or second
 * owner only delays or repeats work: agents send an unacknowledged batch again over HTTP, and the cloud applies each
 * row once.
 */
export class CloudMembers {
  readonly #clock: Pick<Clock, 'elapsed'>
  readonly #own: string
  readonly #seenMs = new Map<string, number>()

  constructor(own: string, clock: Pick<Clock, 'elapsed'>) {
    this.#own = own
    this.#clock = clock
  }

  /** Notes an announcement. Returns true if the process was unknown. */
  add(member: string): boolean {
    if (member === this.#own) return false
    const isNew = !this.#seenMs.has(member)
    if (isNew && this.#seenMs.size >= MEMBERS_LIMIT) return false
    this.#seenMs.set(member, this.#clock.elapsed())
    return isNew
  }

  /** Removes a process that stops. */
  remove(member: string): void {
    this.#seenMs.delete(member)
  }

  /** True if this process owns the store: it has the highest hash of process and store. */
  owns(storeId: string): boolean {
    this.#dropSilent()
    const own = weight(this.#own, storeId)
    for (const member of this.#seenMs.keys()) if (weight(member, storeId) > own) return false
    return true
  }

  #dropSilent(): void {
    const sinceMs = this.#clock.elapsed() - SILENCE_MS
    for (const [member, seenMs] of this.#seenMs) if (seenMs < sinceMs) this.#seenMs.delete(member)
  }
}

function weight(member: string, storeId: string): string {
  return createHash('sha256').update(`${member}/${storeId}`).digest('hex')
}

/**
 * The cloud as a client of an outside MQTT broker.
 *
 * The broker is not trusted. It checks the passwords of agents, but the cloud relies on signatures only: batches of
 * events are signed by the agent's key. The state of an agent is unsigned and only informs people.
 *
 * Several processes share one broker. Each batch goes to one process: by a shared subscription, or else to the process
 * that owns the store.
 */
export interface OutsideBrokerOptions {
  url: string
  username?: string
  password?: string
  /** Certificates of a private CA, PEM. */
  ca?: string
}

interface OutsideBrokerParts {
  platform: Platform
  log: Log
  open: OpenBrokerConnection
  hooks: BrokerHooks
  /** Called after each connect: the broker may have lost its retained messages. */
  onAttached(broker: AgentBroker): void
}

const OPEN_MS = 5_000
const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 15_000
/** Maximum number of agents that this process counts as connected. The broker's messages are not trusted. */
const AGENTS_LIMIT = 50_000
const EVENTS = agentTopic('+', '+', 'events')
/** Shared subscription of all cloud processes (MQTT 5 §4.8.2). */
const SHARED_EVENTS = `$share/untag/${EVENTS}`
const REFUSED = 128

/** Connects to the broker in the background, and again after each connection loss, until `close` is called. */
export class OutsideBroker implements AgentBroker {
  readonly #options: OutsideBrokerOptions
  readonly #parts: OutsideBrokerParts
  readonly #id: string
  readonly #members: CloudMembers
  readonly #agents = new Map<string, AgentAddress>()
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  #connection: BrokerConnection | undefined
  #isShared = false
  #probe: BrokerProbe | undefined
  #wasConnected = false
  #firstAttempt: (() => void) | undefined
  /** Resolves after the first attempt to connect. */
  readonly tried: Promise<void>

  constructor(options: OutsideBrokerOptions, parts: OutsideBrokerParts) {
    this.#options = options
    this.#parts = parts
    this.#id = Buffer.from(parts.platform.random.bytes(8)).toString('hex')
    this.#members = new CloudMembers(this.#id, parts.platform.clock)
    this.tried = new Promise((resolve) => (this.#firstAttempt = resolve))
    this.#running = this.#run()
  }

  /** Also true without a connection, because agents then use HTTP. */
  isListening(): boolean {
    return true
  }

  publish({ topic, payload, retain }: Message): void {
    this.#connection?.publish(topic, payload, { retain })
  }

  connected(): ReadonlyMap<string, AgentAddress> {
    return this.#agents
  }

  /** A shared subscription gives batches of one agent to several processes. */
  mayReorder(): boolean {
    return this.#isShared
  }

  assumeConnected(agents: readonly AgentAddress[]): void {
    for (const agent of agents) if (this.#agents.size < AGENTS_LIMIT) this.#agents.set(agent.agentId, agent)
  }

  /** Forgets a revoked agent. The broker closes the agent's connection after `untag broker sync`. */
  disconnect(agentId: string): void {
    this.#agents.delete(agentId)
  }

  owns(storeId: string): boolean {
    return this.#members.owns(storeId)
  }

  async close(): Promise<void> {
    this.#connection?.publish(cloudTopic(this.#id, 'end'), '', { retain: false })
    this.#stopping.abort()
    this.#connection?.close()
    await this.#running
  }

  async #run(): Promise<void> {
    const { platform, log } = this.#parts
    const stopping = this.#stopping.signal
    const newDelays = () => retryDelays(platform.random, FIRST_WAIT_MS, LONGEST_WAIT_MS)
    let delays = newDelays()
    while (!stopping.aborted) {
      try {
        const why = await this.#connectOnce()
        delays = newDelays()
        if (!stopping.aborted) log.warn({ why }, 'the connection to the broker ended: agents use HTTP')
      } catch (error) {
        log.warn({ why: (error as Error).message }, 'the broker is not reachable: agents use HTTP')
      }
      this.#firstAttempt?.()
      await pause(platform.timers, delays.next().value, stopping).catch(() => undefined)
    }
  }

  /**
   * Opens one connection. Resolves when the connection closes, to the reason. Rejects if the connection cannot be
   * opened.
   */
  async #connectOnce(): Promise<string> {
    const { log, open } = this.#parts
    let onClosed: (why: string) => void = () => undefined
    const closed = new Promise<string>((resolve) => (onClosed = resolve))
    const connection = await open(
      {
        ...this.#options,
        clientId: `untag-cloud-${this.#id}`,
        onMessage: (topic, payload) => this.#onMessage(topic, payload),
        onClosed,
      },
      OPEN_MS,
    )
    if (this.#stopping.signal.aborted) connection.close()
    this.#connection = connection
    let stopAnnouncing: Cancel = () => undefined
    try {
      const isOpen = await Promise.race([closed.then(() => false), this.#subscribe(connection).then(() => true)])
      if (isOpen) {
        stopAnnouncing = this.#announce(connection)
        log.info({ isShared: this.#isShared }, 'connected to the broker')
        this.#parts.onAttached(this)
        void this.#warnOfLosses(this.#wasConnected)
        this.#wasConnected = true
      }
      this.#firstAttempt?.()
      return await closed
    } finally {
      stopAnnouncing()
      this.#connection = undefined
    }
  }

  async #subscribe(connection: BrokerConnection): Promise<void> {
    const { platform, log } = this.#parts
    const own = [cloudTopic('+', 'alive'), cloudTopic('+', 'end')]
    const probe = new BrokerProbe({ connection, id: this.#id, timers: platform.timers })
    this.#probe = probe
    this.#isShared = await probe.hasSharedSubscriptions()
    const filters = [...own, agentTopic('+', '+', 'state'), this.#isShared ? SHARED_EVENTS : EVENTS]
    const granted = await connection.subscribe(filters)
    const refused = filters.filter((_, i) => (granted[i] ?? REFUSED) >= REFUSED)
    if (refused.length > 0)
      log.error({ refused }, 'the broker refuses subscriptions of the cloud: apply the rights of `untag broker sync`')
  }

  /** The caller does not wait for this method. It never rejects, because no call of a probe rejects. */
  async #warnOfLosses(wasConnected: boolean): Promise<void> {
    const losses = (await this.#probe?.findLosses(wasConnected)) ?? []
    if (this.#stopping.signal.aborted) return
    for (const loss of losses) this.#parts.log.warn({ loss }, LOSS_TEXTS[loss])
  }

  /** Announces this process to the others now and every 5 s. */
  #announce(connection: BrokerConnection): Cancel {
    connection.publish(cloudTopic(this.#id, 'alive'), '', { retain: false })
    let cancel: Cancel = () => undefined
    const again = () => {
      cancel = this.#parts.platform.timers.after(ANNOUNCE_MS, () => {
        connection.publish(cloudTopic(this.#id, 'alive'), '', { retain: false })
        again()
      })
    }
    again()
    return () => cancel()
  }

  #onMessage(topic: string, payload: string): void {
    const own = parseCloudTopic(topic)
    if (own) return this.#onCloudMessage(own)
    const parsed = parseTopic(topic)
    if (!parsed || parsed.agentId === null) return
    const from = { storeId: parsed.storeId, agentId: parsed.agentId }
    const { hooks } = this.#parts
    if (parsed.name === 'events' && (this.#isShared || this.owns(from.storeId))) {
      hooks.onActivity(from.agentId)
      hooks.onMessage(from, topic, payload)
    }
    if (parsed.name === 'state') this.#onState(from, topic, payload)
  }

  #onCloudMessage({ processId, name }: NonNullable<ReturnType<typeof parseCloudTopic>>): void {
    if (name === 'end') return this.#members.remove(processId)
    if (name !== 'alive') return this.#probe?.onMessage(processId, name)
    // A new process must know the others before its first announcement is due.
    if (this.#members.add(processId)) this.publish({ topic: cloudTopic(this.#id, 'alive'), payload: '', retain: false })
  }

  /** Every process notes which agents are connected. The owner of the store also stores the state. */
  #onState(from: AgentAddress, topic: string, payload: string): void {
    const { hooks } = this.#parts
    const isOnline = payload.startsWith('{"online":true')
    if (!isOnline) this.#agents.delete(from.agentId)
    else if (this.#agents.has(from.agentId) || this.#agents.size < AGENTS_LIMIT) this.#agents.set(from.agentId, from)
    if (!this.owns(from.storeId)) return
    hooks.onMessage(from, topic, payload)
    if (isOnline) hooks.onConnected(from)
  }
}

interface ProbeParts {
  connection: Pick<BrokerConnection, 'publish' | 'subscribe'>
  /** Id of this cloud process. */
  id: string
  timers: Timers
}

/** Maximum time until a message returns, ms. */
const ANSWER_MS = 2_000
/** A retained message, or one of a shared subscription, may arrive this much later than other messages, ms. */
const GRACE_MS = 300
/** Bytes for the topic and header of a message. */
const HEADER_BYTES = 1_024
/**
 * All processes of a cloud share one retained message. If it is missing after a reconnect, the broker lost its retained
 * messages.
 */
const ALL = 'all'

/** A weakness by which a broker loses messages. */
type BrokerLoss = 'qos' | 'size' | 'retained' | 'persistence'

/** What an administrator must change at the broker. */
const LOSS_TEXTS: Readonly<Record<BrokerLoss, string>> = {
  qos: 'the broker grants only QoS 0, so it may lose messages: allow QoS 1',
  size: `the broker does not deliver messages of ${MAX_PACKET_BYTES} bytes: raise its limit, or long batches use HTTP`,
  retained: 'the broker keeps no retained messages, so agents get documents later: allow them',
  persistence: 'the broker lost its retained messages: turn its persistence on',
}

/** Tests what a broker can do: the cloud publishes to itself and waits for the messages. */
export class BrokerProbe {
  readonly #parts: ProbeParts
  readonly #waiting = new Map<CloudTopic, () => void>()

  constructor(parts: ProbeParts) {
    this.#parts = parts
  }

  /** Call it with each message on a topic of a cloud process. */
  onMessage(processId: string, name: CloudTopic): void {
    if (processId === this.#parts.id || processId === ALL) this.#waiting.get(name)?.()
  }

  /**
   * True if the broker delivers messages to shared subscriptions. Some brokers accept a shared subscription but deliver
   * nothing.
   */
  async hasSharedSubscriptions(): Promise<boolean> {
    const { id, timers } = this.#parts
    const [shared = REFUSED] = await this.#subscribe(`$share/untag-${id}/${cloudTopic(id, 'probe-shared')}`)
    await this.#subscribe(cloudTopic(id, 'probe'))
    if (shared >= REFUSED) return false
    const sharedArrives = this.#arrival('probe-shared', ANSWER_MS + GRACE_MS)
    const plainArrives = this.#arrival('probe', ANSWER_MS)
    this.#publish(id, 'probe-shared')
    this.#publish(id, 'probe')
    await Promise.race([sharedArrives, plainArrives])
    return Promise.race([sharedArrives, pause(timers, GRACE_MS).then(() => false)])
  }

  /** `wasConnected`: this process was connected before, so the broker should have its retained message. */
  async findLosses(wasConnected: boolean): Promise<BrokerLoss[]> {
    const { id } = this.#parts
    const losses: BrokerLoss[] = []
    const marker = cloudTopic(ALL, 'probe-retained')
    const kept = this.#arrival('probe-retained', GRACE_MS)
    const [qos = REFUSED] = await this.#subscribe(marker)
    if (qos === 0) losses.push('qos')
    const wasKept = await kept
    if (!wasKept && !(await this.#retains(marker))) losses.push('retained')
    else if (!wasKept && wasConnected) losses.push('persistence')
    // A broker may close the connection after a message that is too long, so this test runs last, and
    // only after the first connect.
    if (wasConnected) return losses
    await this.#subscribe(cloudTopic(id, 'probe-size'))
    const arrives = this.#arrival('probe-size', ANSWER_MS)
    this.#publish(id, 'probe-size', 'x'.repeat(MAX_PACKET_BYTES - HEADER_BYTES))
    if (!(await arrives)) losses.push('size')
    return losses
  }

  async #retains(marker: string): Promise<boolean> {
    const live = this.#arrival('probe-retained', ANSWER_MS)
    this.#parts.connection.publish(marker, '1', { retain: true })
    await live
    // A new subscription delivers the retained message again.
    const again = this.#arrival('probe-retained', ANSWER_MS)
    await this.#subscribe(marker)
    return again
  }

  /** Resolves to true when the message arrives, or to false after `limitMs`. */
  #arrival(name: CloudTopic, limitMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#parts.timers.after(limitMs, () => resolve(false))
      this.#waiting.set(name, () => {
        cancel()
        resolve(true)
      })
    })
  }

  #subscribe(filter: string): Promise<readonly number[]> {
    return this.#parts.connection.subscribe([filter])
  }

  #publish(processId: string, name: CloudTopic, payload = ''): void {
    this.#parts.connection.publish(cloudTopic(processId, name), payload, { retain: false })
  }
}
