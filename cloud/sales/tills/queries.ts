import type { KeptReturn, SaleName } from '../../../policy/till-sale.ts'
import { groupBy, type Db } from '../../platform/persistence/database.ts'
import {
  insertChunks,
  preparedRows,
  prepared,
  preparedInsert,
  preparedForMany,
} from '../../platform/persistence/prepared.ts'
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
      })),
    ),
)

/** Finds a sale by its identity. */
export async function findSale(db: Db, saleKey: string): Promise<Row<'till_sale'> | undefined> {
  const [row] = await byKey(db, { saleKey })
  return row
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

/** Deletes codes that a sale printed up to `untilMs`: its number is that of another sale now. */
export async function forgetCodes(db: Db, saleKey: string, untilMs: number): Promise<void> {
  await db.deleteFrom('receipt_code').where('stored_ms', '<=', untilMs).where('sale_key', '=', saleKey).execute()
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

/** Time for which a till must not repeat a number, and for which codes are known, ms. */
export const SALES_KEPT_MS = 90 * 86_400_000

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

/** Returns that were booked on the sale with this key, or on a former one with its number. */
export const bookedReturns = preparedRows((db, storeId: string, saleKey: string) =>
  db
    .selectFrom('till_return')
    .select(['body', 'result'])
    .where('sale_key', '=', saleKey)
    .where('store_id', '=', storeId)
    .where('result', 'is not', null),
)

const reportsOf = preparedForMany((db, itemIds) =>
  db
    .selectFrom('piece_report as r')
    .leftJoin('purchase as p', 'p.purchase_id', 'r.purchase_id')
    .selectAll('r')
    .select('p.status')
    .where('r.item_id', 'in', itemIds),
)
const upsertReports = preparedInsert((db, rows: readonly Row<'piece_report'>[]) =>
  db
    .insertInto('piece_report')
    .values(rows)
    .onConflict((c) =>
      c.columns(['item_id', 'report_key']).doUpdateSet((eb) => ({
        at_ms: eb.ref('excluded.at_ms'),
        agent_id: eb.ref('excluded.agent_id'),
        is_again: eb.ref('excluded.is_again'),
        sale_key: eb.ref('excluded.sale_key'),
        names_tag: eb.ref('excluded.names_tag'),
        is_booked: eb.ref('excluded.is_booked'),
      })),
    ),
)
const requestsOf = preparedForMany((db, returnKeys) =>
  db.selectFrom('till_return').select(['return_key', 'body']).where('return_key', 'in', returnKeys),
)

type ReportsOfPieces = ReadonlyMap<string, Row<'piece_report'>[]>

/** What tills reported about these pieces, by item: sales and returns, and apart the sales that were voided. */
export async function allPieceReports(
  db: Db,
  itemIds: readonly string[],
): Promise<{ reports: ReportsOfPieces; voided: ReportsOfPieces }> {
  const rows = await reportsOf(db, itemIds)
  const where = (isVoid: boolean) =>
    groupBy(
      rows.flatMap(({ status, ...report }) => ((status === 'CANCELLED') === isVoid ? [report] : [])),
      (report) => report.item_id,
    )
  return { reports: where(false), voided: where(true) }
}

/** What tills reported about these pieces, by item, except sales that were voided: those were never sold. */
export async function pieceReports(db: Db, itemIds: readonly string[]): Promise<ReportsOfPieces> {
  return (await allPieceReports(db, itemIds)).reports
}

/** True for a return. */
export const isReturn = ({ purchase_id: purchaseId }: Row<'piece_report'>) => purchaseId === null
/** True for a return that no sale is booked for. */
export const isWaitingReturn = (report: Row<'piece_report'>) => isReturn(report) && report.is_booked === 0

const tillPurchases = preparedForMany((db, purchaseIds) =>
  db.selectFrom('purchase').select('purchase_id').where('purchase_id', 'in', purchaseIds).where('till', 'is not', null),
)

/** Those of these purchases that tills sold. */
export async function soldAtTills(db: Db, purchaseIds: readonly string[]): Promise<ReadonlySet<string>> {
  return new Set((await tillPurchases(db, purchaseIds)).map((row) => row.purchase_id))
}

/** Inserts reports about pieces, or updates all of them but the names. */
export async function saveReports(db: Db, rows: readonly Row<'piece_report'>[]): Promise<void> {
  for (const chunk of insertChunks(rows)) await upsertReports(db, chunk)
}

/** The key under which reports name the sale of a purchase; a till may have used its number again. */
export const keyOfPurchase = ({ cti, purchase_id }: Pick<Row<'purchase'>, 'cti' | 'purchase_id'>) => cti ?? purchase_id

/** Gives the reports of a sale another key. */
export async function renameReports(db: Db, from: string, to: string): Promise<void> {
  await db.updateTable('piece_report').set({ report_key: to }).where('report_key', '=', from).execute()
}

/** Returns by their keys. */
export async function returnsWith(db: Db, returnKeys: readonly string[]): Promise<ReadonlyMap<string, KeptReturn>> {
  const rows = await requestsOf(db, returnKeys)
  return new Map(rows.map((row) => [row.return_key, JSON.parse(row.body) as KeptReturn]))
}

/** The pieces that a report of a till names. */
export async function piecesOfReport(db: Db, reportKey: string): Promise<Row<'piece_report'>[]> {
  return db.selectFrom('piece_report').selectAll().where('report_key', '=', reportKey).execute()
}

const clearDue = preparedForMany((db, returnKeys) =>
  db
    .updateTable('till_return')
    .set({ due_ms: null })
    .where('return_key', 'in', returnKeys)
    .where('due_ms', 'is not', null)
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('piece_report')
            .select('item_id')
            .whereRef('report_key', '=', 'till_return.return_key')
            .where('is_booked', '=', 0),
        ),
      ),
    )
    .returning('return_key'),
)

/** Ends the waiting of these returns, if all their pieces are booked. */
export async function endWaiting(db: Db, returnKeys: readonly string[]): Promise<void> {
  await clearDue(db, returnKeys)
}

const storedTimes = preparedForMany((db, saleKeys) =>
  db.selectFrom('till_sale').select(['sale_key', 'stored_ms']).where('sale_key', 'in', saleKeys),
)

/** When agents or the cloud stored these sales, ms since 1970. */
export async function storedTimesOf(db: Db, saleKeys: readonly string[]): Promise<ReadonlyMap<string, number>> {
  if (saleKeys.length === 0) return new Map()
  return new Map((await storedTimes(db, saleKeys)).map((row) => [row.sale_key, row.stored_ms]))
}
