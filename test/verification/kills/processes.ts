import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A process of the untag command. */
export interface RunningProcess {
  /** Fields of the line that starts with `ready `. */
  ready: Record<string, string>
  readonly child: ChildProcess
  /** The last lines of stdout, except the ready line. */
  readonly lines: readonly string[]
  /** Writes a line to stdin. Needs `stdin: 'pipe'`. */
  writeLine(line: string): void
  /** Output on stderr so far. Only the last 100,000 characters are available. */
  stderr(): string
  /** Kills the process at once, as a power cut would. */
  kill(): Promise<void>
  /** Resolves after the process has ended for any reason. */
  ended(): Promise<void>
  /** Sends SIGTERM and returns the exit code. */
  stop(): Promise<number | null>
}

/** Environment and stdin of a process. */
export interface ProcessEnvironment {
  env?: NodeJS.ProcessEnv
  /** Command that starts the process. Its last arguments are the command line of the process. */
  through?: readonly string[]
  stdin?: 'ignore' | 'pipe'
}

export interface ProcessResult {
  code: number | null
  stdout: string
  stderr: string
}

export interface Processes {
  /** Starts a server command and waits for its ready line. If the process ends first, rejects with its stderr. */
  start(args: readonly string[], surroundings?: ProcessEnvironment): Promise<RunningProcess>
  /** Runs a command to its end. */
  run(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<ProcessResult>
}

const STDERR_KEPT = 100_000
const LINES_KEPT = 1_000

/**
 * The command `untag` of the project at `root`. `bundle` returns the path of the same command in fewer files. A process
 * with a mutant does not use the bundle, because a mutant changes single files of `dist`.
 */
export function processesOf(root: string, bundle?: () => Promise<string>): Processes {
  const commandIn = async (env: NodeJS.ProcessEnv) =>
    bundle === undefined || env['UNTAG_SIM_BUG'] !== undefined ? join(root, 'bin/untag.js') : bundle()
  return {
    async start(args, { env = {}, through = [], stdin = 'ignore' } = {}) {
      const [program = '', ...rest] = [...through, process.execPath, await commandIn(env), ...args]
      const child = spawn(program, rest, {
        cwd: root,
        env: { ...process.env, UNTAG_LOG_LEVEL: 'warn', ...env },
        stdio: [stdin, 'pipe', 'pipe'],
      })
      const lines: string[] = []
      let errors = ''
      child.stderr?.on('data', (chunk: Buffer) => void (errors = (errors + chunk.toString()).slice(-STDERR_KEPT)))
      const ready = await new Promise<Record<string, string>>((resolve, reject) => {
        createInterface({ input: child.stdout as NonNullable<typeof child.stdout> }).on('line', (line) => {
          if (line.startsWith('ready ')) resolve(JSON.parse(line.slice(6)) as Record<string, string>)
          else if (lines.push(line) > LINES_KEPT) lines.shift()
        })
        child.once('exit', (code) => reject(new Error(`untag ${args.join(' ')} ended with ${code}: ${errors}`)))
      })
      const ended = async () => {
        if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      }
      return {
        ready,
        child,
        lines,
        writeLine: (line) => void child.stdin?.write(`${line}\n`),
        stderr: () => errors,
        ended,
        async kill() {
          child.kill('SIGKILL')
          await ended()
        },
        async stop() {
          child.kill('SIGTERM')
          await ended()
          return child.exitCode
        },
      }
    },
    async run(args, env = {}) {
      const child = spawn(process.execPath, [await commandIn(env), ...args], {
        cwd: root,
        env: { ...process.env, ...env },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let stdout = ''
      let stderr = ''
      child.stdout.on('data', (chunk: Buffer) => void (stdout += chunk.toString()))
      child.stderr.on('data', (chunk: Buffer) => void (stderr += chunk.toString()))
      const [code] = (await once(child, 'close')) as [number | null]
      return { code, stdout, stderr }
    },
  }
}
