import { BATCH_LIMIT } from '../../../policy/documents/agent-messages.ts'
import type { Cancel, Platform } from '../../../policy/platform.ts'
import type { Log } from '../../log.ts'
import type { CloudAnswer } from '../wire/http-client.ts'
import type { Outbox } from './outbox.ts'

/**
 *   outbox ── full batches, up to three under way ──▶ broker ── ack of all up to a row ──▶ outbox          no line, or silence: one by one over HTTP
 *
 * Pushes the outbox while there is a connection, in its order.
 */
export interface Sender {
  /** Something waits, or the connection is back. */
  kick(): void
  /** Resolves when the cloud has all that is written down now, or after `limitMs`; never rejects. */
  told(limitMs: number): Promise<void>
  /** An acknowledgement came over the broker. */
  onAck(ack: string): void
  /** The connection is gone: whatever was under way is sent again later. */
  reset(): void
  /** Sends nothing more, and resolves when the last call has come back. */
  stop(): Promise<void>
}

export interface SenderParts {
  platform: Platform
  outbox: Outbox
  log: Log
  isOnline(): boolean
  nowMs(): number
  /** False when there is no line. */
  publish(batch: string): boolean
  /** What was published was acknowledged, or was not in time. */
  onPublished(wasAcknowledged: boolean): void
  report(batch: string): Promise<CloudAnswer>
  onChange(): void
  onRefused(what: string): void
}

/** What nobody acknowledged for so long is sent again, over HTTP. */
const RESEND_MS = 5_000
/** Batches on the line at once: the cloud takes one in while the next is on its way. It drops what is more than four (cloud/messaging/agent-messages). */
const WINDOW = 3

/** Sends whenever there is something. */
export function sender(parts: SenderParts): Sender {
  const { platform, outbox, log } = parts
  /** The last row of each batch that was published and not acknowledged, in their order. */
  let published: number[] = []
  let isCalling = false
  let isStopped = false
  let call: Promise<void> = Promise.resolve()
  let timer: Cancel | undefined
  const waiters = new Set<() => void>()

  function later(task: () => void): void {
    timer?.()
    timer = platform.timers.after(RESEND_MS, () => {
      timer = undefined
      task()
    })
  }

  function reset(): void {
    timer?.()
    timer = undefined
    published = []
    isCalling = false
  }

  /** `before`: the last row that was acknowledged until now. */
  function taken(before: number): void {
    timer?.()
    timer = undefined
    published = published.filter((to) => to > outbox.acked)
    if (published.length > 0) watch()
    parts.onChange()
    for (const look of waiters) look()
    // An acknowledgement that moves nothing must not make a circle.
    if (outbox.acked > before) kick()
    else if (outbox.waiting > 0) later(kick)
  }

  async function sendOverHttp(): Promise<void> {
    const before = outbox.acked
    const next = outbox.next(before, parts.nowMs())
    if (next === undefined) return void (isCalling = false)
    const answer = await parts.report(next.batch)
    isCalling = false
    const ack = answer.kind === 'answered' ? answer.body['ack'] : undefined
    if (typeof ack === 'string' && outbox.goBack(ack, before)) {
      parts.onRefused(
        `events: row ${before} was acknowledged by somebody else, for the cloud has none after ${outbox.acked}`,
      )
      return taken(before)
    }
    if (typeof ack === 'string' && outbox.acknowledge(ack)) return taken(before)
    if (answer.kind === 'unreachable') return
    if (answer.kind === 'refused') parts.onRefused(`events: ${answer.code}`)
    later(kick)
  }

  function viaHttp(): void {
    reset()
    isCalling = true
    call = sendOverHttp().catch((error: unknown) => {
      isCalling = false
      log.error({ err: error }, 'the outbox failed')
    })
  }

  /** The broker may lose what is published: what is not acknowledged in time goes over HTTP. */
  function watch(): void {
    later(() => {
      parts.onPublished(false)
      viaHttp()
    })
  }

  function kick(): void {
    if (isCalling || isStopped || !parts.isOnline()) return
    while (published.length < WINDOW) {
      const from = published.at(-1) ?? outbox.acked
      // What does not fill a batch waits for what is under way, and grows meanwhile.
      if (published.length > 0 && outbox.head - from < BATCH_LIMIT) return
      const next = outbox.next(from, parts.nowMs())
      if (next === undefined) return
      published.push(next.to)
      if (published.length === 1) watch()
      if (parts.publish(next.batch)) continue
      published.pop()
      if (published.length === 0) viaHttp()
      return
    }
  }

  return {
    kick() {
      try {
        kick()
      } catch (error) {
        log.error({ err: error }, 'the outbox failed')
        throw error
      }
    },
    told(limitMs) {
      const target = outbox.head
      if (outbox.acked >= target) return Promise.resolve()
      kick()
      return new Promise((resolve) => {
        const end = () => {
          cancel()
          waiters.delete(look)
          resolve()
        }
        const look = () => void (outbox.acked >= target && end())
        const cancel = platform.timers.after(limitMs, end)
        waiters.add(look)
      })
    },
    onAck(ack) {
      // An old one, played again and again, must not put off what waits for its own.
      const before = outbox.acked
      if (isStopped || !outbox.acknowledge(ack, published.at(-1)) || outbox.acked === before) return
      parts.onPublished(true)
      taken(before)
    },
    reset,
    async stop() {
      isStopped = true
      reset()
      await call
    },
  }
}
