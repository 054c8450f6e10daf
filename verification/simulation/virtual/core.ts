import type { Chance } from './chance.ts'
import type { Scheduler } from './scheduler.ts'
import type { Trace } from './trace.ts'

/** What every part of a simulated world shares. */
export interface Core {
  readonly scheduler: Scheduler
  readonly chance: Chance
  readonly trace: Trace
  /** A folder of this world alone, in memory. */
  readonly folder: string
  /** An invariant (its name in research and README, such as `I3`) does not hold. */
  violate(invariant: Invariant, detail: string): void
  /** Somewhere a process has an effect: with this probability it dies there. */
  crashRate: number
}

/** Names of what must always hold; texts in docs/guides/simulation.md. */
export const INVARIANTS = {
  I1: 'a right is used at most once in its ledger',
  I2: 'nothing is released without a durable redemption, except ways out while an emergency input is active',
  I3: 'a redemption moves at most one actuator, also after a restart',
  I4: 'what was acknowledged is there, exactly once',
  I5: 'the numbers of a ledger have no holes',
  I6: 'of a purchase no more is redeemed than was granted and bought',
  I7: 'nothing is granted for a purchase that is not paid',
  I8: 'no token is accepted after its end',
  I9: 'what was put back to an earlier state grants and releases nothing until it has heard what it forgot',
  I10: 'the same Idempotency-Key gets the same bytes and is carried out once',
  I11: 'nobody sees or changes what belongs to another tenant',
  I12: 'an event is posted at most four times, on schedule, under one id',
  I13: 'what waits is bounded',
  I14: 'devices are told nothing but what they need',
  I15: 'states change only as listed',
  I16: 'what an agent reports about another has no effect',
  emergency: 'an active emergency input opens the ways out at once, and they lock again when it clears',
  rules: 'what is released offline is what the policy allows for what was bought',
  money: 'what was paid is sold or goes back, to the cent',
  liveness: 'once everything works again, all arrives and everybody is up to date',
  fault: 'no part fails in a way that nobody planned',
} as const
export type Invariant = keyof typeof INVARIANTS

/** A line that must hold and does not. */
export interface Violation {
  invariant: Invariant
  detail: string
  atMs: number
}
