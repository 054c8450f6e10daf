import { failingCalls, fullDisks, powerLoss } from './disk-parts.ts'
import type { ProofPart } from './part.ts'
import { histories, kills, killsOnPostgres, redeem } from './process-parts.ts'
import { mutants, liveness, safety } from './sim-parts.ts'

/** All proofs in the order in which they run. `root`: folder of the built project. */
export const partsOf = (root: string): readonly ProofPart[] => [
  mutants(root),
  safety(root),
  liveness(root),
  redeem(root),
  kills(root),
  killsOnPostgres(root),
  histories(root),
  powerLoss,
  failingCalls,
  fullDisks,
]
