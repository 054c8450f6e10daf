import type { Fault } from '../faults/fault-kinds.ts'

/**
 * Bugs that this kind of system has had, each as the change of a line or two in the code as it is built. The simulation is
 * itself tested by them: planted one at a time, from outside, each must be found. A change whose text is no
 * longer there, or there twice, is refused, so that the bank cannot go stale unnoticed.
 */
export interface Mutant {
  readonly name: string
  /** What somebody would have done wrong. */
  readonly what: string
  readonly changes: readonly Change[]
  /** Found only where trouble lasts longer. */
  readonly liveness?: true
  /** Hunted in worlds with these alone: few have the rare ones by themselves. */
  readonly faults?: readonly Fault[]
}

export interface Change {
  /** Below the folder of the build. */
  readonly file: string
  readonly find: string
  readonly put: string
}

/** A line of the build, and what stands there with the bug. */
export const change = (file: string, find: string, put: string): Change => ({ file, find, put })
