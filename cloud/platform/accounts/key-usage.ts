import type { KeyUsage } from '../foundation/ports.ts'
import type { Db } from '../persistence/database.ts'

/** Minimum time between two recorded uses of a key, ms. */
const RESOLUTION_MS = 60_000
/**
 * Maximum number of keys in memory. A full table is cleared. The only effect is that the database may store a use
 * twice.
 */
const SEEN_LIMIT = 50_000
/** Number of keys in one transaction. The number is small, so that other writes do not wait long. */
const BATCH = 200

/** Makes an empty table of key uses. */
export function keyUsage(): KeyUsage {
  const seen = new Map<string, number>()
  let unwritten = new Map<string, number>()
  return {
    note(keyId, nowMs) {
      const last = seen.get(keyId)
      if (last !== undefined && Math.abs(nowMs - last) < RESOLUTION_MS) return
      if (seen.size >= SEEN_LIMIT) seen.clear()
      seen.set(keyId, nowMs)
      if (unwritten.size < SEEN_LIMIT) unwritten.set(keyId, nowMs)
    },
    lastUsedMs: (keyId) => seen.get(keyId),
    async flush(database) {
      if (unwritten.size === 0) return
      const writing = [...unwritten]
      unwritten = new Map()
      try {
        for (let i = 0; i < writing.length; i += BATCH)
          await database.write((db) => writeUsage(db, writing.slice(i, i + BATCH)))
      } catch (error) {
        // The next flush retries these uses, unless newer uses have replaced them.
        unwritten = new Map([...writing, ...unwritten])
        throw error
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
