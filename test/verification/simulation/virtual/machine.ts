import type { Platform } from '../../../../policy/platform.ts'
import type { Chance } from './chance.ts'
import type { Scheduler } from './scheduler.ts'

/** A simulated computer with its own clock and at most one running process. */
export interface Machine {
  readonly name: string
  readonly isUp: boolean
  /** The current process, or the last one. */
  readonly process: Process | undefined
  /** Starts a new process. The previous process must have ended. */
  begin(): Process
  /** Changes the wall clock by `ms`; elapsed time does not change. */
  jumpClock(ms: number): void
  /** Sets the wall clock to true time, as a time server does. */
  correctClock(): void
  /** Sets the drift of wall clock and elapsed time, ppm. */
  drift(ppm: number): void
  /** Reboots the operating system: elapsed time starts at 0 with a new boot id. */
  reboot(): void
}

/** One run of a program. After its end, the program can have no effect. */
export interface Process {
  readonly isAlive: boolean
  readonly platform: Platform
  /** Ends the process at once. */
  kill(): void
  /** Calls the listener once, as soon as the process ends. Returns a function that removes the listener. */
  onEnd(listener: () => void): () => void
}

/** Creates a computer with a correct clock and no process. */
export function machine(name: string, world: { scheduler: Scheduler; chance: Chance }): Machine {
  const { scheduler } = world
  const random = world.chance.fork(`machine ${name}`)
  let ppm = 0
  /**
   * Time of the last change of the drift, ms: in true time, and in the time of the machine's own oscillator.
   */
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
        const called = [...listeners]
        listeners.clear()
        for (const listener of called) listener()
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
