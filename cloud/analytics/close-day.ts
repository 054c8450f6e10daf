import { Failure, precondition } from '../foundation/failure.ts'
import { iso } from '../operations/fields.ts'
import type { Call } from '../operations/operation.ts'
import type { Db } from '../persistence/database.ts'
import type { StoreClosingRow } from '../persistence/tables/analytics.ts'
import { addDays, dayOf } from './days.ts'
import type { Closing } from './schema.ts'
import { firstDay, readDays, sumVat, type StoreKey } from './store-days.ts'

/** Time after midnight until a day can be closed, ms. Sales that started before midnight may be stored later. */
const AFTER_MIDNIGHT_MS = 10 * 60_000

/** Closes all days since the last closing up to `day`. Default: the last day that can be closed. */
export async function closeDay(
  { db, nowMs }: Pick<Call, 'db' | 'nowMs'>,
  store: StoreKey,
  day: string | undefined,
): Promise<Closing> {
  const lastOver = addDays(dayOf(nowMs - AFTER_MIDNIGHT_MS), -1)
  const to = day ?? lastOver
  if (to > lastOver)
    throw precondition('day_not_over', `${to} is not over: the last day that can be closed is ${lastOver}`)
  const before = await lastClosing(db, store.store_id)
  if (before && to <= before.to_day)
    throw new Failure(
      'already-exists',
      `${to} is already closed: closing number ${before.number} covers the days up to ${before.to_day}`,
    )
  const first = before ? addDays(before.to_day, 1) : await firstDay(db, store.store_id)
  const from = first !== undefined && first < to ? first : to
  const number = (before?.number ?? 0) + 1
  const closing = {
    storeId: store.store_id,
    number,
    from,
    date: to,
    closedAt: iso(nowMs),
    ...(await totalsOf(db, store.store_id, from, to)),
  }
  const row = {
    store_id: store.store_id,
    number,
    tenant: store.tenant,
    from_day: from,
    to_day: to,
    closed_ms: nowMs,
    body: JSON.stringify(closing),
  }
  await db.insertInto('store_closing').values(row).execute()
  return closing
}

async function totalsOf(db: Db, storeId: string, from: string, to: string) {
  const days = await readDays(db, storeId, from, to)
  const rates = await sumVat(db, storeId, from, to)
  const salesCent = rates.reduce((sum, rate) => sum + rate.sales_cent, 0)
  const refundCent = rates.reduce((sum, rate) => sum + rate.refund_cent, 0)
  const vat = rates.map((rate) => {
    const tax = rate.sales_tax_cent - rate.refund_tax_cent
    return [String(rate.rate), { net: rate.sales_cent - rate.refund_cent - tax, tax }] as const
  })
  return {
    currency: 'EUR' as const,
    receiptCount: days.reduce((sum, row) => sum + row.receipts, 0),
    salesCent,
    refundCount: days.reduce((sum, row) => sum + row.refunds, 0),
    refundCent,
    totalCent: salesCent - refundCent,
    vatBreakdown: Object.fromEntries(vat),
  }
}

async function lastClosing(db: Db, storeId: string): Promise<StoreClosingRow | undefined> {
  return db
    .selectFrom('store_closing')
    .selectAll()
    .where('store_id', '=', storeId)
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
}

/** Closings of a store with a number below `below`, the newest first. */
export async function listClosings(
  db: Db,
  storeId: string,
  below: number | undefined,
  limit: number,
): Promise<Closing[]> {
  let query = db.selectFrom('store_closing').select('body').where('store_id', '=', storeId)
  if (below !== undefined) query = query.where('number', '<', below)
  const rows = await query.orderBy('number', 'desc').limit(limit).execute()
  return rows.map((row) => JSON.parse(row.body) as Closing)
}
