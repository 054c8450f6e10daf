import { OutgoingFault, type OutgoingHttp } from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import type { Core } from '../virtual/core.ts'

/** System of the merchant that receives webhooks. */
export interface Receiver {
  readonly outgoing: OutgoingHttp
  /** Probability of a failure, 0 to 1. */
  failureRate: number
  /** Ids of all received webhooks. */
  readonly posted: Iterable<string>
  /** Marks all webhooks received so far, because a restored sender may repeat them at other times. */
  forget(): void
}

/** Maximum number of attempts, and the times of all attempts after the first attempt, ms (ADR webhooks). */
const ATTEMPTS = 4
const SCHEDULE_MS = [0, 60_000, 300_000, 1_800_000]
/** Additional attempts for each crash or disk fault, because the sender may not have stored that it sent a webhook. */
const ATTEMPTS_AFTER_CRASH = 1

/** Creates a receiver without failures. `crashes`: number of crashes and disk faults of the sender so far. */
export function receiver(core: Core, crashes: () => number): Receiver {
  const chance = core.chance.fork('receiver')
  const attempts = new Map<string, { atMs: number[]; crashesBefore: number }>()
  /**
   * Ids of webhooks that were posted before a restore of the sender. The restored sender may repeat the first attempt
   * and continue with the schedule.
   */
  const begunBefore = new Set<string>()
  let failureRate = 0

  function check(id: string): void {
    const known = attempts.get(id)
    const { nowMs } = core.scheduler
    if (!known) return void attempts.set(id, { atMs: [nowMs], crashesBefore: crashes() })
    known.atMs.push(nowMs)
    const allowed = ATTEMPTS + ATTEMPTS_AFTER_CRASH * (crashes() - known.crashesBefore)
    if (known.atMs.length > allowed) core.violate('I12', `${id} was posted ${known.atMs.length} times`)
    // Attempts must follow the schedule if no crash happened between them.
    if (begunBefore.has(id)) return
    const wanted = SCHEDULE_MS[known.atMs.length - 1]
    const since = nowMs - (known.atMs[0] ?? nowMs)
    if (crashes() === known.crashesBefore && wanted !== undefined && since < wanted - 2_000)
      core.violate('I12', `${id} was posted again after ${since} ms`)
  }

  return {
    forget() {
      for (const id of attempts.keys()) begunBefore.add(id)
      attempts.clear()
    },
    get posted() {
      return attempts.keys()
    },
    get failureRate() {
      return failureRate
    },
    set failureRate(to) {
      failureRate = to
    },
    outgoing: {
      send: (request, signal) =>
        new Promise((resolve, reject) => {
          const id = request.headers['webhook-id'] ?? ''
          check(id)
          const how = chance.happens(failureRate)
            ? chance.one(['refused', 'silent', 'error', 'lost'] as const)
            : 'taken'
          core.trace.add('receiver', `${id.slice(-6)} ${how}`)
          const afterMs = chance.between(5, 200)
          signal.addEventListener('abort', () => reject(new OutgoingFault('timeout', 'no answer in time')), {
            once: true,
          })
          if (how === 'silent' || how === 'lost') return
          core.scheduler.after(afterMs, () => {
            if (how === 'refused') reject(new OutgoingFault('connection_refused', 'refused'))
            else resolve({ status: how === 'taken' ? 200 : 500, headers: {}, body: new Uint8Array(), isCut: false })
          })
        }),
    },
  }
}
