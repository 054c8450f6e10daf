import { spawn, spawnSync } from 'node:child_process'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'

/**
 *   run.ts ──▶ server (core 0) ◀── HTTP ── load (core 1)
 *
 * Each program of a bench has its own process, so that the client takes no CPU time from the server. On a machine with
 * two cores and `taskset`, server and load are bound to one core each. The bench itself only waits for results.
 */
export interface Program {
  request<A>(question: object): Promise<A>
  stop(): Promise<void>
}

/** Core of each program. `any`: the operating system chooses. */
export const CORES = { server: 0, load: 1, any: undefined } as const

export const canPin = cpus().length >= 2 && spawnSync('taskset', ['-c', '0', 'true']).status === 0

/** Node.js option of `untag` (bin/untag.js). The compared programs get this option too. */
const AS_STARTED = '--max-semi-space-size=4'

/** Starts a compiled program of this folder. The program must call `answerBench`. */
export function startProgram(file: string, core: number | undefined, args: readonly string[] = []): Promise<Program> {
  const node = [
    process.execPath,
    AS_STARTED,
    ...extraFlags(file),
    fileURLToPath(new URL(file, import.meta.url)),
    ...args,
  ]
  const [command = '', ...rest] = canPin && core !== undefined ? ['taskset', '-c', String(core), ...node] : node
  const child = spawn(command, rest, {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const ended = new Promise<never>((_, reject) => {
    child.once('error', ({ message }) => reject(new Error(`${file}: ${message}`)))
    child.once('exit', (code) => reject(new Error(`${file} has ended (${code ?? 'by a signal'})`)))
  })
  // If the program has crashed, the next request reports it. An exit after `stop` is no error.
  ended.catch(() => undefined)
  const next = () => new Promise<unknown>((resolve) => child.once('message', resolve))

  const program: Program = {
    async request<A>(question: object) {
      const answer = next()
      child.send(question)
      const { value, error } = (await Promise.race([answer, ended])) as { value?: A; error?: string }
      if (error !== undefined) throw new Error(`${file}: ${error}`)
      return value as A
    },
    async stop() {
      if (child.connected) child.disconnect()
      await ended.catch(() => undefined)
    },
  }
  return Promise.race([next(), ended]).then(() => program)
}

/** With `UNTAG_BENCH_PROFILE=serve-cloud`, the program `serve-cloud` writes a CPU profile. */
function extraFlags(file: string): string[] {
  const wanted = process.env['UNTAG_BENCH_PROFILE']
  return wanted !== undefined && file.includes(wanted) ? ['--cpu-prof', '--cpu-prof-dir=var/bench/profiles'] : []
}

/** Time limit for an orderly stop, ms. After this limit the program exits, even if `stop` has not finished. */
const STOP_LIMIT_MS = 30_000

/** Called by the child process to report that it is ready. Answers requests in order until the bench disconnects. */
export function answerBench(
  answer: (question: unknown) => Promise<unknown>,
  stop: () => Promise<void> = () => Promise.resolve(),
): void {
  process.on('message', (question) => {
    answer(question).then(
      (value) => process.send?.({ value }),
      (error: unknown) => process.send?.({ error: String((error as Error | undefined)?.stack ?? error) }),
    )
  })
  process.on('disconnect', () => {
    setTimeout(() => process.exit(1), STOP_LIMIT_MS).unref()
    stop().finally(() => process.exit(0))
  })
  process.send?.('ready')
}
