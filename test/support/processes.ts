import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const ROOT = join(import.meta.dirname, '../..')
/** The command as users run it. */
export const COMMAND = join(ROOT, 'bin/untag.js')

/** A process of untag as a user starts it. */
export interface RunningProcess {
  /** What it said when it was ready. */
  ready: Record<string, string>
  readonly child: ChildProcess
  /** Everything on stderr so far. */
  stderr(): string
  /** At once, without a word: as when the power goes. */
  kill(): Promise<void>
  /** In order; answers the exit code. */
  stop(): Promise<number | null>
}

/** In what surroundings a process runs. */
export interface Surroundings {
  env?: NodeJS.ProcessEnv
  /** A command that takes the process's own as its last arguments, and becomes it. */
  through?: readonly string[]
}

/** Starts a server and waits for its ready line; fails with what it wrote when it ends instead. */
export async function startProcess(args: readonly string[], { env = {}, through = [] }: Surroundings = {}): Promise<RunningProcess> {
  const [program = '', ...rest] = [...through, process.execPath, COMMAND, ...args]
  const child = spawn(program, rest, { cwd: ROOT, env: { ...process.env, UNTAG_LOG_LEVEL: 'warn', ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => void (errors = (errors + chunk.toString()).slice(-100_000)))
  const ready = await new Promise<Record<string, string>>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('ready ')) resolve(JSON.parse(line.slice(6)) as Record<string, string>)
    })
    child.once('exit', (code) => reject(new Error(`untag ${args.join(' ')} ended with ${code}: ${errors}`)))
  })
  const gone = async () => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    return child.exitCode
  }
  return {
    ready,
    child,
    stderr: () => errors,
    async kill() {
      child.kill('SIGKILL')
      await gone()
    },
    async stop() {
      child.kill('SIGTERM')
      return gone()
    },
  }
}

/** Runs a command to its end. */
export async function runProcess(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [COMMAND, ...args], { cwd: ROOT, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => void (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => void (stderr += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr }
}
