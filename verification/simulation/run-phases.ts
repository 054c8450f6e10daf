import { checkEnd, isForked, isAgentOnlineOnly, unsettledReason } from './end-checks.ts'
import type { CallResult } from './nodes/merchant.ts'
import type { Provider } from './nodes/provider.ts'
import { injectFaults, type FaultInjector } from './faults/fault-injector.ts'
import type { Run } from './virtual/run.ts'
import type { Scheduler } from './virtual/scheduler.ts'
import type { Simulation } from './simulation.ts'

const MINUTE_MS = 60_000
/** Until everybody has found everybody, ms. */
const WARM_UP_MS = 4_000
/** Once all is well everything must have arrived within (research, liveness mode). */
const RECOVERY_LIMIT_MS = 30 * MINUTE_MS
/** Between two looks at whether everything has arrived. */
const POLL_MS = 5_000
/** The longest for which the ledger of an agent that was put back is doubted, and some. */
const UNTRUSTED_LEDGER_MS = 12 * MINUTE_MS

/**
 *   open ─▶ visits amid troubles ─▶ settle ─▶ checks at the end ─▶ a good day
 *                     │                └─ a forked ledger is left: people must decide first
 *                     └─ half of the worlds without liveness end here
 *
 * What happens in a world from its first process to the end. The first violation ends it.
 */
export class RunPhases {
  readonly #simulation: Simulation
  readonly #run: Run
  readonly #clock: Scheduler
  readonly #isOver: () => boolean

  constructor(world: Simulation, run: Run) {
    this.#simulation = world
    this.#run = run
    this.#clock = run.core.scheduler
    this.#isOver = run.isOver
  }

  /** Runs the whole world. */
  async run(liveness: boolean): Promise<void> {
    const { plan } = this.#simulation
    await this.#open()
    const troubles = injectFaults(plan.faults, this.#simulation, plan.pace)
    await this.#visits()
    if (this.#isOver() || this.#isLeftForked()) return
    if (liveness || plan.chance.happens(0.5)) await this.#end(troubles)
  }

  async #open(): Promise<void> {
    const { agents, provider, liar } = this.#simulation
    this.#simulation.startCloud()
    for (const node of agents) node.start()
    await this.#runFor(WARM_UP_MS)
    if (provider) await this.#configure(provider)
    if (liar) await this.#runUntilDone(liar.begin())
  }

  /** Visitors come and go. */
  async #visits(): Promise<void> {
    const { people, plan } = this.#simulation
    const { pace } = plan
    let inside = pace.visitors
    for (let n = 0; n < pace.visitors; n++) {
      this.#clock.after(plan.chance.between(1, pace.arrivalWithinMs), () => {
        people
          .visit(`visitor-${n}`)
          .catch((error: unknown) => this.#run.core.violate('fault', `a visit failed: ${(error as Error).stack}`))
          .finally(() => void inside--)
      })
    }
    // An empty shop teaches nothing.
    await this.#runFor(pace.arrivalWithinMs + pace.longestVisitMs, () => inside === 0)
  }

  /** All is well from now on: everything must arrive, and then work. */
  async #end(troubles: FaultInjector): Promise<void> {
    const { core, restarts, copies, emergencies } = this.#simulation
    troubles.heal()
    restarts.allowAllStarts()
    copies.decide()
    await this.#runFor(WARM_UP_MS)
    let lookAt = 0
    await this.#runFor(RECOVERY_LIMIT_MS, () => {
      if (this.#clock.nowMs < lookAt) return false
      lookAt = this.#clock.nowMs + POLL_MS
      return this.#isLeftForked() || this.#unsettledReason() === undefined
    })
    // A violation, or a forked ledger: no agent of that comes right by itself.
    const isLeft = this.#isOver() || this.#isLeftForked()
    const why = isLeft ? undefined : this.#unsettledReason()
    if (why !== undefined) core.violate('liveness', `half an hour after all was well: ${why}`)
    if (!isLeft && !this.#isOver()) checkEnd(this.#simulation)
    emergencies?.checkEnd()
    if (!isLeft && !this.#isOver()) await this.#probe()
  }

  /** Of two copies of a ledger one must be taken away and enrolled anew: that is for people, and nobody is at it. */
  #isLeftForked(): boolean {
    return this.#simulation.copies.underWay === undefined && isForked(this.#simulation.cloud)
  }

  /** What has not come right yet; undefined when all has. */
  #unsettledReason(): string | undefined {
    const { copies, moves, enrolments } = this.#simulation
    return copies.underWay ?? moves?.underWay ?? enrolments.underWay ?? unsettledReason(this.#simulation)
  }

  /** On a good day everything works, whatever was before. */
  async #probe(): Promise<void> {
    const { core, cloud, people, plan, isClockWrong } = this.#simulation
    // A cloud whose clock has jumped signs nothing for a minute from when it has noticed, for which it looks twice a minute.
    if (isClockWrong) await this.#runFor(2 * MINUTE_MS)
    // An agent whose ledger was put back not long ago needs the cloud's yes for all, and releases all the same; so it does afterwards.
    if (plan.chance.happens(0.5))
      await this.#runFor(UNTRUSTED_LEDGER_MS, () => !isAgentOnlineOnly(cloud, this.#clock.nowMs))
    let answer: { works: string | undefined } | undefined
    people.probe().then(
      (works) => void (answer = { works }),
      (error: unknown) => void (answer = { works: String(error) }),
    )
    await this.#runFor(MINUTE_MS, () => answer !== undefined)
    if (answer?.works !== undefined) core.violate('liveness', answer.works)
    if (!answer && !this.#isOver()) core.violate('liveness', 'a purchase takes over a minute')
  }

  /** The shop's manager says how it is paid. */
  async #configure({ name, books }: Provider): Promise<void> {
    const { core, manager, shop } = this.#simulation
    let answer: CallResult | undefined
    void manager
      .call('configurePSP', { storeId: shop.storeId, provider: name, config: books.config() })
      .then((called) => void (answer = called))
    await this.#runFor(MINUTE_MS, () => answer !== undefined)
    if (answer?.ok !== true) core.violate('fault', `the provider ${name} is not taken: ${JSON.stringify(answer)}`)
  }

  /** Lets the world go on until this is done. */
  async #runUntilDone(work: Promise<void>): Promise<void> {
    let isDone = false
    const done = () => void (isDone = true)
    work.then(done, done)
    await this.#runFor(MINUTE_MS, () => isDone)
  }

  /** Lets so much time pass, ms, or less when the condition holds or the run is over. */
  async #runFor(ms: number, isDone: () => boolean = () => false): Promise<void> {
    await this.#clock.run(this.#clock.nowMs + ms, () => this.#isOver() || isDone())
  }
}
