import { whyNoStrace } from '../verification/disk-faults/strace.ts'

/** Why tests of system calls are skipped on this machine, or undefined if they can run. */
export const NO_STRACE = whyNoStrace()
