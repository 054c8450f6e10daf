import { join } from 'node:path'
import { checkEnd, unsettledReason } from '../end-checks.ts'
import type { Shop } from '../nodes/initial-shop.ts'
import { chanceOf } from '../virtual/chance.ts'
import type { Violation } from '../virtual/core.ts'
import { openRun, type Run } from '../virtual/run.ts'
import type { Scheduler } from '../virtual/scheduler.ts'
import { DayStore, type DayOptionsOfTills } from './day-store.ts'
import { prepareStore } from './prepare-store.ts'
import { checkReleases, unitsReleasedBy } from './releases.ts'
import type { Tally } from './tally.ts'
import { dayPlan, timetable, WHOLE_DAY, type DayPlan, type Shopper } from './timetable.ts'

export interface DayOptions {
  seed: number
  shoppers: number
  /** Number of hours for which the store is open, at least 1 (default 11). A shorter day has the same outages. */
  hours?: number
  /** Tills that make 80 % of the sales: their sales are reported to an agent, or not. Default: no tills. */
  tills?: DayOptionsOfTills
  /** Maximum number of trace lines in memory. */
  keepLines?: number
  /** Called every 15 minutes of the day. */
  onProgress?(progress: DayProgress): void
}

export interface DayProgress {
  /** Local time of the store, such as `12:15`. */
  readonly time: string
  /** Current counts. */
  readonly tally: Tally
}

export interface DayResult {
  readonly seed: number
  readonly shoppers: number
  readonly violations: readonly Violation[]
  /** Hash of all events; equal for identical runs. */
  readonly hash: string
  readonly steps: number
  readonly tally: Tally
  /** Units released according to the ledgers. */
  readonly unitsReleased: number
  /** Number of rows in the three journals. */
  readonly journalRows: number
  /**
   * Number of offline answers to receipts that were compared with the policy, and how many of these were stricter than
   * the policy.
   */
  readonly offline: { readonly compared: number; readonly stricter: number }
  readonly lines: readonly string[]
}

const MINUTE_MS = 60_000
/** The first midnight after the creation of the shop, in local time (Berlin, one hour ahead of UTC). */
const MIDNIGHT_MS = Date.UTC(2026, 10, 20, 23)
const HOUR_MS = 60 * MINUTE_MS
const OPENS_MS = MIDNIGHT_MS + WHOLE_DAY.opensHour * HOUR_MS
/** Time before opening at which the machines start and the goods are registered, ms. */
const BEFORE_MS = 40 * MINUTE_MS
/** Time after closing in which all reports must arrive, ms. */
const SETTLED_WITHIN_MS = 30 * MINUTE_MS
/** Maximum share of offline answers that are stricter because a fact was unknown. */
const STRICTER_SHARE = 0.02

/** Runs one day of a store from `makeDayShop`. Equal seeds give equal days. The first violation ends the day. */
export async function runDay(shop: Shop, options: DayOptions): Promise<DayResult> {
  const { seed, keepLines } = options
  const chance = chanceOf(seed)
  const folderPrefix = join(shop.templates.cloud, '..', `day-${seed}-`)
  const run = openRun({ chance, startMs: OPENS_MS - BEFORE_MS, zeroMs: OPENS_MS, folderPrefix, keepLines })
  const plan = dayPlan(options.hours ?? WHOLE_DAY.hours)
  const people = timetable(options.shoppers, plan, chance.fork('timetable'))
  const store = new DayStore(run.core, shop, people, options.tills)
  try {
    await new Day(store, run, plan, people, options.onProgress).run()
    const unitsReleased = unitsReleasedBy(store.ledgers)
    if (!run.isOver()) checkReleases(unitsReleased, store)
    const { scheduler, trace } = run.core
    options.onProgress?.({ time: timeOf(scheduler.nowMs), tally: store.tally })
    return {
      seed,
      shoppers: people.length,
      violations: run.violations,
      hash: trace.hash,
      steps: scheduler.steps,
      tally: store.tally,
      unitsReleased,
      journalRows: [...store.ledgers.values()].reduce((sum, { rows }) => sum + rows.length, 0),
      offline: { compared: store.rules.compared, stricter: store.rules.stricter },
      lines: trace.lines,
    }
  } finally {
    store.close()
    run.close()
  }
}

/** The phases of a day, from the morning until all reports have arrived. */
class Day {
  readonly #store: DayStore
  readonly #run: Run
  readonly #clock: Scheduler
  readonly #plan: DayPlan
  readonly #people: readonly Shopper[]
  readonly #onProgress: DayOptions['onProgress']
  #inside = 0

  constructor(
    store: DayStore,
    run: Run,
    plan: DayPlan,
    people: readonly Shopper[],
    onProgress: DayOptions['onProgress'],
  ) {
    this.#store = store
    this.#run = run
    this.#clock = run.core.scheduler
    this.#plan = plan
    this.#people = people
    this.#onProgress = onProgress
  }

  async run(): Promise<void> {
    const { cloud, agents } = this.#store
    await this.#until('the cloud starts', cloud.start(), MINUTE_MS)
    for (const node of agents) {
      // The machines were off during the night.
      node.machine.reboot()
      node.start()
    }
    await this.#clock.run(this.#clock.nowMs + MINUTE_MS / 2, this.#run.isOver)
    await this.#until('the morning', prepareStore(this.#store), BEFORE_MS / 2)
    this.#planOutages()
    this.#planVisits()
    await this.#clock.run(OPENS_MS, this.#run.isOver)
    await this.#openingHours()
    await this.#close()
  }

  #planOutages(): void {
    const { outage, powerCut } = this.#plan
    const { agents, detacher } = this.#store
    const { trace } = this.#run.core
    this.#at(outage.fromMs, () => {
      trace.add('day', 'the internet connection is down')
      for (const { wire } of agents) wire.cut()
    })
    this.#at(outage.toMs, () => {
      trace.add('day', 'the internet connection is back')
      for (const { wire } of agents) wire.restore()
    })
    this.#at(powerCut.fromMs, () => this.#store.cutPower())
    this.#at(powerCut.toMs, () => detacher.start())
  }

  #planVisits(): void {
    const { core } = this.#run
    for (const shopper of this.#people) {
      this.#at(shopper.comesMs, () => {
        this.#inside++
        this.#store.crowd
          .visit(shopper)
          .catch((error: unknown) =>
            core.violate('fault', `the visit of ${shopper.name} failed: ${(error as Error).stack}`),
          )
          .finally(() => void this.#inside--)
      })
    }
  }

  async #openingHours(): Promise<void> {
    const { core, isOver } = this.#run
    const closesMs = OPENS_MS + this.#plan.lengthMs
    for (let at = OPENS_MS; at < closesMs && !isOver(); at += 15 * MINUTE_MS) {
      this.#onProgress?.({ time: timeOf(at), tally: this.#store.tally })
      await this.#clock.run(at + 15 * MINUTE_MS, isOver)
    }
    await this.#clock.run(closesMs + HOUR_MS, () => isOver() || this.#inside === 0)
    if (this.#inside > 0 && !isOver())
      core.violate('liveness', `an hour after closing ${this.#inside} people are still in the store`)
  }

  /** Waits until all reports have arrived, and checks the end of the day. */
  async #close(): Promise<void> {
    const { core, isOver } = this.#run
    const { end, rules } = this.#store
    let nextCheckMs = 0
    await this.#clock.run(this.#clock.nowMs + SETTLED_WITHIN_MS, () => {
      if (isOver()) return true
      if (this.#clock.nowMs < nextCheckMs) return false
      nextCheckMs = this.#clock.nowMs + 5_000
      return unsettledReason(end) === undefined
    })
    const why = isOver() ? undefined : unsettledReason(end)
    if (why !== undefined) core.violate('liveness', `half an hour after closing: ${why}`)
    if (!isOver()) checkEnd(end)
    if (rules.stricter > STRICTER_SHARE * rules.compared)
      core.violate('rules', `${rules.stricter} of ${rules.compared} offline answers are stricter than the policy`)
  }

  /** Runs a task when the store has been open for `ms`. */
  #at(ms: number, task: () => void): void {
    this.#clock.after(OPENS_MS + ms - this.#clock.nowMs, task)
  }

  /** Runs the clock until the work is done. A failure or timeout is a violation. */
  async #until(what: string, work: Promise<unknown>, withinMs: number): Promise<void> {
    const { core, isOver } = this.#run
    let isDone = false
    work.then(
      () => void (isDone = true),
      (error: unknown) => core.violate('fault', `${what}: ${(error as Error).stack}`),
    )
    await this.#clock.run(this.#clock.nowMs + withinMs, () => isDone || isOver())
    if (!isDone && !isOver()) core.violate('liveness', `${what} takes over ${withinMs / MINUTE_MS} minutes`)
  }
}

/** Local time of the store. */
function timeOf(ms: number): string {
  const minutes = Math.floor((ms - MIDNIGHT_MS) / MINUTE_MS)
  return `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`
}
