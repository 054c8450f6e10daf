import type { Cancel, Timers } from '../../policy/platform.ts'
import type { WriteAnswer } from './write-answer.ts'

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

export interface HoldOpenOptions {
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
