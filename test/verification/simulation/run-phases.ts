import { checkEnd, isForked, isAgentOnlineOnly, unsettledReason } from './end-checks.ts'
import type { CallResult } from './nodes/merchant.ts'
import type { Provider } from './nodes/provider.ts'
import { injectFaults, type FaultInjector } from './faults/fault-injector.ts'
import type { Run } from './virtual/run.ts'
import type { Chance } from './virtual/chance.ts'
import type { Scheduler } from './virtual/scheduler.ts'
import type { Simulation } from './simulation.ts'

const MINUTE_MS = 60_000
/** Time for agents to connect, ms. */
const WARM_UP_MS = 4_000
/** Time limit for the recovery after the last fault, ms. */
const RECOVERY_LIMIT_MS = 30 * MINUTE_MS
const POLL_MS = 5_000
/** Number of shoppers at tills beyond the other visitors. */
const TILL_VISITS = 3
/** Longest time for which a restored ledger is untrusted, plus a margin, ms (ADR agents). */
const UNTRUSTED_LEDGER_MS = 12 * MINUTE_MS

/**
 * The phases of a run: warm-up, visits with faults, recovery, checks, and a purchase without faults. Half of the runs
 * without longer faults end after the visits. A run also ends if a forked ledger needs staff. A run also ends at the
 * first violation.
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

  /** Runs all phases. */
  async run(liveness: boolean): Promise<void> {
    const { plan } = this.#simulation
    await this.#open()
    const injector = injectFaults(plan.faults, this.#simulation, plan.pace)
    await this.#visits()
    if (this.#isOver() || this.#isLeftForked()) return
    if (liveness || plan.chance.happens(0.5)) await this.#end(injector)
  }

  async #open(): Promise<void> {
    const { agents, provider, liar, tills } = this.#simulation
    this.#simulation.startCloud()
    for (const node of agents) node.start()
    await this.#runFor(WARM_UP_MS)
    if (provider) await this.#configure(provider)
    if (liar) await this.#runUntilDone(liar.begin())
    if (tills) await this.#runUntilDone(tills.begin())
  }

  async #visits(): Promise<void> {
    const { people, tills, plan } = this.#simulation
    const { pace } = plan
    let inside = 0
    const visitLater = (within: Chance, visit: () => Promise<void>) => {
      inside++
      this.#clock.after(within.between(1, pace.arrivalWithinMs), () => {
        visit()
          .catch((error: unknown) => this.#run.core.violate('fault', `a visit failed: ${(error as Error).stack}`))
          .finally(() => void inside--)
      })
    }
    for (let n = 0; n < pace.visitors; n++) visitLater(plan.chance, () => people.visit(`visitor-${n}`))
    const chance = plan.chance.fork('tills')
    for (let n = 0; tills && n < pace.visitors + TILL_VISITS; n++)
      visitLater(chance, () => tills.visit(`till-visitor-${n}`))
    // Stops earlier if no customer is left.
    await this.#runFor(pace.arrivalWithinMs + pace.longestVisitMs, () => inside === 0)
  }

  /** Ends all faults. After that, everything must recover, and a purchase must succeed. */
  async #end(injector: FaultInjector): Promise<void> {
    const { core, restarts, copies, emergencies } = this.#simulation
    injector.heal()
    restarts.allowAllStarts()
    copies.decide()
    await this.#runFor(WARM_UP_MS)
    let nextCheckMs = 0
    await this.#runFor(RECOVERY_LIMIT_MS, () => {
      if (this.#clock.nowMs < nextCheckMs) return false
      nextCheckMs = this.#clock.nowMs + POLL_MS
      return this.#isLeftForked() || this.#unsettledReason() === undefined
    })
    // Without staff, a forked ledger does not recover.
    const isLeft = this.#isOver() || this.#isLeftForked()
    const why = isLeft ? undefined : this.#unsettledReason()
    if (why !== undefined) core.violate('liveness', `half an hour after the last fault: ${why}`)
    if (!isLeft && !this.#isOver()) checkEnd(this.#simulation)
    emergencies?.checkEnd()
    if (!isLeft && !this.#isOver()) await this.#probe()
  }

  /** True if a ledger is forked and no simulated staff will resolve the fork. */
  #isLeftForked(): boolean {
    return this.#simulation.copies.underWay === undefined && isForked(this.#simulation.cloud)
  }

  /** Returns why the run has not recovered, or undefined if it has. */
  #unsettledReason(): string | undefined {
    const { copies, moves, enrolments } = this.#simulation
    return copies.underWay ?? moves?.underWay ?? enrolments.underWay ?? unsettledReason(this.#simulation)
  }

  /** Runs a purchase without faults, which must succeed. */
  async #probe(): Promise<void> {
    const { core, cloud, people, plan, isClockWrong } = this.#simulation
    // The cloud checks its clock twice a minute and signs nothing for a minute after a clock change.
    if (isClockWrong) await this.#runFor(2 * MINUTE_MS)
    // A recently restored agent needs the cloud. Half of the runs wait until the agent decides alone again.
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

  /** Connects the payment provider. */
  async #configure({ name, books }: Provider): Promise<void> {
    const { core, manager, shop } = this.#simulation
    let answer: CallResult | undefined
    void manager
      .call('configurePSP', { storeId: shop.storeId, provider: name, config: books.config() })
      .then((called) => void (answer = called))
    await this.#runFor(MINUTE_MS, () => answer !== undefined)
    if (answer?.ok !== true) core.violate('fault', `the provider ${name} is not accepted: ${JSON.stringify(answer)}`)
  }

  /** Runs until the work is done. */
  async #runUntilDone(work: Promise<void>): Promise<void> {
    let isDone = false
    const done = () => void (isDone = true)
    work.then(done, done)
    await this.#runFor(MINUTE_MS, () => isDone)
  }

  /** Runs for `ms` of virtual time; stops early if the condition holds or the run is over. */
  async #runFor(ms: number, isDone: () => boolean = () => false): Promise<void> {
    await this.#clock.run(this.#clock.nowMs + ms, () => this.#isOver() || isDone())
  }
}
