import type { Cancel, Timers } from '../../policy/platform.ts'
import type { WriteAnswer } from './write-answer.ts'

/** Keeps the releasing output on for as long as an emergency lasts. */
export interface HoldOpen {
  /**
   * True while the output must stay on. Undefined until the agent has read its emergency inputs: until then the driver
   * leaves the output as it found it, so that a restart during an emergency closes nothing.
   */
  readonly isOpen: boolean | undefined
  /** Writes the output, and again every second until the device has taken it; an open one for as long as it lasts. */
  set(open: boolean): Promise<WriteAnswer>
  stop(): void
}

export interface HoldOpenOptions {
  readonly timers: Timers
  /** True if the output waits for the first `set`. */
  readonly waits: boolean
  /** True while a release has the output on: its end switches the output off. */
  isPulsing(): boolean
  /** Never rejects. */
  write(on: boolean): Promise<WriteAnswer>
}

/** Boards forget outputs, and some end a pulse by themselves: an open output is written again this often, ms. */
const REPEAT_MS = 1_000
const DONE: WriteAnswer = { kind: 'answered' }

/** Nothing is held open yet. */
export function holdOpen({ timers, waits, isPulsing, write }: HoldOpenOptions): HoldOpen {
  let isOpen: boolean | undefined = waits ? undefined : false
  let generation = 0
  let cancel: Cancel = () => {}

  async function writeState(own: number): Promise<WriteAnswer> {
    const open = isOpen === true
    const answer = !open && isPulsing() ? DONE : await write(open)
    if (own !== generation) return answer
    // A device that is away gets its outputs when it connects again.
    const isTaken = answer.kind === 'answered' || (answer.kind === 'lost' && !answer.possiblySent)
    if (open || !isTaken) cancel = timers.after(REPEAT_MS, () => void writeState(own))
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
