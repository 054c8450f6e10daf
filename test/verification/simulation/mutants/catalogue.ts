import type { Mutant } from './mutant.ts'
import { EMERGENCY_MUTANTS } from './emergency-mutants.ts'
import { LYING_AGENT_MUTANTS } from './lying-agent-mutants.ts'
import { AGENT_MUTANTS } from './agent-mutants.ts'
import { MULTI_AGENT_MUTANTS } from './multi-agent-mutants.ts'
import { CLOUD_MUTANTS } from './cloud-mutants.ts'
import { PAYMENT_MUTANTS } from './payment-mutants.ts'
import { TILL_MUTANTS } from './till-mutants.ts'

/** Every mutant of the simulation. */
export const MUTANTS: readonly Mutant[] = [
  ...AGENT_MUTANTS,
  ...CLOUD_MUTANTS,
  ...MULTI_AGENT_MUTANTS,
  ...PAYMENT_MUTANTS,
  ...LYING_AGENT_MUTANTS,
  ...EMERGENCY_MUTANTS,
  ...TILL_MUTANTS,
]
