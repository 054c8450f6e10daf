import pino from 'pino'
import type { Log } from '../cloud/foundation/log.ts'
import { logOutput, neverBlock } from './log-output.ts'
import type { LogLevel } from './settings.ts'

/** The log of a process, with how many lines of it nobody took. */
export interface ProcessLog extends Log {
  lostLines(): number
}

/** Lines of JSON on stderr. What could open a door is blacked out even if somebody logs it by mistake. */
export function newLog(part: string, level: LogLevel): ProcessLog {
  // Whoever reads the ready line may end before this process does.
  process.stdout.on('error', () => undefined)
  neverBlock(process.stderr)
  const output = logOutput(process.stderr, (lost) =>
    log.warn({ lost }, 'log lines were lost since the start: nothing read the log'),
  )
  const log = pino(
    {
      level,
      base: { part },
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
