import { isStorageError } from '../persistence/storage-state.ts'

/** The log as the rooms see it: one line of JSON to stderr, made in bin/. Never a token, a key or a secret. */
export interface Log {
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

/**
 * Logs that background work failed. It stays silent while the database is away or the disk is full: the process logs that once, and every
 * job fails until then.
 */
export function logJobFailure(log: Log, error: unknown, job: string): void {
  if (isStorageError(error)) return
  log.error({ err: error, job }, 'a job failed')
}
