import type { Database, Db } from '../persistence/database.ts'
import { prepared } from '../persistence/prepared.ts'
import { BEFORE_FIRST, linkOf } from './audit-chain.ts'

/**
 * A job seals the entries some seconds after their commit. If each change extended its tenant's chain itself, all
 * changes of a tenant would conflict.
 */

/**
 * Age at which entries are sealed, ms: slow transactions have committed by then. If an entry commits even later, it
 * gets a later number in the chain.
 */
const SETTLED_MS = 5_000
/** Entries sealed in one transaction. */
const AT_ONCE = 200

const seal = prepared((db, p: { entryId: string; seq: number; previous: string; hash: string }) =>
  db
    .updateTable('audit_entry')
    .set({ seq: p.seq, prev_hash: p.previous, hash: p.hash })
    .where('entry_id', '=', p.entryId),
)

/** Seals all entries older than 5 s and resolves to their number. One process seals at a time. */
export async function sealAudit(database: Database, nowMs: number): Promise<number> {
  const beforeMs = nowMs - SETTLED_MS
  let sealed = 0
  for (;;) {
    const rows = await unsealed(database.reads, beforeMs).select(['tenant']).limit(1).execute()
    const [next] = rows
    if (!next) return sealed
    for (let count = AT_ONCE; count === AT_ONCE; sealed += count)
      count = await database.writeAlone('sealAudit', (db) => sealSome(db, next.tenant, beforeMs))
  }
}

function unsealed(db: Db, beforeMs: number) {
  return db.selectFrom('audit_entry').where('seq', 'is', null).where('at_ms', '<=', beforeMs)
}

async function sealSome(db: Db, tenant: string, beforeMs: number): Promise<number> {
  const rows = await unsealed(db, beforeMs)
    .selectAll()
    .where('tenant', '=', tenant)
    .orderBy('entry_id')
    .limit(AT_ONCE)
    .execute()
  if (rows.length === 0) return 0
  const head = await db.selectFrom('audit_head').selectAll().where('tenant', '=', tenant).executeTakeFirst()
  let { seq, hash } = head ?? { seq: 0, hash: BEFORE_FIRST }
  for (const row of rows) {
    const previous = hash
    seq++
    hash = linkOf(seq, previous, row)
    await seal(db, { entryId: row.entry_id, seq, previous, hash })
  }
  await db
    .insertInto('audit_head')
    .values({ tenant, seq, hash })
    .onConflict((c) => c.column('tenant').doUpdateSet({ seq, hash }))
    .execute()
  return rows.length
}
