import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'

/**
 *   untag ──▶ kernel        strace stands between them: it writes down each call, or has it fail
 *
 * The program under test is the one that is shipped; nothing in it knows that somebody looks on.
 */

/** Why strace cannot be used here, or undefined when it can. */
export function whyNoStrace(): string | undefined {
  if (process.platform !== 'linux') return 'strace is there on Linux only'
  const { error, status, stderr } = spawnSync(
    'strace',
    ['-D', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=fsync', 'true'],
    { encoding: 'utf8' },
  )
  if (error) return 'strace is missing: install the package strace (apt-get install strace)'
  return status === 0 ? undefined : `strace may not trace here: ${stderr.trim()}`
}

/** A fault that the kernel answers with, at the calls that `when` names as strace does: `3`, `3+`, `3..9`. */
export interface Injection {
  /** Names of system calls, with commas. */
  calls: string
  /** `error=EIO`, or `retval=100` for a short write. */
  fault: string
  when: string
}

/** Trace settings of a process at its start. */
export interface TraceOptions {
  /** Where strace writes. */
  log: string
  /** Names of the calls that are written down, with commas. */
  calls: string
  /** Write down every byte. */
  whole?: boolean
  injections?: readonly Injection[]
}

const inject = ({ calls, fault, when }: Injection) => ['-e', `inject=${calls}:${fault}:when=${when}`]
/** Strace reports the end of a process only for the signals in this filter. */
const FATAL = 'signal=SIGKILL,SIGABRT,SIGSEGV,SIGBUS,SIGTERM'
/** Longer than any one write of untag, bytes. */
const LONGEST_TEXT = 8_388_608

/** Starts Node with these arguments under strace; the process that is answered is Node, not strace. */
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
/** Time limit for strace to write the end of its log, ms. */
const TRACE_END_LIMIT_MS = 20_000

/** Resolves when strace has written that the last thread of its program is gone. */
export async function traceEnded(log: string): Promise<void> {
  const end = Date.now() + TRACE_END_LIMIT_MS
  let size = -1
  for (;;) {
    const now = statSync(log).size
    // The last thread to go is the program itself: nothing comes after its line.
    if (now === size && ENDED.test(tailOf(log))) return
    if (Date.now() > end) throw new Error(`strace did not end: ${tailOf(log)}`)
    size = now
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function tailOf(file: string): string {
  return readFileSync(file).subarray(-300).toString('latin1')
}

/** Whether a call was made to fail. */
export function wasInjected(log: string): boolean {
  return existsSync(log) && readFileSync(log, 'latin1').includes('(INJECTED)')
}

/** How long strace may take to attach, and to let go, ms. */
const ATTACH_WITHIN_MS = 30_000
const LET_GO_WITHIN_MS = 5_000

/** Faults in a process that runs already. */
export interface Attached {
  /** Lets go of the process: its calls reach the kernel as before. */
  detach(): Promise<void>
}

/** Has the calls of a running process fail, from when this resolves until it is let go. */
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
  let said = ''
  let late: NodeJS.Timeout | undefined
  await new Promise<void>((resolve, reject) => {
    tracer.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      if (said.includes('attached')) resolve()
    })
    tracer.once('exit', () => reject(new Error(`strace could not attach: ${said}`)))
    tracer.once('error', reject)
    late = setTimeout(() => tracer.kill('SIGKILL'), ATTACH_WITHIN_MS)
  })
  clearTimeout(late)
  return {
    async detach() {
      if (tracer.exitCode !== null || tracer.signalCode !== null) return
      tracer.kill('SIGINT')
      // If the program ends at that moment, strace may wait for a thread for ever. SIGKILL also detaches it.
      const late = setTimeout(() => tracer.kill('SIGKILL'), LET_GO_WITHIN_MS)
      await once(tracer, 'exit')
      clearTimeout(late)
    },
  }
}
