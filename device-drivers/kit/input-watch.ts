import { pause, type Platform, type Timers, type Cancel } from '../../policy/platform.ts'
import type { DeviceEvent, WriteAnswer } from './device.ts'

/** Holds the releasing output on during an emergency. */
export interface HoldOpen {
  /**
   * True while the output must stay on. Undefined until the agent has read its emergency inputs; until then the output
   * keeps its state, because the agent may have restarted during an emergency.
   */
  readonly isOpen: boolean | undefined
  /**
   * Writes the output every second until the device confirms the write. If `open` is true, the writes continue until
   * the emergency ends.
   */
  set(open: boolean): Promise<WriteAnswer>
  stop(): void
}

interface HoldOpenOptions {
  readonly timers: Timers
  /** True if the output must keep its state until the first `set`. */
  readonly waits: boolean
  /** True while a release has switched the output on. The end of the release switches it off. */
  isPulsing(): boolean
  /** Never rejects. */
  write(on: boolean): Promise<WriteAnswer>
}

/** Interval of the writes, ms. A board may lose its outputs, or switch an output off by its own timer. */
const REPEAT_MS = 1_000
const DONE: WriteAnswer = { kind: 'answered' }

/** Makes the `HoldOpen` of an output. It writes nothing before the first `set`. */
export function holdOpen({ timers, waits, isPulsing, write }: HoldOpenOptions): HoldOpen {
  let isOpen: boolean | undefined = waits ? undefined : false
  let generation = 0
  let cancel: Cancel = () => {}

  async function writeState(own: number): Promise<WriteAnswer> {
    const open = isOpen === true
    const answer = !open && isPulsing() ? DONE : await write(open)
    if (own !== generation) return answer
    // If the device is disconnected, the driver writes its outputs at the next connect.
    const isSettled = answer.kind === 'answered' || (answer.kind === 'lost' && !answer.possiblySent)
    if (open || !isSettled) cancel = timers.after(REPEAT_MS, () => void writeState(own))
    return answer
  }

  return {
    get isOpen() {
      return isOpen
    },
    async set(open) {
      if (isOpen === open) return DONE
      cancel()
      isOpen = open
      return writeState(++generation)
    },
    stop() {
      cancel()
      generation++
    },
  }
}

/**
 * Makes a signal that aborts as soon as `one` or `other` aborts; `done` removes its listeners. Use it with long-lived
 * signals: on Node 20, each call of `AbortSignal.any` leaks memory while its source signals live.
 */
export function eitherSignal(one: AbortSignal, other: AbortSignal): { signal: AbortSignal; done: Cancel } {
  const both = new AbortController()
  const onOne = () => both.abort(one.reason)
  const onOther = () => both.abort(other.reason)
  if (one.aborted) onOne()
  else if (other.aborted) onOther()
  one.addEventListener('abort', onOne, { once: true })
  other.addEventListener('abort', onOther, { once: true })
  return {
    signal: both.signal,
    done() {
      one.removeEventListener('abort', onOne)
      other.removeEventListener('abort', onOther)
    },
  }
}

interface LevelWatchOptions {
  readonly timers: Timers
  /** Ends the watch. */
  readonly over: AbortSignal
  /** Reads the level of the input; null if the reader did not answer. */
  read(): Promise<boolean | null>
  onLevel(level: boolean): void
  /** Called when the reader did not answer three times in a row. */
  onUnresponsive(): void
}

/**
 * Interval of the reads, ms. Readers also report changes by themselves. These reads find changes whose report was lost.
 */
const READ_EVERY_MS = 1_000
const MAX_MISSED = 3

/** Reads the level of an input every second until `over` aborts. */
export async function watchLevel({ timers, over, read, onLevel, onUnresponsive }: LevelWatchOptions): Promise<void> {
  for (let missed = 0; missed < MAX_MISSED;) {
    await pause(timers, READ_EVERY_MS, over).catch(() => {})
    if (over.aborted) return
    const level = await read()
    if (over.aborted) return
    missed = level === null ? missed + 1 : 0
    if (level !== null) onLevel(level)
  }
  onUnresponsive()
}

/** An input of a reader changed. */
interface InputChange {
  readonly input: number
  readonly on: boolean
  /** Age of the change, ms. */
  readonly ageMs: number
}

const OLD_AFTER_MS = 2_000

/** Returns the events of an input change. Changes older than 2 s cause no events. */
export function inputEvents({ input, on, ageMs }: InputChange, passageInput: number | undefined): DeviceEvent[] {
  if (ageMs > OLD_AFTER_MS) return []
  const change: DeviceEvent = { type: 'input', input, on }
  return input === passageInput && on ? [change, { type: 'passage' }] : [change]
}

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

interface WatchOptions {
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
