import { runSeed, type SeedOptions, type SeedResult } from './run-seed.ts'
import type { Shops } from './nodes/shops.ts'
import type { Fault } from './faults/fault-kinds.ts'

/** Options for a sequence of runs. */
export interface CampaignOptions {
  firstSeed: number
  seeds: number
  /** Distance between two seeds (default 1). Several processes can thus share the seeds. */
  step?: number
  liveness: boolean
  /** Every n-th run is repeated and must give the same hash; 0 repeats none. */
  twiceEvery: number
  /** True to stop after the first failed run. */
  untilFirst: boolean
  /** Faults for all runs, instead of the drawn faults. */
  faults?: readonly Fault[] | undefined
  onSeed?(result: SeedResult, again: { ranTwice: boolean; isNondeterministic: boolean }): void
}

export interface CampaignResult {
  seeds: number
  ranTwice: number
  steps: number
  virtualMs: number
  failed: readonly SeedResult[]
  /** Seeds whose second run differed. */
  nondeterministic: readonly number[]
}

/** Runs consecutive seeds. */
export async function campaign(shops: Shops, options: CampaignOptions): Promise<CampaignResult> {
  const failed: SeedResult[] = []
  const nondeterministic: number[] = []
  let [count, ranTwice, steps, virtualMs] = [0, 0, 0, 0]
  for (let seed = options.firstSeed; count < options.seeds; seed += options.step ?? 1) {
    const world: SeedOptions = {
      seed,
      liveness: options.liveness,
      ...(options.faults && { faults: options.faults }),
    }
    const result = await runSeed(shops, world)
    count++
    steps += result.steps
    virtualMs += result.virtualMs
    if (result.violations.length > 0) failed.push(result)
    const isTwice = options.twiceEvery > 0 && count % options.twiceEvery === 1 % options.twiceEvery
    if (isTwice) {
      ranTwice++
      if ((await runSeed(shops, world)).hash !== result.hash) nondeterministic.push(seed)
    }
    options.onSeed?.(result, { ranTwice: isTwice, isNondeterministic: nondeterministic.at(-1) === seed })
    if (options.untilFirst && (failed.length > 0 || nondeterministic.length > 0)) break
  }
  return { seeds: count, ranTwice, steps, virtualMs, failed, nondeterministic }
}

/**
 * Removes faults one by one, as long as the seed still violates the same invariant. Returns the last run that failed.
 */
export async function fewestFaults(
  shops: Shops,
  failed: SeedResult,
  liveness: boolean,
  keepLines: number,
): Promise<SeedResult> {
  const wanted = failed.violations[0]?.invariant
  const again = async (faults: readonly Fault[]) => {
    const result = await runSeed(shops, { seed: failed.seed, liveness, faults, keepLines })
    return result.violations[0]?.invariant === wanted ? result : undefined
  }
  let best = failed
  for (const fault of failed.faults) {
    const smaller = await again(best.faults.filter((t) => t !== fault))
    if (smaller) best = smaller
  }
  return best
}
