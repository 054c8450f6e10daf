import { MAX_CLOCK_SKEW_MS } from '../../platform/operations/idempotency.ts'
import type { Page } from '../../platform/operations/paging.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { preparedInsert } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import type { Side } from './connector.ts'

/** Key of a connection: a store has one connection for each side and system. */
export interface ConnectionKey {
  storeId: string
  side: Side
  system: string
}

function connections(db: Db, { storeId, side, system }: ConnectionKey) {
  return db
    .selectFrom('integration_connection')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('side', '=', side)
    .where('system', '=', system)
}

/** The systems that a store has used: at most one for each side and system. */
export function connectionsOf(db: Db, storeId: string): Promise<Row<'integration_connection'>[]> {
  return db
    .selectFrom('integration_connection')
    .selectAll()
    .where('store_id', '=', storeId)
    .orderBy('side')
    .orderBy('system')
    .execute()
}

/** Connection of a store to a system; undefined if the store never used the system. */
export function findConnection(db: Db, which: ConnectionKey): Promise<Row<'integration_connection'> | undefined> {
  return connections(db, which).executeTakeFirst()
}

/** Inserts the connection if it does not exist. Returns the stored connection. */
export async function ensureConnection(
  db: Db,
  row: Row<'integration_connection'>,
): Promise<Row<'integration_connection'>> {
  await db
    .insertInto('integration_connection')
    .values(row)
    .onConflict((c) => c.columns(['store_id', 'side', 'system']).doNothing())
    .execute()
  return connections(db, {
    storeId: row.store_id,
    side: row.side as Side,
    system: row.system,
  }).executeTakeFirstOrThrow()
}

/** Stores encrypted credentials, or deletes them with null. */
export async function writeSealed(
  db: Db,
  connectionId: string,
  sealed: string | null,
  updated_ms: number,
): Promise<void> {
  await db
    .updateTable('integration_connection')
    .set({ sealed, updated_ms })
    .where('connection_id', '=', connectionId)
    .execute()
}

/**
 * Takes or renews the lease. Returns false if another call holds the lease. Ignores a lease whose end is implausibly
 * late, because a fast clock wrote it.
 */
export async function takeLease(
  db: Db,
  connectionId: string,
  lease: { id: string; untilMs: number; nowMs: number },
): Promise<boolean> {
  const rows = await db
    .updateTable('integration_connection')
    .set({ lease_id: lease.id, lease_until_ms: lease.untilMs })
    .where('connection_id', '=', connectionId)
    .where((eb) =>
      eb.or([
        eb('lease_id', 'is', null),
        eb('lease_id', '=', lease.id),
        eb('lease_until_ms', '<=', lease.nowMs),
        eb('lease_until_ms', '>', lease.untilMs + MAX_CLOCK_SKEW_MS),
      ]),
    )
    .returning('connection_id')
    .execute()
  return rows.length > 0
}

/** Ends the lease if this call still holds it. */
export async function endLease(db: Db, connectionId: string, leaseId: string): Promise<void> {
  await db
    .updateTable('integration_connection')
    .set({ lease_id: null, lease_until_ms: 0 })
    .where('connection_id', '=', connectionId)
    .where('lease_id', '=', leaseId)
    .execute()
}

/** Progress of a round by data type. */
export function pullsOf(db: Db, { storeId, side, system }: ConnectionKey): Promise<Row<'integration_pull'>[]> {
  return db
    .selectFrom('integration_pull')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('side', '=', side)
    .where('system', '=', system)
    .execute()
}

/** Stores the progress of a data type. */
export async function writePull(db: Db, row: Row<'integration_pull'>): Promise<void> {
  const { next_cursor, is_done, counts, source, started_ms, updated_ms } = row
  await db
    .insertInto('integration_pull')
    .values(row)
    .onConflict((c) =>
      c
        .columns(['store_id', 'side', 'system', 'data_type'])
        .doUpdateSet({ next_cursor, is_done, counts, source, started_ms, updated_ms }),
    )
    .execute()
}

/** Source of a round that has ended: no cursor of another source continues it. */
const ENDED = ''

/** Ends a round. What it read stays: it shows when the store was read last, and that its stock comes from the system. */
export async function endPulls(db: Db, { storeId, side, system }: ConnectionKey): Promise<void> {
  await db
    .updateTable('integration_pull')
    .set({ source: ENDED, next_cursor: null })
    .where('store_id', '=', storeId)
    .where('side', '=', side)
    .where('system', '=', system)
    .execute()
}

/** Inserts or updates ERP records. `rows` must contain each record once. */
export const upsertErpRecords = preparedInsert((db, rows: readonly Row<'erp_record'>[]) =>
  db
    .insertInto('erp_record')
    .values(rows)
    .onConflict((c) =>
      c
        .columns(['store_id', 'data_type', 'system', 'external_id'])
        .doUpdateSet((eb) => ({ doc: eb.ref('excluded.doc'), updated_ms: eb.ref('excluded.updated_ms') })),
    ),
)

/** A page of stored ERP records, sorted by external id. */
export function listErpRecords(
  db: Db,
  storeId: string,
  dataType: string,
  system: string,
  { after = '', limit, offset }: Page,
): Promise<Row<'erp_record'>[]> {
  const kept = db
    .selectFrom('erp_record')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('data_type', '=', dataType)
    .where('system', '=', system)
  return kept.where('external_id', '>', after).orderBy('external_id').limit(limit).offset(offset).execute()
}
