import { join } from 'node:path'
import { RunPhases } from './run-phases.ts'
import type { Shops } from './nodes/shops.ts'
import { drawPlan } from './plan.ts'
import type { Fault } from './faults/fault-kinds.ts'
import { chanceOf } from './virtual/chance.ts'
import type { Violation } from './virtual/core.ts'
import { openRun } from './virtual/run.ts'
import { Simulation } from './simulation.ts'

export interface SeedOptions {
  seed: number
  /** True for longer faults and, after them, checks of the recovery. */
  liveness: boolean
  /** Faults that replace the drawn ones. */
  faults?: readonly Fault[]
  /** Number of trace lines in the result. */
  keepLines?: number
}

export interface SeedResult {
  seed: number
  violations: readonly Violation[]
  /** Hash of all events; equal for identical runs. */
  hash: string
  faults: readonly Fault[]
  steps: number
  /** Virtual duration, ms. */
  virtualMs: number
  lines: readonly string[]
}

/** Runs one seed. Equal options give equal results. The first violation ends the run. */
export async function runSeed(shops: Shops, options: SeedOptions): Promise<SeedResult> {
  const { seed, liveness } = options
  const chance = chanceOf(seed)
  const plan = drawPlan(chance.fork('plan'), liveness, options.faults)
  const shop = await shops.of({
    isLive: plan.provider !== undefined,
    agents: plan.enrolled,
    hasTills: plan.faults.includes('tills'),
  })
  const { startMs } = shop
  const folderPrefix = join(shop.templates.cloud, '..', `seed-${seed}-`)
  const run = openRun({ chance, startMs, zeroMs: startMs, folderPrefix, keepLines: options.keepLines })
  const world = new Simulation(run.core, shop, plan)
  const { scheduler, trace } = run.core
  trace.add('world', `${plan.agents} agents, ${plan.pace.name}, faults: ${plan.faults.join(', ') || 'none'}`)
  try {
    await new RunPhases(world, run).run(liveness)
    return {
      seed,
      violations: run.violations,
      hash: trace.hash,
      faults: plan.faults,
      steps: scheduler.steps,
      virtualMs: scheduler.nowMs - startMs,
      lines: trace.lines,
    }
  } finally {
    world.close()
    run.close()
  }
}
