import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A process of untag as a user starts it. */
export interface RunningProcess {
  /** Fields of its ready line. */
  ready: Record<string, string>
  readonly child: ChildProcess
  /** The last lines of stdout, but for the ready line. */
  readonly lines: readonly string[]
  /** Writes a line to its stdin, if the start requested a pipe. */
  writeLine(line: string): void
  /** Everything on stderr so far. */
  stderr(): string
  /** Kills the process at once, as a power cut would. */
  kill(): Promise<void>
  /** Resolves when it has ended, for whatever reason. */
  ended(): Promise<void>
  /** In order; answers the exit code. */
  stop(): Promise<number | null>
}

/** In what surroundings a process runs. */
export interface ProcessEnvironment {
  env?: NodeJS.ProcessEnv
  /** A command that takes the process's own as its last arguments, and becomes it. */
  through?: readonly string[]
  stdin?: 'ignore' | 'pipe'
}

export interface ProcessResult {
  code: number | null
  stdout: string
  stderr: string
}

export interface Processes {
  /** Starts a server and waits for its ready line. If the process ends first, rejects with its output. */
  start(args: readonly string[], surroundings?: ProcessEnvironment): Promise<RunningProcess>
  /** Runs a command to its end. */
  run(args: readonly string[], env?: NodeJS.ProcessEnv): Promise<ProcessResult>
}

const STDERR_KEPT = 100_000
const LINES_KEPT = 1_000

/** The command `untag` of the project at `root`. */
export function processesOf(root: string): Processes {
  const command = join(root, 'bin/untag.js')
  return {
    async start(args, { env = {}, through = [], stdin = 'ignore' } = {}) {
      const [program = '', ...rest] = [...through, process.execPath, command, ...args]
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
      const child = spawn(process.execPath, [command, ...args], {
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
