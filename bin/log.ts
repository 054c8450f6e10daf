import pino from 'pino'
import type { Log } from '../cloud/log.ts'
import type { LogLevel } from './settings.ts'

/** Lines of JSON on stderr. What could open a door is blacked out even if somebody logs it by mistake. */
export function newLog(part: string, level: LogLevel): Log {
  return pino(
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
    pino.destination({ dest: 2, sync: false }),
  )
}
