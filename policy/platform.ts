/**
 * The outside world as arguments: every room gets time and chance through these types and never
 * reaches for them itself, so that a whole shop can be run on a virtual clock.
 * The real one is made in `bin/platform.ts`.
 */

export interface Clock {
  /** The machine's wall clock, ms since 1970. May be wrong and may jump. */
  wall(): number
  /** Milliseconds since an origin that is fixed while `bootId` is. Counts suspend, never jumps. */
  elapsed(): number
  /** Names the run of the operating system that `elapsed` belongs to. */
  readonly bootId: string
}

export type Cancel = () => void

export interface Timers {
  /** Runs `task` once, `ms` milliseconds from now. */
  after(ms: number, task: () => void): Cancel
}

export interface Randomness {
  /** `length` bytes that nobody can predict. */
  bytes(length: number): Uint8Array
}

export interface Platform {
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Randomness
}

/** Small files that only their owner may read. */
export interface SecretFiles {
  /** The text, or undefined when there is no such file. */
  read(file: string): string | undefined
  /** Puts the text there whole or not at all, also when the power fails; makes the folders. */
  write(file: string, text: string): void
}

/** Waits `ms` milliseconds; rejects with the signal's reason when that comes first. */
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
 * Delays for trying again: doubling from `firstMs` up to `maxMs`, each drawn from its upper half
 * so that many agents do not return at once. Endless: what a shop needs never gives up.
 */
export function* retryDelays(random: Randomness, firstMs: number, maxMs: number): Generator<number, never> {
  let ceiling = firstMs
  for (;;) {
    yield Math.round(ceiling * (0.5 + randomFraction(random) / 2))
    ceiling = Math.min(ceiling * 2, maxMs)
  }
}
