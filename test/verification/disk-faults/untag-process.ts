import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { spawnTraced, traceEnded, type TraceOptions } from './strace.ts'

/** A process of the built untag program, alone or under strace. */
export interface UntagProcess {
  /** Fields of the line `ready {…}` that the program prints. */
  readonly ready: Record<string, string>
  readonly child: ChildProcess
  /** Output on stderr so far. Only the last 100,000 characters are available. */
  stderr(): string
  readonly isRunning: boolean
  /** Sends SIGTERM and waits until the process has ended; kills it after 20 s. */
  stop(): Promise<void>
  /** Kills the process at once. */
  kill(): Promise<void>
  /** Resolves after the process has ended for any reason. */
  ended(): Promise<void>
}

/** The project folder. This file is in `test/verification/disk-faults` or in `dist/test/verification/disk-faults`. */
const ROOT = ((folder: string): string => (existsSync(join(folder, 'package.json')) ? folder : dirname(folder)))(
  fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, ''),
)
/** The command. Tests name a copy of it in fewer files, which starts in half the time. */
const command = () => process.env['UNTAG_TEST_COMMAND'] ?? join(ROOT, 'bin', 'untag.js')
const LONGEST_KEPT = 100_000
/** Time limit for the start of a process, ms. After this time the process is killed. */
const READY_WITHIN_MS = 60_000
/** Time limit for an orderly stop, ms. */
const STOP_WITHIN_MS = 20_000

/** Starts a server command and waits for its ready line. If the process ends first, throws with its stderr. */
export async function startProcess(args: readonly string[], traced?: TraceOptions): Promise<UntagProcess> {
  const { child, stderr } = begin(args, traced)
  const ended = () => endOf(child, traced)
  let late: NodeJS.Timeout | undefined
  const ready = await new Promise<Record<string, string>>((resolve, reject) => {
    createInterface({ input: child.stdout ?? process.stdin }).on('line', (line) => {
      if (line.startsWith('ready ')) resolve(JSON.parse(line.slice(6)) as Record<string, string>)
    })
    late = setTimeout(() => child.kill('SIGKILL'), READY_WITHIN_MS)
    child.once('exit', (code, signal) =>
      reject(new ProcessEnded(`untag ${args[0]} ended with ${code ?? signal}: ${stderr()}`)),
    )
  })
    .finally(() => clearTimeout(late))
    .catch(async (error: unknown) => {
      await ended()
      throw error
    })
  return {
    ready,
    child,
    stderr,
    get isRunning() {
      return child.exitCode === null && child.signalCode === null
    },
    ended,
    async stop() {
      child.kill('SIGTERM')
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_WITHIN_MS)
      await ended()
      clearTimeout(late)
    },
    async kill() {
      child.kill('SIGKILL')
      await ended()
    },
  }
}

/** A process ended too early, or with an error. */
export class ProcessEnded extends Error {
  override name = 'ProcessEnded'
}

/** Runs a command to its end and returns its output. If the command fails, throws with its stderr. */
export async function runCommand(args: readonly string[], traced?: TraceOptions): Promise<string> {
  const { child, stderr } = begin(args, traced)
  let printed = ''
  child.stdout?.on('data', (chunk: Buffer) => void (printed += chunk.toString()))
  await endOf(child, traced)
  if (child.exitCode !== 0)
    throw new ProcessEnded(`untag ${args.join(' ')} ended with ${child.exitCode ?? child.signalCode}: ${stderr()}`)
  return printed
}

function begin(args: readonly string[], traced: TraceOptions | undefined): { child: ChildProcess; stderr(): string } {
  const env = { ...process.env, UNTAG_LOG_LEVEL: 'warn' }
  const line = [command(), ...args]
  const child = traced
    ? spawnTraced(line, traced, ROOT, env)
    : spawn(process.execPath, line, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] })
  let errors = ''
  child.stderr?.on('data', (chunk: Buffer) => void (errors = (errors + chunk.toString()).slice(-LONGEST_KEPT)))
  return { child, stderr: () => errors }
}

async function endOf(child: ChildProcess, traced: TraceOptions | undefined): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  if (traced) await traceEnded(traced.log)
}
