import { join } from 'node:path'
import { processesOf, type RunningProcess as Running } from '../../verification/kills/processes.ts'

const ROOT = join(import.meta.dirname, '../..')
/** The command as users run it. */
export const COMMAND = join(ROOT, 'bin/untag.js')

export type RunningProcess = Running
export type { ProcessEnvironment } from '../../verification/kills/processes.ts'

/** The command of this checkout, as the proofs run it. */
export const processesOfTests = processesOf(ROOT)
export const { start: startProcess, run: runProcess } = processesOfTests
