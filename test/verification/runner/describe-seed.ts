import { INVARIANTS } from '../simulation/virtual/core.ts'
import type { SeedResult } from '../simulation/run-seed.ts'

/** One line about the run, and one line per violation. */
export function describeSeed({ seed, hash, steps, virtualMs, violations, faults }: SeedResult): string {
  const head = `seed ${seed}  ${hash}  ${steps} steps, ${Math.round(virtualMs / 1_000)} s of virtual time, faults: ${faults.join(',') || 'none'}\n`
  return (
    head +
    violations
      .map((v) => `  ${v.invariant} (${INVARIANTS[v.invariant]}) at ${v.atMs / 1_000} s: ${v.detail}\n`)
      .join('')
  )
}
