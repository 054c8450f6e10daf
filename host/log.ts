import pino from 'pino'
import type { Log } from '../cloud/platform/foundation/log.ts'
import type { LogLevel } from './settings/shared.ts'

/** Destination of the log: standard error, or a stream of a test. */
export interface LogStream {
  /** Bytes that wait for the reader. */
  readonly writableLength: number
  write(text: string, done: (error?: Error | null) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
}

/** Writes log lines to a stream and never waits for its reader. */
interface LogOutput {
  write(line: string): void
  /** Number of dropped lines since the start. */
  readonly lost: number
}

/** Streams whose errors are ignored already, so that many logs of one process leave one listener. */
const ignored = new WeakSet<Pick<LogStream, 'on'>>()

/** Without a listener, the error of a closed stream would end the process. */
function ignoreErrors(stream: Pick<LogStream, 'on'>): void {
  if (ignored.has(stream)) return
  ignored.add(stream)
  stream.on('error', () => undefined)
}

/** Maximum bytes that wait for a slow reader: some thousand lines. */
const WAITING_LIMIT = 1_048_576

/**
 * Drops and counts lines while the stream is full or broken. Calls `onWritable` with the count when the stream accepts
 * lines again.
 */
export function logOutput(stream: LogStream, onWritable: (lost: number) => void): LogOutput {
  let lost = 0
  let reported = 0
  ignoreErrors(stream)

  function written(error?: Error | null): void {
    if (error) {
      lost++
      return
    }
    if (lost === reported) return
    reported = lost
    onWritable(lost)
  }

  return {
    write(line) {
      if (stream.writableLength + line.length > WAITING_LIMIT) lost++
      else stream.write(line, written)
    },
    get lost() {
      return lost
    },
  }
}

/** Makes writes to a terminal non-blocking, because a stopped terminal (Ctrl-S) would block the process. */
function neverBlock(stream: NodeJS.WriteStream): void {
  const { _handle: handle } = stream as { _handle?: { setBlocking?: (isBlocking: boolean) => void } }
  if (stream.isTTY) handle?.setBlocking?.(false)
}

/** The log of a process, with the number of dropped lines. */
export interface ProcessLog extends Log {
  lostLines(): number
}

/**
 * A log of JSON lines on stderr, with `part` and `fields` in each line. The log hides fields with secrets, in case code
 * logs such fields by mistake.
 */
export function newLog(part: string, level: LogLevel, fields: object = {}): ProcessLog {
  // The reader of the ready line may close stdout before this process ends.
  ignoreErrors(process.stdout)
  neverBlock(process.stderr)
  const output = logOutput(process.stderr, (lost) =>
    log.warn({ lost }, 'log lines were dropped since the start, because nothing read the log'),
  )
  const log = pino(
    {
      level,
      base: { part, ...fields },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: {
        paths: [
          'key',
          'token',
          'authorization',
          'password',
          'secret',
          'code',
          'pin',
          'badge',
          'receipt',
          '*.token',
          '*.authorization',
          '*.password',
        ],
        censor: '[hidden]',
      },
    },
    output,
  )
  return {
    info: (fields, message) => log.info(fields, message),
    warn: (fields, message) => log.warn(fields, message),
    error: (fields, message) => log.error(fields, message),
    lostLines: () => output.lost,
  }
}
