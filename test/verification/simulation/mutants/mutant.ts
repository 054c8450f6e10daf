import type { Fault } from '../faults/fault-kinds.ts'

/**
 * One deliberate error in the built code, which the simulation must find. The text that a change replaces must occur
 * exactly once in the built file.
 */
export interface Mutant {
  readonly name: string
  /** The error as one sentence, for reports. */
  readonly what: string
  readonly changes: readonly Change[]
  /** True if only liveness runs, which have longer faults, find the mutant. */
  readonly liveness?: true
  /** Faults to inject instead of the drawn faults, because few seeds draw rare faults. */
  readonly faults?: readonly Fault[]
}

export interface Change {
  /** Path in the build folder. */
  readonly file: string
  readonly find: string
  readonly put: string
}

/** Replaces `find` by `put` in a built file. */
export const change = (file: string, find: string, put: string): Change => ({ file, find, put })
