import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { tryTool } from '../tools.ts'

/** Runs the unchanged programs under strace, which records their system calls or makes some of these calls fail. */

/** Returns why strace cannot run here, or undefined if it can. */
export function whyNoStrace(): string | undefined {
  if (process.platform !== 'linux') return 'strace runs on Linux only'
  const options = ['-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync', 'true']
  const { error, status, stderr } = tryTool('strace', ...options)
  if (error) return 'strace is missing: install the package strace (apt-get install strace)'
  return status === 0 ? undefined : `strace may not trace here: ${stderr?.trim()}`
}

/**
 * An error that strace returns for a system call. `when` selects the calls by number, in strace's notation: `3`, `3+`,
 * `3..9`.
 */
export interface Injection {
  /** Names of the system calls, separated by commas. */
  calls: string
  /** The fault in strace's notation: `error=EIO`, or `retval=100` for a short write. */
  fault: string
  when: string
}

/** Trace settings of a process at its start. */
export interface TraceOptions {
  /** File that strace writes. */
  log: string
  /** Names of the calls to record, separated by commas. */
  calls: string
  /** Records the complete data of each call, with times and descriptors. */
  whole?: boolean
  injections?: readonly Injection[]
}

const inject = ({ calls, fault, when }: Injection) => ['-e', `inject=${calls}:${fault}:when=${when}`]
/** If a signal ends a process, strace logs this only if the filter names the signal. */
const FATAL = 'signal=SIGKILL,SIGABRT,SIGSEGV,SIGBUS,SIGTERM'
/** Maximum length of a text in the log, bytes; each write of untag is shorter. */
const LONGEST_TEXT = 8_388_608

/** Starts Node with these arguments under strace. Returns the process of Node, not of strace. */
export function spawnTraced(
  args: readonly string[],
  { log, calls, whole = false, injections = [] }: TraceOptions,
  cwd: string,
  env: NodeJS.ProcessEnv,
): ChildProcess {
  const detail = whole ? ['-ttt', '-yy', '-xx', '-s', String(LONGEST_TEXT)] : ['-y', '-s', '0']
  const options = [
    '-D',
    '-f',
    '-q',
    ...detail,
    '--seccomp-bpf',
    '-e',
    FATAL,
    '-e',
    `trace=${calls}`,
    ...injections.flatMap(inject),
    '-o',
    log,
  ]
  return spawn('strace', [...options, process.execPath, ...args], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
}

const ENDED = /\+\+\+ (?:exited with \d+|killed by \w+)[^+]*\+\+\+\n$/
/** Time limit within which strace must write the end of its log, ms. */
const TRACE_END_LIMIT_MS = 20_000

/** Resolves when the log contains the end of the last thread. */
export async function traceEnded(log: string): Promise<void> {
  const end = Date.now() + TRACE_END_LIMIT_MS
  let size = -1
  for (;;) {
    const now = statSync(log).size
    // The main thread ends last, so after its line the log is complete.
    if (now === size && ENDED.test(tailOf(log))) return
    if (Date.now() > end) throw new Error(`strace did not end: ${tailOf(log)}`)
    size = now
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function tailOf(file: string): string {
  return readFileSync(file).subarray(-300).toString('latin1')
}

/** True if strace made a call fail. */
export function wasInjected(log: string): boolean {
  return existsSync(log) && readFileSync(log, 'latin1').includes('(INJECTED)')
}

/** Time limits to attach and detach, ms. */
const ATTACH_WITHIN_MS = 30_000
const LET_GO_WITHIN_MS = 5_000

/** Faults in a running process. */
export interface Attached {
  /** Detaches strace: the system calls work again. */
  detach(): Promise<void>
}

/** Makes system calls of a running process fail, from the return of this function until `detach`. */
export async function attachFault(pid: number, log: string, injections: readonly Injection[]): Promise<Attached> {
  const calls = injections.map((i) => i.calls).join(',')
  const tracer = spawn(
    'strace',
    [
      '-f',
      '-y',
      '-s',
      '0',
      '-e',
      'signal=none',
      '-e',
      `trace=${calls}`,
      ...injections.flatMap(inject),
      '-o',
      log,
      '-p',
      String(pid),
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  let output = ''
  let late: NodeJS.Timeout | undefined
  await new Promise<void>((resolve, reject) => {
    tracer.stderr.on('data', (chunk: Buffer) => {
      output += chunk.toString()
      if (output.includes('attached')) resolve()
    })
    tracer.once('exit', () => reject(new Error(`strace could not attach: ${output}`)))
    tracer.once('error', reject)
    late = setTimeout(() => tracer.kill('SIGKILL'), ATTACH_WITHIN_MS)
  })
  clearTimeout(late)
  return {
    async detach() {
      if (tracer.exitCode !== null || tracer.signalCode !== null) return
      tracer.kill('SIGINT')
      // If the program ends now, strace may wait for ever for a thread of the program. SIGKILL also detaches strace.
      const late = setTimeout(() => tracer.kill('SIGKILL'), LET_GO_WITHIN_MS)
      await once(tracer, 'exit')
      clearTimeout(late)
    },
  }
}
