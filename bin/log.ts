import pino from 'pino'
import type { Log } from '../cloud/log.ts'

/** Lines of JSON on stderr. What could open a door is blacked out even if somebody logs it by mistake. */
export function newLog(part: string): Log {
  const level = process.env['UNTAG_LOG_LEVEL'] ?? 'info'
  return pino(
    {
      level,
      base: { part },
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: ['key', 'token', 'authorization', 'password', 'secret', 'code', 'pin', 'badge', 'receipt', '*.token', '*.authorization', '*.password'], censor: '[hidden]' },
    },
    pino.destination({ dest: 2, sync: false }),
  )
}
