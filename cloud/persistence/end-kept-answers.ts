import type { Db } from './database.ts'

/** In place of a status: the request is being carried out. */
export const RUNNING = 0

/** Answers to requests without an Idempotency-Key are not given again from now on: what they rest on in no row has changed. */
export async function endKeptAnswers(db: Db, nowMs: number, tenant?: string): Promise<void> {
  const all = db.updateTable('idempotency').set({ valid_until_ms: nowMs }).where('status', '!=', RUNNING)
  await (tenant === undefined ? all : all.where('tenant', '=', tenant)).execute()
}
