import type { Platform } from '../../../policy/platform.ts'
import type { Chance } from './chance.ts'
import type { Scheduler } from './scheduler.ts'

/** A simulated computer: a clock that may be wrong, and a process that may die. */
export interface Machine {
  readonly name: string
  readonly isUp: boolean
  /** The process that runs now, or the last one. */
  readonly process: Process | undefined
  /** A new process; the one before must be dead. */
  begin(): Process
  /** The wall clock alone jumps by so many ms. */
  jumpClock(ms: number): void
  /** Corrects the wall clock, as a time server does. */
  correctClock(): void
  /** Sets the drift of both clocks, ppm. */
  drift(ppm: number): void
  /** The operating system starts again: elapsed time from 0, another boot. */
  reboot(): void
}

/** One run of a program. A dead process has no further effects. */
export interface Process {
  readonly isAlive: boolean
  readonly platform: Platform
  /** Ends at once, in the middle of whatever it does. */
  kill(): void
  /** Called when it has ended, at most once. Answers how to be called no more. */
  onEnd(listener: () => void): () => void
}

/** A computer with a right clock and no process. */
export function machine(name: string, world: { scheduler: Scheduler; chance: Chance }): Machine {
  const { scheduler } = world
  const random = world.chance.fork(`machine ${name}`)
  let ppm = 0
  /** The oscillator: what has passed by its own reckoning, ms. */
  let anchorTrue = scheduler.nowMs
  let anchorOwn = 0
  let wallAtZero = scheduler.nowMs
  let bootedAt = 0
  let boots = 1
  let current: Process | undefined

  const own = () => anchorOwn + (scheduler.nowMs - anchorTrue) * (1 + ppm / 1e6)

  function newProcess(): Process {
    let isAlive = true
    const listeners = new Set<() => void>()
    const bootId = `${name}-${boots}`
    const booted = bootedAt
    return {
      get isAlive() {
        return isAlive
      },
      platform: {
        clock: { wall: () => Math.floor(wallAtZero + own()), elapsed: () => own() - booted, bootId },
        timers: {
          after: (ms, task) =>
            scheduler.after(ms / (1 + ppm / 1e6), () => {
              if (isAlive) task()
            }),
        },
        random: { bytes: (length) => random.bytes(length) },
      },
      kill() {
        if (!isAlive) return
        isAlive = false
        const told = [...listeners]
        listeners.clear()
        for (const listener of told) listener()
      },
      onEnd(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
    }
  }

  return {
    name,
    get isUp() {
      return current?.isAlive === true
    },
    get process() {
      return current
    },
    begin() {
      if (current?.isAlive) throw new Error(`${name} runs already`)
      current = newProcess()
      return current
    },
    jumpClock: (ms) => void (wallAtZero += ms),
    correctClock: () => void (wallAtZero = scheduler.nowMs - own()),
    drift(to) {
      anchorOwn = own()
      anchorTrue = scheduler.nowMs
      ppm = to
    },
    reboot() {
      boots++
      bootedAt = own()
    },
  }
}
