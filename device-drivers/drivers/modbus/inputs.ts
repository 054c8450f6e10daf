import { pause } from '../../../policy/platform.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Board } from './board.ts'
import type { FailedAnswer } from './bus.ts'

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

/** Inputs this close together are read in one request. */
const WIDEST_READ = 16

interface Span {
  readonly first: number
  readonly quantity: number
}

/** The fewest requests that cover `inputs` without asking for addresses far away that the board may not have. */
export function readSpans(inputs: readonly number[]): Span[] {
  const spans: Span[] = []
  for (const input of [...new Set(inputs)].sort((a, b) => a - b)) {
    const last = spans.at(-1)
    if (last && input - last.first < WIDEST_READ) spans[spans.length - 1] = { first: last.first, quantity: input - last.first + 1 }
    else spans.push({ first: input, quantity: 1 })
  }
  return spans
}

/** Reads the given inputs once: each with its state, or the first answer that was none. */
export async function readInputs(board: Board, inputs: readonly number[]): Promise<Map<number, boolean> | FailedAnswer> {
  const found = new Map<number, boolean>()
  for (const span of readSpans(inputs)) {
    const answer = await board.readInputs(span.first, span.quantity)
    if (answer.kind !== 'answered') return answer
    for (const input of inputs) {
      const bit = answer.values[input - span.first]
      if (input >= span.first && input < span.first + span.quantity) found.set(input, bit === 1)
    }
  }
  return found
}

export interface WatchOptions {
  readonly board: Board
  readonly platform: Platform
  readonly inputs: readonly number[]
  /** Pause between two rounds, ms. */
  readonly pollMs: number
  /** What `identify` read: changes are told from here on. */
  readonly before: ReadonlyMap<number, boolean>
  /** Ends the watch. */
  readonly signal: AbortSignal
  onChange(input: number, on: boolean): void
}

/** Starts reading until `signal` aborts. */
export function watchInputs(options: WatchOptions): InputWatch {
  const { board, inputs, pollMs, signal } = options
  const { clock, timers } = options.platform
  let state: ReadonlyMap<number, boolean> = options.before
  let takers: ((reading: Reading) => void)[] = []
  let hurry = () => {}
  let pauseMs = pollMs

  async function round(): Promise<Reading> {
    const found = await readInputs(board, inputs)
    if (!(found instanceof Map)) return { kind: 'missed' }
    for (const [input, on] of found) if (state.get(input) !== on && !signal.aborted) options.onChange(input, on)
    state = found
    return { kind: 'read', isOn: (input) => found.get(input) === true }
  }

  async function idle(): Promise<void> {
    const from = clock.elapsed()
    for (let left = pauseMs; left > 0 && !signal.aborted; left = from + pauseMs - clock.elapsed()) {
      const early = new AbortController()
      hurry = () => early.abort(signal.reason)
      signal.addEventListener('abort', hurry, { once: true })
      await pause(timers, left, early.signal).catch(() => {})
      signal.removeEventListener('abort', hurry)
    }
    hurry = () => {}
    pauseMs = pollMs
  }

  async function watch(): Promise<void> {
    while (!signal.aborted) {
      const asked = takers
      takers = []
      const reading = await round()
      for (const take of asked) take(reading)
      if (!signal.aborted) await idle()
    }
    for (const take of takers.splice(0)) take({ kind: 'over' })
  }

  void watch()
  return {
    next: (withinMs = pollMs) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve({ kind: 'over' })
        takers.push(resolve)
        if (withinMs >= pauseMs) return
        pauseMs = withinMs
        hurry()
      }),
  }
}
