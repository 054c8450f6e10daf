import fc from 'fast-check'
import { FUZZED_OPERATIONS } from './steps.ts'
import type { Database } from '../../../cloud/platform/persistence/database.ts'
import { chanceOf } from '../simulation/virtual/chance.ts'
import type { TestAccounts } from './scene/test-accounts.ts'
import type { Fault } from './judge.ts'
import { newDriver, type Driver } from './driver.ts'
import { pickStep, type Step } from './steps.ts'
import { NO_PLAN, ONE_UNKNOWN, plansFor, type Plan } from './requests/plans.ts'
import { serveCloud } from './scene/served-cloud.ts'

/** A fault with the seed and the number of requests that repeat it. */
export interface Failure extends Fault {
  readonly seed: number
  /**
   * Number of requests that were sent before the fault was found. A run with this number of requests repeats the fault.
   */
  readonly requests: number
  readonly who: string
  readonly operation: string
  /** The smallest known request that shows the fault. */
  readonly request: string
}

export interface RunResult {
  readonly seed: number
  readonly requests: number
  /** Hash of all answers. Equal hashes mean equal runs. */
  readonly hash: string
  readonly failures: readonly Failure[]
  /** Number of successes by operation. */
  readonly succeeded: ReadonlyMap<string, number>
  /** Number of answers by status. */
  readonly statuses: ReadonlyMap<number, number>
}

export interface RunOptions {
  readonly seed: number
  readonly requests: number
  /** Maximum number of failures of a run. */
  readonly most?: number
}

/** Maximum number of smaller requests that are tried for a fault. */
const SHRINKS = 60
/** Probability that virtual time passes before a step, so that background work runs. */
const PAUSES = 0.1

/**
 * Sends requests to a cloud on this database and judges every answer. The database must contain the test accounts.
 * Closes the database.
 */
export async function runFuzz(accounts: TestAccounts, database: Database, options: RunOptions): Promise<RunResult> {
  const { seed, requests, most = 5 } = options
  const chance = chanceOf(seed)
  const served = await serveCloud(database, accounts.keyFiles, { seed, startMs: accounts.startMs })
  const driver = newDriver(accounts, served, chance.fork('driver'))
  const steps = chance.fork('steps')
  const failures: Failure[] = []
  const known = new Set<string>()
  await driver.warmUp()

  while (driver.sent < requests && failures.length < most) {
    if (steps.happens(PAUSES)) await driver.pass(steps.one([10, 1_000, 61_000, 600_000, 3_600_000, 30_000_000]))
    const step = pickStep(steps, accounts, driver.succeeded)
    const fault = await tryStep(driver, step)
    if (!fault) continue
    const key = `${fault.rule} ${step.operation?.name ?? 'page'}`
    if (known.has(key)) continue
    known.add(key)
    failures.push({
      ...fault,
      seed,
      requests: driver.sent,
      who: step.who,
      operation: step.operation?.name ?? step.style,
    })
  }
  await served.stop()
  return {
    seed,
    requests: driver.sent,
    hash: driver.hash(),
    failures,
    succeeded: driver.succeeded,
    statuses: driver.statuses,
  }
}

/** Runs one step. If the step shows a fault, searches for the smallest request that shows the same fault. */
async function tryStep(driver: Driver, step: Step): Promise<(Fault & { request: string }) | undefined> {
  const prepared = await driver.prepare(step)
  if (prepared.fault) return prepared.fault
  let smallest: (Fault & { request: string }) | undefined
  let tries = 0
  const attempt = async (plan: Plan): Promise<boolean> => {
    if (smallest && ++tries > SHRINKS) return true
    const fault = await driver.carryOut(step, prepared, plan)
    if (!fault || (smallest && fault.rule !== smallest.rule)) return true
    smallest = fault
    return false
  }
  const plans = plansOf(step)
  await fc.check(fc.asyncProperty(plans, attempt), { seed: step.seed, numRuns: 1 })
  return smallest
}

function plansOf({ operation, style, isOlderForm }: Step): fc.Arbitrary<Plan> {
  if (style === 'unknown') return ONE_UNKNOWN
  if (style !== 'fuzzed' || !operation) return fc.constant(NO_PLAN)
  return plansFor(isOlderForm && operation.get ? operation.get.request : operation.request)
}

/** Operations without a success in these runs. */
export function neverSucceeded(results: readonly RunResult[]): string[] {
  return FUZZED_OPERATIONS.map(({ name }) => name).filter(
    (name) => !results.some(({ succeeded }) => succeeded.has(name)),
  )
}
