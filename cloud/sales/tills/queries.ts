import type { SaleName } from '../../../policy/till-sale.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { insertChunks, prepared } from '../../platform/persistence/prepared.ts'
import { preparedInsert } from '../../platform/persistence/prepared-insert.ts'
import { preparedForMany } from '../../platform/persistence/prepared-many.ts'
import type { Row } from '../../platform/persistence/schema.ts'

const byKey = prepared((db, p: { saleKey: string }) =>
  db.selectFrom('till_sale').selectAll().where('sale_key', '=', p.saleKey),
)
const upsert = preparedInsert((db, rows: readonly Row<'till_sale'>[]) =>
  db
    .insertInto('till_sale')
    .values(rows)
    .onConflict((c) =>
      c.column('sale_key').doUpdateSet((eb) => ({
        state: eb.ref('excluded.state'),
        version: eb.ref('excluded.version'),
        content: eb.ref('excluded.content'),
        purchase_id: eb.ref('excluded.purchase_id'),
        result: eb.ref('excluded.result'),
        agent_id: eb.ref('excluded.agent_id'),
        stored_ms: eb.ref('excluded.stored_ms'),
        due_ms: eb.ref('excluded.due_ms'),
        resold: eb.ref('excluded.resold'),
      })),
    ),
)

/** Finds a sale by its identity. */
export async function findSale(db: Db, saleKey: string): Promise<Row<'till_sale'> | undefined> {
  const [row] = await byKey(db, { saleKey })
  return row
}

const salesOf = preparedForMany((db, purchaseIds) =>
  db
    .selectFrom('purchase as p')
    .leftJoin('till_sale as s', 's.purchase_id', 'p.purchase_id')
    .select(['p.purchase_id', 'p.completed_ms', 's.stored_ms', 's.resold'])
    .where('p.purchase_id', 'in', purchaseIds),
)

/** When goods were sold, ms since 1970, and the former purchases of those that had come back just before, by item. */
export interface SoldAt {
  readonly atMs: number
  readonly resold: Readonly<Record<string, string | null>>
}

/** When a till's sale was stored, or another purchase paid, by purchase. */
export async function soldTimes(db: Db, purchaseIds: readonly string[]): Promise<ReadonlyMap<string, SoldAt>> {
  const rows = await salesOf(db, purchaseIds)
  return new Map(
    rows.map((row) => [
      row.purchase_id,
      {
        atMs: row.stored_ms ?? row.completed_ms ?? 0,
        resold: row.resold === null ? {} : (JSON.parse(row.resold) as SoldAt['resold']),
      },
    ]),
  )
}

/** Writes a sale. Its identity and names stay. What was open counts from the time at which it was paid. */
export async function saveSale(db: Db, row: Row<'till_sale'>): Promise<void> {
  await upsert(db, [row])
}

/** Number of open sales of a till that have not ended. */
export async function countOpenSales(db: Db, storeId: string, tillId: string | null, nowMs: number): Promise<number> {
  const { n } = await db
    .selectFrom('till_sale')
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where('store_id', '=', storeId)
    .where('till_id', tillId === null ? 'is' : '=', tillId)
    .where('state', '=', 'open')
    .where('due_ms', '>', nowMs)
    .executeTakeFirstOrThrow()
  return Number(n)
}

/** Names of a stored sale. */
export function nameOf({ sale_id: saleId, till_id: tillId, series }: Row<'till_sale'>): SaleName {
  return { saleId, ...(tillId !== null && { tillId }), ...(series !== null && { series }) }
}

const insertCode = preparedInsert((db, rows: readonly Row<'receipt_code'>[]) =>
  db
    .insertInto('receipt_code')
    .values(rows)
    .onConflict((c) => c.doNothing()),
)

/** Stores the hashes of printed codes. */
export async function insertCodes(db: Db, rows: readonly Row<'receipt_code'>[]): Promise<void> {
  for (const chunk of insertChunks(rows)) await insertCode(db, chunk)
}

/** Sales that printed this code since `sinceMs`, at most two: two are one too many. */
export function salesWithCode(db: Db, storeId: string, code: string, sinceMs: number): Promise<Row<'receipt_code'>[]> {
  return db
    .selectFrom('receipt_code')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('code', '=', code)
    .where('stored_ms', '>=', sinceMs)
    .limit(2)
    .execute()
}

const addHour = prepared((db, p: Row<'till_hour'>) =>
  db
    .insertInto('till_hour')
    .values({ store_id: p.store_id, till_id: p.till_id, hour: p.hour, sales: p.sales, value_cent: p.value_cent })
    .onConflict((c) =>
      c.columns(['store_id', 'till_id', 'hour']).doUpdateSet((eb) => ({
        sales: eb('till_hour.sales', '+', p.sales),
        value_cent: eb('till_hour.value_cent', '+', p.value_cent),
      })),
    )
    .returning(['sales', 'value_cent']),
)

/** Adds a sale to the hour of its till. Returns the sums of the hour. */
export async function addToHour(
  db: Db,
  row: Row<'till_hour'>,
): Promise<Pick<Row<'till_hour'>, 'sales' | 'value_cent'>> {
  const [sums] = await addHour(db, row)
  return { sales: Number(sums?.sales ?? row.sales), value_cent: Number(sums?.value_cent ?? row.value_cent) }
}

const revocation = prepared((db, p: { storeId: string; tillId: string }) =>
  db.selectFrom('till_revocation').selectAll().where('store_id', '=', p.storeId).where('till_id', '=', p.tillId),
)

/** The revocation of a till; undefined if it may sell. */
export async function revocationOf(
  db: Db,
  storeId: string,
  tillId: string | undefined,
): Promise<Row<'till_revocation'> | undefined> {
  const [row] = tillId === undefined ? [] : await revocation(db, { storeId, tillId })
  return row
}

/** Finds a return by its key. */
export function findReturn(db: Db, returnKey: string): Promise<Row<'till_return'> | undefined> {
  return db.selectFrom('till_return').selectAll().where('return_key', '=', returnKey).executeTakeFirst()
}

const upsertReturns = preparedInsert((db, rows: readonly Row<'till_return'>[]) =>
  db
    .insertInto('till_return')
    .values(rows)
    .onConflict((c) =>
      c
        .column('return_key')
        .doUpdateSet((eb) => ({ result: eb.ref('excluded.result'), due_ms: eb.ref('excluded.due_ms') })),
    ),
)

/** Inserts returns, or updates their answers. */
export async function saveReturns(db: Db, rows: readonly Row<'till_return'>[]): Promise<void> {
  for (const chunk of insertChunks(rows)) await upsertReturns(db, chunk)
}

const waitingFor = preparedForMany((db, saleKeys, p: { storeId: string }) =>
  db
    .selectFrom('till_return')
    .selectAll()
    .where('sale_key', 'in', saleKeys)
    .where('store_id', '=', p.storeId)
    .where('result', 'is', null),
)

/** Returns of a store that wait for these sales, the oldest first. */
export async function waitingReturns(
  db: Db,
  storeId: string,
  saleKeys: readonly string[],
): Promise<Row<'till_return'>[]> {
  const rows = await waitingFor(db, saleKeys, { storeId })
  return rows.sort((a, b) => a.stored_ms - b.stored_ms || (a.return_key < b.return_key ? -1 : 1))
}
