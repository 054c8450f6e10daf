import pino from 'pino'
import type { Log } from '../cloud/platform/foundation/log.ts'
import { logOutput, neverBlock } from './log-output.ts'
import type { LogLevel } from './settings.ts'

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
