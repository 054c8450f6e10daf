import { whyNoStrace } from '../../verification/disk-faults/strace.ts'

/** Why tests that look at system calls are left out here, or undefined when they can run. */
export const NO_STRACE = whyNoStrace()
