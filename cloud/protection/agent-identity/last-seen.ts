import type { LastSeen } from '../../platform/foundation/ports.ts'
import type { Db } from '../../platform/persistence/database.ts'

/**
 * Time at which the cloud last received anything from each agent: an HTTP request, a login or an MQTT packet. The times
 * stay in memory, so that requests do not wait for a write. `flush` writes the times every 30 s.
 */

/** Time between two writes, ms. After a crash, at most the times of this period are lost. */
export const LAST_SEEN_FLUSH_MS = 30_000
/** Maximum number of agents in memory. Until the next write, the times of further agents are ignored. */
const NOTED_LIMIT = 50_000
/** Agents per transaction, so that other writes do not wait long. */
const BATCH = 200

/** Creates an empty record of times. */
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
        // If the write fails, the next flush writes these times, unless newer times have replaced them.
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

/**
 * Stores the time at which the cloud last heard from an agent. A login calls this function at once, because
 * succession.ts treats an agent without such a time as never logged in.
 */
export async function writeLastSeen(db: Db, agentId: string, ms: number): Promise<void> {
  await db.updateTable('agent').set({ last_seen_ms: ms }).where('agent_id', '=', agentId).execute()
}
