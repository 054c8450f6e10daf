import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'

/** What one round of reading found. */
export type Reading =
  | { readonly kind: 'read'; isOn(input: number): boolean }
  /** This round's answer was lost or refused. */
  | { readonly kind: 'missed' }
  /** The session is over; there will be no more. */
  | { readonly kind: 'over' }

/** Watches the inputs of one device by reading them again and again. */
export interface InputWatch {
  /** The next reading whose request goes out after this call, at most `withinMs` after the one before. */
  next(withinMs?: number): Promise<Reading>
}

export interface WatchOptions {
  readonly platform: Platform
  /** Reads the inputs once; null when that failed. */
  read(): Promise<ReadonlyMap<number, boolean> | null>
  /** Pause between two rounds, ms. */
  readonly pollMs: number
  /** What `identify` read: changes are told from here on. */
  readonly initial: ReadonlyMap<number, boolean>
  /** Ends the watch. */
  readonly signal: AbortSignal
  onChange(input: number, on: boolean): void
}

/** Starts reading until `signal` aborts. */
export function watchInputs(options: WatchOptions): InputWatch {
  const { pollMs, signal } = options
  const { clock, timers } = options.platform
  let state: ReadonlyMap<number, boolean> = options.initial
  let waiters: ((reading: Reading) => void)[] = []
  let endPause = () => {}
  let pauseMs = pollMs

  async function readOnce(): Promise<Reading> {
    const found = await options.read()
    if (!found) return { kind: 'missed' }
    for (const [input, on] of found) if (state.get(input) !== on && !signal.aborted) options.onChange(input, on)
    state = found
    return { kind: 'read', isOn: (input) => found.get(input) === true }
  }

  async function idle(): Promise<void> {
    const from = clock.elapsed()
    for (let left = pauseMs; left > 0 && !signal.aborted; left = from + pauseMs - clock.elapsed()) {
      const early = new AbortController()
      endPause = () => early.abort(signal.reason)
      signal.addEventListener('abort', endPause, { once: true })
      await pause(timers, left, early.signal).catch(() => {})
      signal.removeEventListener('abort', endPause)
    }
    endPause = () => {}
    pauseMs = pollMs
  }

  async function watch(): Promise<void> {
    while (!signal.aborted) {
      const served = waiters
      waiters = []
      const reading = await readOnce()
      for (const take of served) take(reading)
      if (!signal.aborted) await idle()
    }
    for (const take of waiters.splice(0)) take({ kind: 'over' })
  }

  void watch()
  return {
    next: (withinMs = pollMs) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve({ kind: 'over' })
        waiters.push(resolve)
        if (withinMs >= pauseMs) return
        pauseMs = withinMs
        endPause()
      }),
  }
}
