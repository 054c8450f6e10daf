import pino from 'pino'
import type { Log } from '../cloud/platform/foundation/config.ts'
import type { LogLevel } from './settings.ts'
import { existsSync, readFileSync } from 'node:fs'
import { BROKER_LIMITS, type BrokerLimits } from '../cloud/service/messaging/packet-guard.ts'

/** Limits for the connections of an HTTP server. */
export interface HttpLimits {
  /** Maximum number of connections. */
  most: number
  /** Maximum number of connections without a complete request: idle connections and slow senders. */
  waiting: number
}

const HTTP_LIMITS: HttpLimits = { most: 10_000, waiting: 2_000 }

/**
 * The limits of this process. If the limit of open files is low, these limits are smaller, so that enough files remain
 * for the database.
 */
export function connectionLimits(files = fileLimit()): { http: HttpLimits; broker: BrokerLimits } {
  const unauthenticated = Math.min(BROKER_LIMITS.unauthenticated, Math.floor(files / 32))
  return {
    http: {
      most: Math.min(HTTP_LIMITS.most, Math.floor(files / 2)),
      waiting: Math.min(HTTP_LIMITS.waiting, Math.floor(files / 8)),
    },
    broker: {
      agents: Math.min(BROKER_LIMITS.agents, Math.floor(files / 4)),
      unauthenticated,
      unauthenticatedPerNetwork: Math.min(BROKER_LIMITS.unauthenticatedPerNetwork, Math.ceil(unauthenticated / 2)),
    },
  }
}

/** Maximum number of open files. Node.js raises the soft limit to the hard limit at its start. */
function fileLimit(): number {
  if (!existsSync('/proc/self/limits')) return Infinity
  return Number(/^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
}

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

/** Maximum bytes that wait for a slow reader: some thousand lines. */
const WAITING_LIMIT = 1_048_576

/**
 * Drops and counts lines while the stream is full or broken. Calls `onWritable` with the count when the stream accepts
 * lines again.
 */
export function logOutput(stream: LogStream, onWritable: (lost: number) => void): LogOutput {
  let lost = 0
  let reported = 0
  // Without a listener, the error of a closed stream would end the process.
  stream.on('error', () => undefined)

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
  process.stdout.on('error', () => undefined)
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
