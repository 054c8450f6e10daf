import type { Chance } from '../virtual/chance.ts'
import type { Core } from '../virtual/core.ts'
import { isDiskFault } from '../virtual/disk.ts'
import type { Scheduler } from '../virtual/scheduler.ts'
import type { Machine } from '../virtual/machine.ts'

interface Startable {
  readonly machine: Pick<Machine, 'isUp'>
  start(): Promise<void> | void
  crash(how: { powerCut: boolean }): void
}

/** Starts a process again after it ended, as systemd or Docker does in a shop. */
export class Restarts {
  readonly #core: Core
  readonly #scheduler: Scheduler
  readonly #chance: Chance
  /** Time until which a machine stays down, by machine name. */
  readonly #down = new Map<string, number>()
  #disturbances = 0

  constructor(core: Core) {
    this.#core = core
    this.#scheduler = core.scheduler
    this.#chance = core.chance.fork('restarts')
  }

  /** Number of process ends, disk faults and clock changes. */
  get disturbances(): number {
    return this.#disturbances
  }

  countDisturbance(): void {
    this.#disturbances++
  }

  /** Keeps a machine down for `ms`. */
  keepDown(name: string, ms: number): void {
    this.#down.set(name, this.#scheduler.nowMs + ms)
  }

  /** Ends the down time of every machine. */
  allowAllStarts(): void {
    this.#down.clear()
  }

  /** Starts an ended process after some seconds, or later if its machine is kept down. */
  restartAfterEnd(name: string, start: () => void): void {
    this.countDisturbance()
    const wait = () => {
      const until = this.#down.get(name) ?? 0
      this.#scheduler.after(Math.max(until - this.#scheduler.nowMs, this.#chance.between(200, 5_000)), start)
    }
    // Waits 1 ms, because a power cut may call `keepDown` at the same time.
    this.#scheduler.after(1, wait)
  }

  /**
   * Starts the process of a node that is down. A disk fault during the start ends the process, as in `untag cloud`
   * and `untag edge`.
   */
  async start(name: string, node: Startable): Promise<void> {
    if (node.machine.isUp) return
    try {
      await node.start()
    } catch (error) {
      if (isDiskFault(error)) node.crash({ powerCut: false })
      else this.#core.violate('fault', `${name} does not start: ${(error as Error).stack}`)
    }
  }
}
