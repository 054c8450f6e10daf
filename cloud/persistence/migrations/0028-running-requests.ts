import type { Migration } from './migration.ts'

/** Requests that are being carried out (status 0) are few among the kept answers of a day. */
export const RUNNING_REQUESTS: Migration = {
  name: '0028-running-requests',
  statements: [`CREATE INDEX idempotency_running ON idempotency (created_ms) WHERE status = 0`],
}
