import { z } from 'zod'
import { newId } from '../../../policy/ids.ts'
import { noteChange } from '../../platform/accounts/audit-operations.ts'
import type { Sealer } from '../../platform/authority/sealing.ts'
import { logJobFailure } from '../../platform/foundation/log.ts'
import type { Call, Services } from '../../platform/operations/operation.ts'
import { changedRows, type Database, type Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { eraseTable, type Customer } from './personal-table.ts'
import { PERSONAL_TABLES } from './personal-tables.ts'

/**
 * The list of erased customers. Each backup contains the list, and a restore adds the entries that the restored database
 * lacks. The cloud repeats these erasures before it serves anybody (ADR records).
 *
 *   eraseCustomerData ─▶ entry without `done_ms` ─▶ erase all tables ─▶ `done_ms`
 *   restore ───────────▶ entry without `done_ms` ─▶ start of the cloud erases all tables ─▶ `done_ms`
 */
const ErasedCustomer = z.strictObject({ tenant: z.string(), userId: z.string() })

/** An entry as backups store it. */
export const ListedErasure = z.strictObject({
  erasureId: z.string().min(1).max(64),
  atMs: z.int().min(0),
  sealed: z.string().min(1).max(4_096),
})
export type ListedErasure = z.infer<typeof ListedErasure>

/** Entries in the list of a backup, at most. */
export const LISTED_ERASURES = 100_000
const AT_ONCE = 200
const ACTOR = 'restore'

const contextOf = (erasureId: string) => `erasure/${erasureId}`

/** Stores that an erasure has begun. Returns the id of the entry. */
export async function recordErasure(
  { db, nowMs, services }: Pick<Call, 'db' | 'nowMs' | 'services'>,
  { tenant, userId }: Customer,
): Promise<string> {
  const erasureId = newId('era', services.platform)
  const plain = Buffer.from(JSON.stringify({ tenant, userId }))
  const sealed = services.authority.sealer.seal(plain, contextOf(erasureId))
  await db.insertInto('erasure').values({ erasure_id: erasureId, sealed, at_ms: nowMs, done_ms: null }).execute()
  return erasureId
}

/** Stores that an erasure is complete. */
export async function finishErasure({ db, nowMs }: Pick<Call, 'db' | 'nowMs'>, erasureId: string): Promise<void> {
  await db.updateTable('erasure').set({ done_ms: nowMs }).where('erasure_id', '=', erasureId).execute()
}

/** The newest entries, at most `LISTED_ERASURES`. */
export async function listErasures(db: Db): Promise<ListedErasure[]> {
  const rows = await db.selectFrom('erasure').selectAll().orderBy('erasure_id', 'desc').limit(LISTED_ERASURES).execute()
  return rows.map((row) => ({ erasureId: row.erasure_id, atMs: row.at_ms, sealed: row.sealed }))
}

/**
 * Adds entries that a restored database lacks. Known entries stay as they are: the customer may have returned after such
 * an erasure. Returns the number of added entries, and of those that the master key does not open.
 */
export async function addErasures(
  db: Db,
  listed: readonly ListedErasure[],
  sealer: Sealer,
): Promise<{ added: number; unreadable: number }> {
  const readable = listed.filter((entry) => isReadable(entry, sealer))
  let added = 0
  for (let from = 0; from < readable.length; from += AT_ONCE) {
    const rows = readable
      .slice(from, from + AT_ONCE)
      .map(({ erasureId, atMs, sealed }) => ({ erasure_id: erasureId, sealed, at_ms: atMs, done_ms: null }))
    const insert = db.insertInto('erasure').values(rows)
    added += await changedRows(
      db,
      insert.onConflict((conflict) => conflict.column('erasure_id').doNothing()),
    )
  }
  return { added, unreadable: listed.length - readable.length }
}

function isReadable({ erasureId, sealed }: ListedErasure, sealer: Sealer): boolean {
  try {
    openErased({ erasure_id: erasureId, sealed }, sealer)
    return true
  } catch {
    return false
  }
}

function openErased({ erasure_id, sealed }: Pick<Row<'erasure'>, 'erasure_id' | 'sealed'>, sealer: Sealer): Customer {
  return ErasedCustomer.parse(JSON.parse(sealer.open(sealed, contextOf(erasure_id)).toString()))
}

/**
 * Completes each erasure that a restore added or that an interrupted call left. A failure is logged, and the next run
 * repeats the erasure. Several processes may run this at the same time.
 */
export async function completeErasures(database: Database, services: Services): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined;) {
    const rows: Row<'erasure'>[] = await database.reads
      .selectFrom('erasure')
      .selectAll()
      .where('done_ms', 'is', null)
      .where('erasure_id', '>', after)
      .orderBy('erasure_id')
      .limit(AT_ONCE)
      .execute()
    for (const row of rows)
      await complete(database, services, row).catch((error: unknown) =>
        logJobFailure(services.log, error, 'erasure of a customer'),
      )
    after = rows.length === AT_ONCE ? rows.at(-1)?.erasure_id : undefined
  }
}

async function complete(database: Database, services: Services, row: Row<'erasure'>): Promise<void> {
  const { platform, authority } = services
  const who = openErased(row, authority.sealer)
  const step: Parameters<typeof eraseTable>[2] = (work) =>
    database.write((db) => work({ db, nowMs: platform.clock.wall(), services }))
  for (const table of PERSONAL_TABLES) for await (const _ of eraseTable(table, who, step));
  await database.write(async (db) => {
    await noteChange(
      db,
      { tenant: who.tenant, actor: ACTOR, operation: 'eraseCustomerData', entity_id: null },
      platform,
    )
    await finishErasure({ db, nowMs: platform.clock.wall() }, row.erasure_id)
  })
}
