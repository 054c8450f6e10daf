import { isStorageError } from '../persistence/database.ts'

/** Log of the cloud: one line of JSON to stderr (bin/). Never log a token, a key or a secret. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

/**
 * Logs a failure of background work. Logs nothing if the database is unreachable or the disk is full, because the
 * process logs these faults once for all jobs.
 */
export function logJobFailure(log: Log, error: unknown, job: string): void {
  if (isStorageError(error)) return
  log.error({ err: error, job }, 'a job failed')
}
