import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Failure, invalid, type ErrorCode, type FailureExtras } from '../cloud/platform/foundation/failure.ts'
import type { Log } from '../cloud/platform/foundation/log.ts'
import type { UploadReader } from '../cloud/platform/foundation/ports.ts'
import type { Cancel, Platform } from '../policy/platform.ts'

/**
 * Reads uploaded files in processes of their own. A thread would not be enough: a thread that fills its memory with one
 * large array ends the whole process, because V8 then cannot wait for the thread to stop.
 */

/** Beside this program, also where tests run its sources. */
const FOLDER = import.meta.url.endsWith('.ts') ? '../dist/bin/' : './'
const SCRIPT = fileURLToPath(new URL(`${FOLDER}upload-child.js`, import.meta.url))
/** Memory for objects of a process, MB. The largest valid workbook needs less than half of it. */
const HEAP_MB = 320
const YOUNG_MB = 8
/** Maximum time for one file, ms. The largest valid file takes about 3 s. */
const WITHIN_MS = 30_000
/** An idle process ends after this time, ms. */
const IDLE_MS = 30_000
/** The settings of a process. It gets no secrets. */
const ENVIRONMENT = ['PATH', 'LD_LIBRARY_PATH', 'SystemRoot', 'TMPDIR', 'TEMP']

/** Bytes of a file that are sent at once. Sending a whole file would block the event loop. */
const PIECE_BYTES = 128 * 1024

/** Follows the pieces of the file. */
export interface UploadRequest {
  readonly job: string
  readonly field: string
}

export type UploadResponse =
  | { readonly kind: 'ready' }
  | { readonly kind: 'result'; readonly result: unknown }
  | { readonly kind: 'failure'; readonly code: ErrorCode; readonly message: string; readonly extras: FailureExtras }
  | { readonly kind: 'error'; readonly text: string }

/** One process. It works on one file at a time. */
interface Reader {
  readonly child: ChildProcess
  hasStarted: boolean
  /** Receives the response of the running job; undefined if the process has ended. */
  onResponse: (response: UploadResponse | undefined) => void
}

export interface UploadProcesses extends UploadReader {
  /** Ends all processes. */
  stop(): void
}

interface Options {
  readonly platform: Platform
  readonly log: Log
  /** Program of the processes; default: beside this one. */
  readonly script?: string
  readonly withinMs?: number
}

/** Starts a process for each job, and uses it again while it is idle. The slots of the callers limit their number. */
export function uploadProcesses({ platform, log, script = SCRIPT, withinMs = WITHIN_MS }: Options): UploadProcesses {
  const all = new Set<Reader>()
  const idle = new Map<Reader, Cancel>()

  function start(): Reader {
    // libvips would start a thread for each core.
    const env = { ...Object.fromEntries(ENVIRONMENT.map((name) => [name, process.env[name]])), VIPS_CONCURRENCY: '1' }
    const child = fork(script, [], {
      env,
      execArgv: [`--max-old-space-size=${HEAP_MB}`, `--max-semi-space-size=${YOUNG_MB}`],
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    const reader: Reader = { child, hasStarted: false, onResponse: () => undefined }
    const end = () => {
      all.delete(reader)
      wake(reader)
      reader.onResponse(undefined)
    }
    child.on('message', (response: UploadResponse) => {
      if (response.kind === 'ready') reader.hasStarted = true
      else reader.onResponse(response)
    })
    child.once('exit', end)
    child.once('error', end)
    all.add(reader)
    return reader
  }

  function rest(reader: Reader): void {
    const cancel = platform.timers.after(IDLE_MS, () => {
      idle.delete(reader)
      reader.child.kill('SIGKILL')
    })
    idle.set(reader, cancel)
  }

  function wake(reader: Reader): void {
    idle.get(reader)?.()
    idle.delete(reader)
  }

  /** The response; `late` if the process took too long, and undefined if it ended. */
  function respond(
    reader: Reader,
    request: UploadRequest,
    bytes: Uint8Array,
  ): Promise<UploadResponse | 'late' | undefined> {
    return new Promise((resolve) => {
      const cancel = platform.timers.after(withinMs, () => {
        resolve('late')
        reader.child.kill('SIGKILL')
      })
      reader.onResponse = (response) => {
        cancel()
        reader.onResponse = () => undefined
        resolve(response)
      }
      void send(reader.child, request, bytes)
    })
  }

  return {
    async run(job, bytes, field) {
      const reader = idle.keys().next().value ?? start()
      wake(reader)
      const response = await respond(reader, { job: job.name, field }, bytes)
      if (response === 'late') throw invalid(field, 'takes too long to read: simplify or split it', 'takes_too_long')
      if (response === undefined) throw endedEarly(reader, field, log)
      rest(reader)
      if (response.kind === 'result') return response.result as Awaited<ReturnType<typeof job.work>>
      if (response.kind === 'failure') throw new Failure(response.code, response.message, response.extras)
      throw new Error(`the job ${job.name} failed: ${response.kind === 'error' ? response.text : response.kind}`)
    },
    stop() {
      for (const { child } of all) child.kill('SIGKILL')
    },
  }
}

/** Sends the file in pieces. A failure is followed by the end of the process. */
async function send(child: ChildProcess, request: UploadRequest, bytes: Uint8Array): Promise<void> {
  const sent = (message: UploadRequest | Uint8Array) =>
    new Promise<boolean>((resolve) => child.send(message, (error) => resolve(error === null)))
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) if (!(await sent(bytes.subarray(at, at + PIECE_BYTES)))) return
  await sent(request)
}

function endedEarly({ child, hasStarted }: Reader, field: string, log: Log): Failure {
  const ending = { exitCode: child.exitCode, signal: child.signalCode }
  if (hasStarted) {
    log.warn(ending, 'the process that read an uploaded file ended: the file needed too much memory')
    return invalid(field, 'needs too much memory to read: simplify or split it', 'needs_too_much_memory')
  }
  log.error(ending, 'the process that reads uploaded files does not start')
  return new Failure('unavailable', 'uploaded files cannot be read at the moment; try again', { retryAfter: 10 })
}
