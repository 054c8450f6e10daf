import { pause } from '../../policy/platform.ts'
import type { Platform } from '../../policy/platform.ts'

/** Result of one round of reading. */
export type Reading =
  | { readonly kind: 'read'; isOn(input: number): boolean }
  /** The device refused the request, or its answer was lost. */
  | { readonly kind: 'missed' }
  /** The session has ended, so no more readings follow. */
  | { readonly kind: 'over' }

/** Polls the inputs of one device. */
export interface InputWatch {
  /**
   * Resolves with the first reading that starts after this call. This reading starts at most `withinMs` after the
   * previous reading ended.
   */
  next(withinMs?: number): Promise<Reading>
}

export interface WatchOptions {
  readonly platform: Platform
  /** Reads the inputs once; null if that failed. */
  read(): Promise<ReadonlyMap<number, boolean> | null>
  /** Pause between two rounds, ms. */
  readonly pollMs: number
  /** Input states that `identify` has read. The watch passes later changes to `onChange`. */
  readonly initial: ReadonlyMap<number, boolean>
  /** Ends the polling. */
  readonly signal: AbortSignal
  onChange(input: number, on: boolean): void
}

/** Polls until `signal` aborts. */
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
