import { z } from 'zod'
import { invalid, Failure, precondition } from '../../platform/foundation/failure.ts'
import { Id, Limit, Success, text, iso } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { toPage, invalidCursor } from '../../platform/operations/paging.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import {
  daysBetween,
  PERIODS,
  addDays,
  dayOf,
  followersBefore,
  readDays,
  firstDay,
  sumVat,
  type StoreKey,
} from './store-days.ts'
import { ENGAGEMENTS, countEngagement, offersWithin } from './engagement.ts'
import { makeReports } from './report.ts'
import { AnalyticsReport, Closing, Day } from './schema.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/** Time after midnight until a day can be closed, ms. Sales that started before midnight may be stored later. */
const AFTER_MIDNIGHT_MS = 10 * 60_000

/** Closes all days since the last closing up to `day`. Default: the last day that can be closed. */
async function closeDay(
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
    currency: 'EUR' as const,
    ...(await totalsOf(db, store.store_id, from, to, 0)),
    tills: await totalsOf(db, store.store_id, from, to, 1),
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

/** Totals of untag's own sales, or with `isTill` 1 those of the store's tills. */
async function totalsOf(db: Db, storeId: string, from: string, to: string, isTill: 0 | 1) {
  const days = await readDays(db, storeId, from, to)
  const rates = await sumVat(db, storeId, from, to, isTill)
  const salesCent = rates.reduce((sum, rate) => sum + rate.sales_cent, 0)
  const refundCent = rates.reduce((sum, rate) => sum + rate.refund_cent, 0)
  const vat = rates.map((rate) => {
    const tax = rate.sales_tax_cent - rate.refund_tax_cent
    return [String(rate.rate), { net: rate.sales_cent - rate.refund_cent - tax, tax }] as const
  })
  return {
    receiptCount: days.reduce((sum, row) => sum + (isTill ? row.till_receipts : row.receipts), 0),
    salesCent,
    refundCount: days.reduce((sum, row) => sum + (isTill ? row.till_refunds : row.refunds), 0),
    refundCent,
    totalCent: salesCent - refundCent,
    vatBreakdown: Object.fromEntries(vat),
  }
}

async function lastClosing(db: Db, storeId: string): Promise<Row<'store_closing'> | undefined> {
  return db
    .selectFrom('store_closing')
    .selectAll()
    .where('store_id', '=', storeId)
    .orderBy('number', 'desc')
    .limit(1)
    .executeTakeFirst()
}

/** Closings of a store with a number below `below`, the newest first. */
async function listClosings(db: Db, storeId: string, below: number | undefined, limit: number): Promise<Closing[]> {
  let query = db.selectFrom('store_closing').select('body').where('store_id', '=', storeId)
  if (below !== undefined) query = query.where('number', '<', below)
  const rows = await query.orderBy('number', 'desc').limit(limit).execute()
  return rows.map((row) => JSON.parse(row.body) as Closing)
}

const REPORTS_LIMIT = 366
const DAYS_OF = { daily: 1, weekly: 7, monthly: 28 }
const DEFAULT_PAGE = 50

export const fetchAnalytics = operation({
  name: 'fetchAnalytics',
  area: 'analytics',
  minimumPackage: 'PRIME',
  roles: rolesFrom('viewer'),
  summary: 'Returns reports of a store by day, week or month.',
  description:
    'Returns a report for each period between two dates, both inclusive; at most 366 reports. Weeks start on ' +
    'Monday, but contain only days between the dates. Purchases have their current state: a cancelled purchase is ' +
    'subtracted from the day of its payment.',
  changes: false,
  mayBeStale: true,
  request: z.strictObject({
    storeId: Id,
    from: Day,
    to: Day,
    period: z.enum(PERIODS).optional().describe('Default `daily`.'),
  }),
  response: z.strictObject({ ...Success, reports: z.array(AnalyticsReport) }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', from: '2026-11-01', to: '2026-11-30', period: 'weekly' },
  async run(call, { storeId, from, to, period = 'daily' }) {
    if (to < from) throw invalid('to', 'is before from')
    if (daysBetween(from, to) >= REPORTS_LIMIT * DAYS_OF[period])
      throw invalid('to', `is too long after from: at most ${REPORTS_LIMIT} reports`, 'too_many')
    const store = await ownStore(call, storeId)
    const { db } = call
    const reports = makeReports({
      storeId: store.store_id,
      from,
      to,
      period,
      days: await readDays(db, storeId, from, to),
      followersBefore: await followersBefore(db, storeId, from),
      offers: await offersWithin(db, storeId, from, to),
    })
    return { success: true as const, reports }
  },
})

export const recordEngagement = operation({
  name: 'recordEngagement',
  area: 'analytics',
  minimumPackage: 'DISCOVER',
  roles: [],
  summary: 'Counts an engagement of a shopper with a store or an offer.',
  description:
    'With a `userId`, a follow or favourite counts once until it is removed; `follow` and `unfollow` require ' +
    'it. Offer types require an `offerId`. `recorded` is false if nothing changed.',
  callers: ['secret', 'publishable'],
  changes: true,
  // Not audited: these are actions of thousands of shoppers a day, and not changes by the merchant.
  audited: false,
  request: z.strictObject({
    type: z.enum(ENGAGEMENTS),
    storeId: Id,
    offerId: Id.optional(),
    userId: text(128).optional(),
  }),
  response: z.strictObject({ ...Success, recorded: z.boolean() }),
  example: { type: 'follow', storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', userId: 'shopper-17' },
  async run(call, engaged) {
    const store = await ownStore(call, engaged.storeId)
    return { success: true as const, recorded: await countEngagement(call, store, engaged) }
  },
})

export const closeStoreDay = operation({
  name: 'closeStoreDay',
  area: 'analytics',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Closes the days of a store since its last closing, permanently.',
  description:
    'A closing contains sales and refunds by VAT rate, summed from the receipts; those of your tills apart, in `tills`. A day can be closed ten minutes ' +
    'after its end. A closing is not fiscal evidence, because no certified device signs it.',
  refusals: ['day_not_over'],
  changes: true,
  request: z.strictObject({
    storeId: Id,
    date: Day.optional().describe('The last day to close; default: the last day that is over.'),
  }),
  response: Closing.extend(Success),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', date: '2026-11-19' },
  async run(call, { storeId, date }) {
    const store = await ownStore(call, storeId)
    const closing = await closeDay(call, store, date)
    call.changed(store.store_id)
    return { success: true as const, ...closing }
  },
})

export const fetchClosings = operation({
  name: 'fetchClosings',
  area: 'analytics',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Lists the closings of a store, newest first.',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    limit: Limit.optional(),
    cursor: z.string().optional().describe('`number` of the last closing on the previous page.'),
  }),
  response: z.strictObject({ ...Success, closings: z.array(Closing), nextCursor: z.string().optional() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, { storeId, limit = DEFAULT_PAGE, cursor }) {
    if (cursor !== undefined && !/^\d{1,9}$/.test(cursor)) throw invalidCursor()
    const store = await ownStore(call, storeId)
    const rows = await listClosings(
      call.db,
      store.store_id,
      cursor === undefined ? undefined : Number(cursor),
      limit + 1,
    )
    const { items: closings, nextCursor } = toPage(rows, (closing) => String(closing.number), { limit })
    return { success: true as const, closings, ...(nextCursor !== undefined && { nextCursor }) }
  },
})
