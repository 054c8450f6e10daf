import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import type { Database, Db } from '../persistence/database.ts'

/**
 * Deletes old audit entries. The chain stays verifiable: the head of the chain names the last deleted entry with its
 * hash, and a new entry of the chain records the deletion. So nobody can shorten the chain without a trace in it.
 */

/** Operation of the entry that records a deletion. Its entity is `{number}:{hash}` of the last deleted entry. */
export const PRUNE_OPERATION = 'pruneAuditLog'
const ACTOR = 'retention'
/** Entries that one transaction deletes. */
const AT_ONCE = 500
const TENANTS_LIMIT = 10_000

/** Entity of the entry that records a deletion up to this entry. */
export function pruneEntity(seq: number, hash: string): string {
  return `${seq}:${hash}`
}

/** Deletes a batch of entries from before this time for each account. The newest entry stays. Returns their number. */
export async function pruneAudit(database: Database, beforeMs: number, platform: Platform): Promise<number> {
  const heads = await database.reads.selectFrom('audit_head').select('tenant').limit(TENANTS_LIMIT).execute()
  let deleted = 0
  for (const { tenant } of heads) {
    const old = await oldEntries(database.reads, tenant, beforeMs)
    if (old.length === 0) continue
    deleted += await database.writeAlone('sealAudit', (db) => pruneSome(db, { tenant, beforeMs, platform }))
  }
  return deleted
}

async function oldEntries(db: Db, tenant: string, beforeMs: number) {
  const head = await db.selectFrom('audit_head').selectAll().where('tenant', '=', tenant).executeTakeFirst()
  if (!head) return []
  const rows = await db
    .selectFrom('audit_entry')
    .select(['entry_id', 'seq', 'hash', 'at_ms'])
    .where('tenant', '=', tenant)
    .where('seq', '>', head.pruned_seq)
    .where('seq', '<', head.seq)
    .orderBy('seq')
    .limit(AT_ONCE)
    .execute()
  const young = rows.findIndex((row) => row.at_ms >= beforeMs)
  return young < 0 ? rows : rows.slice(0, young)
}

async function pruneSome(
  db: Db,
  { tenant, beforeMs, platform }: { tenant: string; beforeMs: number; platform: Platform },
): Promise<number> {
  const rows = await oldEntries(db, tenant, beforeMs)
  const last = rows.at(-1)
  if (!last || last.seq === null || last.hash === null) return 0
  await db
    .deleteFrom('audit_entry')
    .where(
      'entry_id',
      'in',
      rows.map((row) => row.entry_id),
    )
    .execute()
  await db
    .updateTable('audit_head')
    .set({ pruned_seq: last.seq, pruned_hash: last.hash })
    .where('tenant', '=', tenant)
    .execute()
  await db
    .insertInto('audit_entry')
    .values({
      entry_id: newId('aud', platform),
      tenant,
      at_ms: platform.clock.wall(),
      actor: ACTOR,
      operation: PRUNE_OPERATION,
      entity_id: pruneEntity(last.seq, last.hash),
      request_id: newId('req', platform),
    })
    .execute()
  return rows.length
}
