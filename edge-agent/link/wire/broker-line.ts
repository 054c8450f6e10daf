import { retryDelays, type Platform } from '../../../policy/platform.ts'
import { agentTopic, storeTopic, STORE_TOPICS } from '../../../policy/mqtt-topics.ts'
import type { Log } from '../../log.ts'
import type { Identity } from '../../identity/identity.ts'
import { budget, type Budget } from './budget.ts'
import type { MqttLine, OpenMqttLine } from './mqtt-line.ts'

/**
 *   open ── hints ──▶ agent          closes soon, floods, accepts nothing ──▶ not used for at most 15 s
 *
 * The line to the broker, which is not trusted. A broker that closes lines, floods them or drops messages must not cut the agent off from
 * the cloud.
 */

export interface BrokerLineParts {
  platform: Platform
  identity: Pick<Identity, 'agentId' | 'storeId'>
  url: string
  openLine: OpenMqttLine
  timeoutMs: number
  log: Log
  /** The text for the retained state. */
  state(online: boolean): string
  onMessage(topic: string, payload: string): void
  /** The line is gone, not by us. */
  onLost(why: string): void
  onRefused(what: string): void
}

const FIRST_WAIT_MS = 250
/** Tries are at most this far apart (ADR 0017). */
const LONGEST_WAIT_MS = 15_000
/** A line that lived this long was a good one. */
const STABLE_LINE_MS = 60_000
/** A busy store has some tens of messages a second; a large one costs as much as many small ones. */
const MESSAGES = { most: 2_000, perSecond: 200, charactersOfOne: 8_192 }
/** Batches go over HTTP for so long after the broker has swallowed one. */
const HTTP_ONLY_MS = 5 * 60_000

/** State of one line. It is a separate object because the line may close before `openLine` returns it. */
interface LineState {
  isOver: boolean
  readonly sinceMs: number
}

/** A line to one broker. Reconnects after each loss. */
export class BrokerLine {
  readonly #parts: BrokerLineParts
  readonly #messages: Budget
  #waits: Generator<number, never>
  #retryAtMs = 0
  #httpUntilMs = 0
  #line: MqttLine | undefined

  constructor(parts: BrokerLineParts) {
    this.#parts = parts
    this.#messages = budget(parts.platform.clock, MESSAGES.most, MESSAGES.perSecond)
    this.#waits = this.#newWaits()
  }

  get isOpen(): boolean {
    return this.#line !== undefined
  }

  /** How long the broker is left alone, ms; 0: it may be tried. */
  get waitMs(): number {
    return Math.max(0, this.#retryAtMs - this.#elapsedMs)
  }

  /** Opens it unless it is open or left alone; `password` signs the broker's challenge. Never rejects. */
  async open(password: () => string): Promise<void> {
    if (this.#line || this.waitMs > 0) return
    try {
      await this.#openOnce(password())
    } catch (error) {
      this.#backOff()
      this.#parts.log.warn({ why: (error as Error).message }, 'the broker is offline: events and documents use HTTP')
    }
  }

  /** Hands a batch of events over; false when there is no line, or when the broker swallowed the last one. */
  publishEvents(batch: string): boolean {
    if (!this.#line || this.#elapsedMs < this.#httpUntilMs) return false
    this.#line.publish(this.#topic('events'), batch, { retain: false })
    // It may just have ended over it.
    return this.#line !== undefined
  }

  /** What was published last: it was acknowledged, or was not in time. */
  noteAcknowledgement(wereAcknowledged: boolean): void {
    this.#httpUntilMs = wereAcknowledged ? 0 : this.#elapsedMs + HTTP_ONLY_MS
  }

  /** Says good-bye. */
  close(): void {
    this.#line?.publish(this.#topic('state'), this.#parts.state(false), { retain: true })
    this.#line?.close()
  }

  async #openOnce(password: string): Promise<void> {
    const { url, identity, openLine, timeoutMs, state, onLost } = this.#parts
    const { agentId, storeId } = identity
    const life: LineState = { isOver: false, sinceMs: this.#elapsedMs }
    const opened = await openLine(
      {
        url,
        clientId: agentId,
        username: agentId,
        password,
        will: { topic: this.#topic('state'), payload: state(false) },
        onMessage: (topic, payload) => this.#onMessage(life, topic, payload),
        onClosed: (why) => void (this.#end(life) && onLost(why)),
      },
      timeoutMs,
    )
    if (life.isOver) return
    this.#line = opened
    const storeTopics = STORE_TOPICS.map((name) => storeTopic(storeId, name))
    opened.subscribe([...storeTopics, this.#topic('ack'), this.#topic('command')])
    opened.publish(this.#topic('state'), state(true), { retain: true })
  }

  #onMessage(life: LineState, topic: string, payload: string): void {
    if (life.isOver) return
    const { onMessage, onRefused } = this.#parts
    if (this.#messages.spend(1 + payload.length / MESSAGES.charactersOfOne)) return onMessage(topic, payload)
    const flooding = this.#line
    if (!flooding) return
    this.#end(life)
    onRefused('the broker sends more messages than a store can cause')
    flooding.close()
  }

  /** Returns false if it had ended before. */
  #end(life: LineState): boolean {
    if (life.isOver) return false
    life.isOver = true
    this.#line = undefined
    if (this.#elapsedMs - life.sinceMs >= STABLE_LINE_MS) this.#waits = this.#newWaits()
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
