import type { Database, Db } from '../persistence/database.ts'

/**
 * When each key was used last. A request only notes it in memory; once a minute all of it is written at
 * once, so that no answer waits for it. What a crash loses is at most the last minute.
 */
export interface KeyUsage {
  note(keyId: string, nowMs: number): void
  /** What is not written yet, ms; undefined when there is nothing newer than the database has. */
  lastUsedMs(keyId: string): number | undefined
  /** Writes what was noted. */
  flush(database: Database): Promise<void>
}

/** Keys noted between two writes; those beyond have to wait for their next use. */
const NOTED_LIMIT = 50_000
/** Keys written in one transaction: nobody else waits long behind it. */
const BATCH = 200

/** Nothing used yet. */
export function keyUsage(): KeyUsage {
  let noted = new Map<string, number>()
  let writing = new Map<string, number>()
  return {
    note(keyId, nowMs) {
      if (noted.size < NOTED_LIMIT || noted.has(keyId)) noted.set(keyId, nowMs)
    },
    lastUsedMs: (keyId) => noted.get(keyId) ?? writing.get(keyId),
    async flush(database) {
      if (noted.size === 0) return
      writing = noted
      noted = new Map()
      try {
        const all = [...writing]
        for (let i = 0; i < all.length; i += BATCH) await database.write((db) => writeUsage(db, all.slice(i, i + BATCH)))
      } catch (error) {
        // Once more with the next write: nothing that was used meanwhile is put back.
        for (const [keyId, ms] of writing) if (!noted.has(keyId)) noted.set(keyId, ms)
        throw error
      } finally {
        writing = new Map()
      }
    },
  }
}

async function writeUsage(db: Db, used: readonly (readonly [keyId: string, ms: number])[]): Promise<void> {
  for (const [keyId, ms] of used) {
    await db
      .updateTable('api_key')
      .set({ last_used_ms: ms })
      .where('key_id', '=', keyId)
      .where((eb) => eb.or([eb('last_used_ms', 'is', null), eb('last_used_ms', '<', ms)]))
      .execute()
  }
}
