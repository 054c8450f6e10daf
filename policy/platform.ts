/**
 * Time and randomness are arguments, so that a simulation can run a whole shop on virtual time. host/platform.ts creates
 * the real clock, timers and randomness.
 */

export interface Clock {
  /** The machine's wall clock, ms since 1970. May be wrong and may jump. */
  wall(): number
  /** Milliseconds since a fixed origin within one `bootId`. Includes suspend, never jumps. */
  elapsed(): number
  /** Id of the current boot. */
  readonly bootId: string
}

export type Cancel = () => void

export interface Timers {
  /** Runs `task` once, `ms` milliseconds from now. */
  after(ms: number, task: () => void): Cancel
}

export interface Randomness {
  /** `length` unpredictable bytes. */
  bytes(length: number): Uint8Array
}

export interface Platform {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Randomness
}

/** Small files that only their owner may read. */
export interface SecretFiles {
  /** Undefined if the file does not exist. */
  read(file: string): string | undefined
  /** Writes atomically, even on power loss. Creates the folders. */
  write(file: string, text: string): void
}

/** Waits `ms`. Rejects with the signal's reason if the signal aborts first. */
export function pause(timers: Timers, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error)
    const onAbort = () => {
      cancel()
      reject(signal?.reason as Error)
    }
    const cancel = timers.after(ms, () => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    })
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}

/** A signal that aborts with a `TimeoutError` after `ms`, or with `parent`. Call `done` when finished. */
export function deadline(timers: Timers, ms: number, parent?: AbortSignal): { signal: AbortSignal; done: Cancel } {
  const controller = new AbortController()
  const cancel = timers.after(ms, () => controller.abort(new DOMException(`no answer within ${ms} ms`, 'TimeoutError')))
  const onParent = () => controller.abort(parent?.reason)
  if (parent?.aborted) onParent()
  parent?.addEventListener('abort', onParent, { once: true })
  return {
    signal: controller.signal,
    done: () => {
      cancel()
      parent?.removeEventListener('abort', onParent)
    },
  }
}

/** A number in [0, 1) from 48 random bits. */
export function randomFraction(random: Randomness): number {
  const b = random.bytes(6)
  let n = 0
  for (const byte of b) n = n * 256 + byte
  return n / 2 ** 48
}

/**
 * Endless retry delays. The upper limit of a delay doubles each time, from `firstMs` to `maxMs`. Each delay is a random
 * value between half of the limit and the limit, so that agents do not reconnect at the same time.
 */
export function* retryDelays(random: Randomness, firstMs: number, maxMs: number): Generator<number, never> {
  let ceiling = firstMs
  for (;;) {
    yield Math.round(ceiling * (0.5 + randomFraction(random) / 2))
    ceiling = Math.min(ceiling * 2, maxMs)
  }
}
