import type { LastSeen } from '../foundation/ports.ts'
import type { Db } from '../persistence/database.ts'

/**
 *   HTTP request · login · MQTT packet ──▶ note (memory) ── every 30 s ──▶ flush: one write per agent
 *
 * When the cloud last received something from each agent. No request and no message waits for a write.
 */

/** Time between two writes, ms: a crash loses at most this much. */
export const LAST_SEEN_FLUSH_MS = 30_000
/** Agents noted between two writes. Further ones are noted after the next write. */
const NOTED_LIMIT = 50_000
/** Agents written in one transaction: other writes wait for it. */
const BATCH = 200

/** Starts with nothing noted. */
export function lastSeen(): LastSeen {
  let noted = new Map<string, number>()
  let writing: ReadonlyMap<string, number> = new Map()
  return {
    note(agentId, nowMs) {
      if (noted.size < NOTED_LIMIT || noted.has(agentId)) noted.set(agentId, nowMs)
    },
    lastSeenMs: (agentId) => noted.get(agentId) ?? writing.get(agentId),
    async flush(database) {
      if (noted.size === 0) return
      writing = noted
      noted = new Map()
      const rows = [...writing]
      try {
        for (let i = 0; i < rows.length; i += BATCH)
          await database.write((db) => writeAll(db, rows.slice(i, i + BATCH)))
      } catch (error) {
        // The next flush writes them again, with newer times where there are any.
        noted = new Map([...writing, ...noted])
        throw error
      } finally {
        writing = new Map()
      }
    },
  }
}

async function writeAll(db: Db, rows: readonly (readonly [agentId: string, ms: number])[]): Promise<void> {
  for (const [agentId, ms] of rows) await writeLastSeen(db, agentId, ms)
}

/** Stores the time at once, as a login does: succession compares it with the time of the enrolment. */
export async function writeLastSeen(db: Db, agentId: string, ms: number): Promise<void> {
  await db.updateTable('agent').set({ last_seen_ms: ms }).where('agent_id', '=', agentId).execute()
}
