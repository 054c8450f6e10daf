import type { BrokerAccess } from '../../../policy/documents/broker-document.ts'
import { retryDelays, type Platform, type Timers } from '../../../policy/platform.ts'
import { agentTopic, storeTopic, STORE_TOPICS } from '../../../policy/mqtt-topics.ts'
import type { Log } from '../../log.ts'
import type { Identity } from '../../identity/identity.ts'
import { budget, type Budget } from '../../../policy/budget.ts'

/** Callers that wait for a condition, each with a time limit. */
export class Waiters {
  readonly #timers: Timers
  readonly #checks = new Set<() => void>()

  constructor(timers: Timers) {
    this.#timers = timers
  }

  /** Resolves when `checkAll` finds that `isOver` returns true, or after `limitMs`. Never rejects. */
  wait(limitMs: number, isOver: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        cancel()
        this.#checks.delete(check)
        resolve()
      }
      const check = () => void (isOver() && end())
      const cancel = this.#timers.after(limitMs, end)
      this.#checks.add(check)
    })
  }

  /** Checks every condition again. */
  checkAll(): void {
    for (const check of this.#checks) check()
  }
}

/** One connection to the broker. If the connection is lost, the agent opens a new connection. */
export interface MqttLine {
  /** Publishes a message without confirmation. */
  publish(topic: string, payload: string, options: { retain: boolean }): void
  subscribe(topics: readonly string[]): void
  close(): void
}

export interface MqttLineOptions {
  url: string
  clientId: string
  username: string
  password: string
  /** Certificates of a private CA, PEM. Default: the public CAs of the machine. */
  ca?: string
  will: { topic: string; payload: string }
  onMessage(topic: string, payload: string): void
  /** Called once, when the line has closed. */
  onClosed(why: string): void
}

/** Opens a line, or rejects. The real implementation is in bin/; the simulation has its own. */
export type OpenMqttLine = (options: MqttLineOptions, timeoutMs: number) => Promise<MqttLine>

/**
 * The line to the broker, which is not trusted. A broker that closes lines, floods them or drops messages must not cut
 * the agent off from the cloud. So the agent closes a line that floods, and waits before it opens the next line.
 */

interface BrokerLineParts {
  platform: Platform
  identity: Pick<Identity, 'agentId' | 'storeId'>
  /** Present address and credentials of the broker. */
  access(): BrokerAccess
  openLine: OpenMqttLine
  timeoutMs: number
  log: Log
  /** Returns the text of the retained state message. */
  state(online: boolean): string
  onMessage(topic: string, payload: string): void
  /** Called when the line closed without a call of `close`. */
  onLost(why: string): void
  onRefused(what: string): void
}

const FIRST_WAIT_MS = 250
/** Maximum pause between attempts to open the line, ms (ADR agents). */
const LONGEST_WAIT_MS = 15_000
/** If a line was open for this time, the next pause is short again, ms. */
const STABLE_LINE_MS = 60_000
/**
 * Rate limit of received messages. A busy store receives some tens of messages per second. A long message counts as
 * several messages.
 */
const MESSAGES = { most: 2_000, perSecond: 200, charactersOfOne: 8_192 }
/** If the broker lost a batch, the agent sends batches over HTTP for this time, ms. */
const HTTP_ONLY_MS = 5 * 60_000

/** State of one line. The state is a separate object, because the line may close before `openLine` returns the line. */
interface LineState {
  isOver: boolean
  readonly sinceMs: number
}

/** The line to the present broker. If the line was lost, `open` opens a new line. */
export class BrokerLine {
  readonly #parts: BrokerLineParts
  readonly #messages: Budget
  #waits: Generator<number, never>
  #retryAtMs = 0
  #httpUntilMs = 0
  #line: MqttLine | undefined
  /** State of the line that is open, or that `open` is opening. */
  #latest: LineState | undefined

  constructor(parts: BrokerLineParts) {
    this.#parts = parts
    this.#messages = budget(parts.platform.clock, MESSAGES.most, MESSAGES.perSecond)
    this.#waits = this.#newWaits()
  }

  get isOpen(): boolean {
    return this.#line !== undefined
  }

  /** Time until the agent may open a line again, ms; 0: now. */
  get waitMs(): number {
    return Math.max(0, this.#retryAtMs - this.#elapsedMs)
  }

  /**
   * Opens the line, unless it is open or `waitMs` is above 0. `challenge` returns the signed challenge, which is the
   * password at the embedded broker. Never rejects.
   */
  async open(challenge: () => string): Promise<void> {
    if (this.#line || this.waitMs > 0) return
    try {
      await this.#openOnce(challenge)
    } catch (error) {
      this.#backOff()
      this.#parts.log.warn({ why: (error as Error).message }, 'the broker is offline: events and documents use HTTP')
    }
  }

  /** Publishes a batch of events. Returns false if there is no line, or if the broker lost a batch recently. */
  publishEvents(batch: string): boolean {
    if (!this.#line || this.#elapsedMs < this.#httpUntilMs) return false
    this.#line.publish(this.#topic('events'), batch, { retain: false })
    // The line may have closed during the call.
    return this.#line !== undefined
  }

  /** Publishes the present state, if the line is open. */
  publishState(): void {
    this.#line?.publish(this.#topic('state'), this.#parts.state(true), { retain: true })
  }

  /** Call it when the cloud acknowledged a published batch, or did not acknowledge it in time. */
  noteAcknowledgement(wasAcknowledged: boolean): void {
    this.#httpUntilMs = wasAcknowledged ? 0 : this.#elapsedMs + HTTP_ONLY_MS
  }

  /** Publishes the state `offline` and closes the line. */
  close(): void {
    this.#line?.publish(this.#topic('state'), this.#parts.state(false), { retain: true })
    this.#line?.close()
  }

  /** Leaves this broker for another one, which `open` may open at once. */
  leave(): void {
    this.close()
    if (this.#latest) this.#latest.isOver = true
    this.#line = undefined
    this.#waits = this.#newWaits()
    this.#retryAtMs = 0
    this.#httpUntilMs = 0
  }

  async #openOnce(challenge: () => string): Promise<void> {
    const { access, identity, openLine, timeoutMs, state, onLost } = this.#parts
    const { agentId, storeId } = identity
    const { url, username, password = challenge(), ca } = access()
    const line: LineState = { isOver: false, sinceMs: this.#elapsedMs }
    this.#latest = line
    const opened = await openLine(
      {
        url,
        clientId: agentId,
        username,
        password,
        ...(ca !== undefined && { ca }),
        will: { topic: this.#topic('state'), payload: state(false) },
        onMessage: (topic, payload) => this.#onMessage(line, topic, payload),
        onClosed: (why) => void (this.#end(line) && onLost(why)),
      },
      timeoutMs,
    )
    // Also closes a line to a broker that the agent left meanwhile.
    if (line.isOver) return opened.close()
    this.#line = opened
    const storeTopics = STORE_TOPICS.map((name) => storeTopic(storeId, name))
    opened.subscribe([...storeTopics, this.#topic('ack'), this.#topic('command')])
    this.publishState()
  }

  #onMessage(line: LineState, topic: string, payload: string): void {
    if (line.isOver) return
    const { onMessage, onRefused } = this.#parts
    if (this.#messages.spend(1 + payload.length / MESSAGES.charactersOfOne)) return onMessage(topic, payload)
    const flooding = this.#line
    if (!flooding) return
    this.#end(line)
    onRefused('the broker sends more messages than a store can cause')
    flooding.close()
  }

  /** Marks this line as closed. Returns false if the line was already closed. */
  #end(line: LineState): boolean {
    if (line.isOver) return false
    line.isOver = true
    this.#line = undefined
    if (this.#elapsedMs - line.sinceMs >= STABLE_LINE_MS) this.#waits = this.#newWaits()
    else this.#backOff()
    return true
  }

  #backOff(): void {
    this.#retryAtMs = this.#elapsedMs + this.#waits.next().value
  }

  #newWaits(): Generator<number, never> {
    return retryDelays(this.#parts.platform.random, FIRST_WAIT_MS, LONGEST_WAIT_MS)
  }

  #topic(name: Parameters<typeof agentTopic>[2]): string {
    const { agentId, storeId } = this.#parts.identity
    return agentTopic(storeId, agentId, name)
  }

  get #elapsedMs(): number {
    return this.#parts.platform.clock.elapsed()
  }
}
