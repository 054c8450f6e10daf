import type { Cancel, Platform } from '../../policy/platform.ts'
import type { Log } from '../log.ts'
import type { CloudAnswer } from './cloud-link.ts'
import type { Outbox } from './outbox.ts'

/** Pushes the outbox while there is a connection: one batch under way, over the broker when there is a line, else over HTTP. */
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

/** A batch that nobody acknowledged is sent again, over HTTP. */
const RESEND_MS = 5_000

/** Sends whenever there is something, one batch after the other. */
export function sender(parts: SenderParts): Sender {
  const { platform, outbox, log } = parts
  let underWay = false
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
    underWay = false
  }

  function take(ack: string): boolean {
    const before = outbox.acked
    if (!outbox.acknowledge(ack)) return false
    taken(before)
    return true
  }

  /** `before`: the last row that was acknowledged until now. */
  function taken(before: number): void {
    timer?.()
    timer = undefined
    underWay = false
    parts.onChange()
    for (const look of waiters) look()
    // An acknowledgement that moves nothing must not make a circle.
    if (outbox.acked > before) kick()
    else if (outbox.waiting > 0) later(kick)
  }

  async function sendOverHttp(): Promise<void> {
    const batch = outbox.next(parts.nowMs())
    if (batch === undefined) return void (underWay = false)
    const answer = await parts.report(batch)
    const ack = answer.kind === 'answered' ? answer.body['ack'] : undefined
    if (typeof ack === 'string' && take(ack)) return
    underWay = false
    if (answer.kind === 'unreachable') return
    if (answer.kind === 'refused') parts.onRefused(`events: ${answer.code}`)
    later(kick)
  }

  function viaHttp(): void {
    call = sendOverHttp().catch((error: unknown) => {
      underWay = false
      log.error({ err: error }, 'the outbox failed')
    })
  }

  function kick(): void {
    if (underWay || isStopped || !parts.isOnline()) return
    const batch = outbox.next(parts.nowMs())
    if (batch === undefined) return
    underWay = true
    // The broker may lose it: what is not acknowledged in time goes over HTTP.
    if (!parts.publish(batch)) return viaHttp()
    later(() => {
      parts.onPublished(false)
      viaHttp()
    })
  }

  return {
    kick,
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
      if (isStopped || !outbox.acknowledge(ack) || outbox.acked === before) return
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
