import { BATCH_LIMIT } from '../../../policy/documents/agent-messages.ts'
import type { Cancel, Platform } from '../../../policy/platform.ts'
import type { Log } from '../../log.ts'
import type { CloudAnswer } from '../wire/http-client.ts'
import { Waiters } from '../wire/broker-line.ts'
import type { Outbox } from './outbox.ts'

/**
 * Sends the batches of the outbox in order, while the cloud is online. The sender publishes up to three batches at once
 * to the broker. If the broker line is closed, or if an acknowledgement is late, the sender sends single batches over
 * HTTP.
 */

interface SenderParts {
  platform: Platform
  outbox: Pick<Outbox, keyof Outbox>
  log: Log
  isOnline(): boolean
  nowMs(): number
  /** Publishes a batch to the broker. Returns false if the batch cannot be published now. */
  publish(batch: string): boolean
  /** Called when the cloud acknowledged a published batch, or did not acknowledge it in time. */
  onPublished(wasAcknowledged: boolean): void
  report(batch: string): Promise<CloudAnswer>
  onChange(): void
  onRefused(what: string): void
}

/** Unacknowledged batches are sent again over HTTP after this time, ms. */
const RESEND_MS = 5_000
/**
 * Maximum batches under way. With several batches under way, the next batch arrives while the cloud still stores the
 * previous batch. The cloud keeps at most four unstored batches of an agent, and drops further ones
 * (cloud/service/messaging/agent-messages.ts).
 */
const WINDOW = 3

/** Creates a sender; `kick` starts it. */
export function sender(parts: SenderParts): Sender {
  return new Sender(parts)
}

export class Sender {
  readonly #parts: SenderParts
  readonly #waiters: Waiters
  /** The last row of each published batch without acknowledgement, in the order of publication. */
  #published: number[] = []
  #isCalling = false
  #isStopped = false
  #call: Promise<void> = Promise.resolve()
  #timer: Cancel | undefined

  constructor(parts: SenderParts) {
    this.#parts = parts
    this.#waiters = new Waiters(parts.platform.timers)
  }

  /** Call it after a new row, and when the link is online again. */
  kick(): void {
    try {
      this.#send()
    } catch (error) {
      this.#parts.log.error({ err: error }, 'the outbox failed')
      throw error
    }
  }

  /** Resolves when the cloud has acknowledged all current rows, or after `limitMs`. Never rejects. */
  whenReported(limitMs: number): Promise<void> {
    const { outbox } = this.#parts
    const target = outbox.head
    if (outbox.acked >= target) return Promise.resolve()
    this.#send()
    return this.#waiters.wait(limitMs, () => outbox.acked >= target)
  }

  /** Applies an acknowledgement from the broker. */
  onAck(ack: string): void {
    const { outbox, onPublished } = this.#parts
    // A replayed acknowledgement must not restart the timer of the batches under way.
    const before = outbox.acked
    if (this.#isStopped || !outbox.acknowledge(ack, this.#published.at(-1)) || outbox.acked === before) return
    onPublished(true)
    this.#onAcknowledged(before)
  }

  /** Call it when the link goes offline. The sender sends the batches under way again later. */
  reset(): void {
    this.#cancelTimer()
    this.#published = []
    this.#isCalling = false
  }

  /** Stops the sender. Resolves when the last HTTP call has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.reset()
    await this.#call
  }

  #send(): void {
    const { outbox, isOnline, nowMs, publish } = this.#parts
    if (this.#isCalling || this.#isStopped || !isOnline()) return
    while (this.#published.length < WINDOW) {
      const from = this.#published.at(-1) ?? outbox.acked
      // A partial batch waits until the batches under way are acknowledged, so that more rows can join the batch.
      if (this.#published.length > 0 && outbox.head - from < BATCH_LIMIT) return
      const next = outbox.next(from, nowMs())
      if (next === undefined) return
      this.#published.push(next.to)
      if (this.#published.length === 1) this.#watch()
      if (publish(next.batch)) continue
      this.#published.pop()
      if (this.#published.length === 0) this.#sendOverHttp()
      return
    }
  }

  /** The broker may lose a batch: after a timeout the agent sends the batch over HTTP. */
  #watch(): void {
    this.#later(() => {
      this.#parts.onPublished(false)
      this.#sendOverHttp()
    })
  }

  #sendOverHttp(): void {
    this.reset()
    this.#isCalling = true
    this.#call = this.#report().catch((error: unknown) => {
      this.#isCalling = false
      this.#parts.log.error({ err: error }, 'the outbox failed')
    })
  }

  async #report(): Promise<void> {
    const { outbox, nowMs, report, onRefused } = this.#parts
    const before = outbox.acked
    const next = outbox.next(before, nowMs())
    if (next === undefined) return void (this.#isCalling = false)
    const answer = await report(next.batch)
    this.#isCalling = false
    const ack = answer.kind === 'answered' ? answer.body['ack'] : undefined
    if (typeof ack === 'string' && outbox.rewind(ack, before)) {
      onRefused(`events: row ${before} has a forged acknowledgement: the cloud has no row after ${outbox.acked}`)
      return this.#onAcknowledged(before)
    }
    if (typeof ack === 'string' && outbox.acknowledge(ack)) return this.#onAcknowledged(before)
    if (answer.kind === 'unreachable') return
    if (answer.kind === 'refused') onRefused(`events: ${answer.code}`)
    this.#later(() => this.#send())
  }

  /** `before`: the last acknowledged row before this acknowledgement. */
  #onAcknowledged(before: number): void {
    const { outbox, onChange } = this.#parts
    this.#cancelTimer()
    // If the cloud stored the first rows of a batch, it refuses the later batches, so all are sent again.
    const [first] = this.#published
    const isPart = first !== undefined && outbox.acked > before && outbox.acked < first
    this.#published = isPart ? [] : this.#published.filter((to) => to > outbox.acked)
    if (this.#published.length > 0) this.#watch()
    onChange()
    this.#waiters.checkAll()
    // If the acknowledgement covers no new row, the sender waits before the next batch, so that it cannot loop.
    if (outbox.acked > before) this.#send()
    else if (outbox.waiting > 0) this.#later(() => this.#send())
  }

  #later(task: () => void): void {
    this.#timer?.()
    this.#timer = this.#parts.platform.timers.after(RESEND_MS, () => {
      this.#timer = undefined
      task()
    })
  }

  #cancelTimer(): void {
    this.#timer?.()
    this.#timer = undefined
  }
}
