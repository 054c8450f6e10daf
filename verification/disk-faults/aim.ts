import type { Injection } from './strace.ts'

/** A point at which calls fail, and where strace writes. */
export interface FaultPoint {
  /** `working`: in a process that runs already; `starting`: from its first call on. */
  mode: 'starting' | 'working'
  injections: readonly Injection[]
  log: string
}

/** What one round found. */
export interface RoundResult {
  /** The call was reached, and failed. */
  hit: boolean
  /** The process ended without a signal from the test. */
  ended: boolean
  broken: string[]
}
