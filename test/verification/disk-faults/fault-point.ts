import type { Injection } from './strace.ts'

/** System calls that fail, and the log file of strace. */
export interface FaultPoint {
  /** `working`: the calls of a running process fail. `starting`: the calls fail from the start of a new process. */
  mode: 'starting' | 'working'
  injections: readonly Injection[]
  log: string
}

/** Result of one round. */
export interface RoundResult {
  /** True if strace made a call fail. */
  hit: boolean
  /** True if the process ended although the test sent it no signal. */
  ended: boolean
  broken: string[]
}
