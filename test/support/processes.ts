import { join } from 'node:path'
import { bundledCommand } from './bundled-command.ts'
import { processesOf, type RunningProcess as Running } from '../verification/kills/processes.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Path of the command `untag`. */
export const COMMAND = join(ROOT, 'bin/untag.js')

export type RunningProcess = Running
export type { ProcessEnvironment } from '../verification/kills/processes.ts'

/** Starts processes of this checkout, like `npm run prove`, but bundled. */
export const processesOfTests = processesOf(ROOT, bundledCommand)
export const { start: startProcess, run: runProcess } = processesOfTests

/** Environment of a process that takes its Node.js for another version. */
export const asNode = (version: string): NodeJS.ProcessEnv => ({
  NODE_OPTIONS: `--import data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`,
})
