import type { Chance } from './chance.ts'
import type { Scheduler } from './scheduler.ts'
import type { Trace } from './trace.ts'

/** Parts of a run that all other parts use. */
export interface Core {
  readonly scheduler: Scheduler
  readonly chance: Chance
  readonly trace: Trace
  /** Folder of this run, in memory. */
  readonly folder: string
  /** Records a violated invariant. */
  violate(invariant: Invariant, detail: string): void
  /** Probability that a process dies at an outside effect, such as a commit or an answer. */
  crashRate: number
}

/** The invariants; docs/reference/tests.md explains them. */
export const INVARIANTS = {
  I1: 'a right is used at most once in its ledger',
  I2: 'nothing is released without a durable redemption, except ways out while an emergency input is active',
  I3: 'a redemption moves at most one actuator, also after a restart',
  I4: 'acknowledged data is stored exactly once',
  I5: 'row numbers of a ledger have no gaps',
  I6: 'redemptions of a purchase never exceed its grants and its bought units',
  I7: 'nothing is granted for a purchase that is not paid',
  I8: 'no expired token is accepted',
  I9: 'a restored cloud or agent grants nothing alone until it knows what it lost',
  I10: 'the same Idempotency-Key gets the same bytes and has one effect',
  I11: 'a tenant cannot read or change data of another tenant',
  I12: 'an event is posted at most four times, on schedule, under one id',
  I13: 'queues are bounded',
  I14: 'devices receive only the fields they need',
  I15: 'states change only as listed',
  I16: 'what an agent reports about another has no effect',
  emergency: 'an active emergency input opens the ways out at once, and they lock again when it clears',
  rules: 'offline releases follow the policy for the purchased goods',
  sales: 'an acknowledged sale of a till is in the cloud exactly once, and a later change of its goods counts',
  silence: 'goods that a till sold pass the gates that know the sale without an alarm',
  alarms: 'goods that no till sold, or that came back, alarm at the gates that know it',
  tills: 'only named agents and paired tills with the right record sales',
  money: 'every payment is sold or refunded, to the cent',
  liveness: 'after the last fault all agents become current and all data arrives',
  fault: 'no part fails in an unplanned way',
} as const
export type Invariant = keyof typeof INVARIANTS

/** One violated invariant. */
export interface Violation {
  invariant: Invariant
  detail: string
  atMs: number
}
