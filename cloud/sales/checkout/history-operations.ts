import { z } from 'zod'
import {
  Id,
  Limit,
  Offset,
  QueryNumber,
  Success,
  scanned,
  text,
  ProductCodeText,
} from '../../platform/operations/fields.ts'
import { legacyForm, operation, type Call } from '../../platform/operations/operation.ts'
import { cursorField, pageLimits, type PageRequest, toPageWithinLines } from '../../platform/operations/paging.ts'
import { toPurchase, toTransactionData, type WholePurchase } from '../../shop/purchases/present.ts'
import { Purchase, TransactionData } from '../../shop/purchases/schema.ts'
import { rolesFrom, knownCaller } from '../../platform/foundation/caller.ts'
import { sql, type SelectQueryBuilder } from 'kysely'
import { firstIdAt } from '../../../policy/ids.ts'
import { claimedReceipts } from '../../../policy/receipts/receipt-token.ts'
import { receiptCodeHash } from '../../../policy/till-sale.ts'
import { normaliseIdentifiers } from '../../../policy/item-identifiers.ts'
import { Day } from '../../shop/analytics/schema.ts'
import { addDays, startOfDay } from '../../shop/analytics/store-days.ts'
import { eansOf } from '../../shop/catalogue/ean.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row, Schema } from '../../platform/persistence/schema.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { findItem } from '../../protection/items/item-queries.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { refundsOfMany } from '../../shop/purchases/refund-queries.ts'

/** Maximum exact total. Larger totals are estimates, because counting would cost more than reading the page. */
const EXACT_TOTAL = 10_000
const DAY_MS = 86_400_000
/** Days in which a purchase is found by its total alone. */
const TOTAL_DAYS = 30
/** Days between the first checkout and the payment of a purchase that `day` finds. */
const OPEN_DAYS = 30
/** Clocks of several processes may differ by this time, ms. */
const ID_GUARD_MS = 3_600_000
/** Newest purchases that one page looks at: no index has the payment day. */
const LOOKED_AT = 20_000
/** Newest lines with an EAN that one page searches. */
const LINES_OF_EAN = 20_000
/** A literal, because SQLite would not use the partial index with a parameter. */
const IS_AWAITING = sql<boolean>`approval = 'awaiting'`

interface HistoryFilter extends PageRequest {
  storeId?: string | undefined
  userId?: string | undefined
  awaitingApproval?: true | undefined
  ean?: string | undefined
  tag?: string | undefined
  day?: string | undefined
  number?: string | undefined
  saleId?: string | undefined
  receiptCode?: string | undefined
  receipt?: string | undefined
  totalCent?: number | undefined
}

interface HistoryPage {
  purchases: WholePurchase[]
  total: number
  totalIsEstimate?: true
  nextCursor?: string
}

/** Purchases of the caller's stores, the newest first. */
async function readHistory(call: Call, filter: HistoryFilter, defaultLimit: number): Promise<HistoryPage> {
  const page = pageLimits(filter, defaultLimit)
  const search = await searchOf(call, filter)
  const end = await endOfPage(call.db, search, page, page.after)
  const older = upTo(matching(call.db, search, page.after), end)
  const rows = await older
    .selectAll()
    .orderBy('purchase_id', 'desc')
    .limit(page.limit + 1)
    .offset(page.offset)
    .execute()
  const { items, nextCursor = end } = await toPageWithinLines(call.db, 'purchase_line', rows, page)
  const newest = page.after === undefined ? end : await endOfPage(call.db, search, page, undefined)
  const counted = await call.db
    .selectFrom(
      upTo(matching(call.db, search, undefined), newest)
        .select('purchase_id')
        .limit(EXACT_TOTAL + 1)
        .as('matching'),
    )
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  const total = Number(counted.count)
  const isEstimate = total > EXACT_TOTAL || newest !== undefined
  return {
    purchases: await withLines(call, items),
    total: Math.min(total, EXACT_TOTAL),
    ...(isEstimate && { totalIsEstimate: true as const }),
    ...(nextCursor !== undefined && { nextCursor }),
  }
}

type Purchases = SelectQueryBuilder<Schema, 'purchase', object>

/** A filter of a caller. Without `storeId`, it selects the purchases of all stores that the caller may see (ADR requests). */
interface Search {
  readonly filter: HistoryFilter
  readonly tenant: string
  /** Only these stores. */
  readonly storeIds: readonly string[] | undefined
  /** True if the index of stores has the order of the page, and not that of the account. */
  readonly isByStore: boolean
  /** Oldest id that the search finds, by the time in it. */
  readonly from: string
  /** True if lists of ids, each with an index, or lines with an EAN name all that it finds. */
  readonly isNarrow: boolean
  readonly narrow: readonly ((query: Purchases) => Purchases)[]
}

async function searchOf(call: Call, filter: HistoryFilter): Promise<Search> {
  const { storeId, userId, awaitingApproval, day, number, saleId, receiptCode, receipt, totalCent, tag, ean } = filter
  const caller = knownCaller(call.caller)
  const own = caller.kind === 'agent' ? [caller.storeId] : (caller.storeIds ?? undefined)
  const storeIds = storeId === undefined ? own : [(await ownStore(call, storeId)).store_id]
  const narrow: ((query: Purchases) => Purchases)[] = []
  if (tag !== undefined) {
    const itemIds = await itemsOfTag(call.db, caller.tenant, tag)
    narrow.push((query) =>
      query.where('purchase_id', 'in', (eb) =>
        eb.selectFrom('purchase_unit').select('purchase_id').where('item_id', 'in', itemIds),
      ),
    )
  }
  if (saleId !== undefined || receiptCode !== undefined) {
    const field = saleId === undefined ? 'receiptCode' : 'saleId'
    if (storeId === undefined) throw invalid('storeId', `is required with ${field}`, 'missing')
    const { store_id: ownId } = await ownStore(call, storeId)
    narrow.push((query) => query.where('purchase_id', 'in', salesOfTills(call.db, ownId, { saleId, receiptCode })))
  }
  if (number !== undefined) {
    const end = number.toUpperCase()
    const last = sql<string>`substr(purchase_id, 25, 6)`
    narrow.push((query) => query.where(last, '=', end.slice(-6)).where('purchase_id', 'like', `%${end}`))
  }
  // No signature is checked: an expired receipt names its purchase, too, and the answer grants nothing.
  if (receipt !== undefined)
    narrow.push((query) => query.where('cti', 'in', ['-', ...claimedReceipts(receipt).map(({ cti }) => cti)]))
  const isNarrow = narrow.length > 0 || ean !== undefined
  const isByTotal = totalCent !== undefined && !isNarrow && day === undefined
  return {
    filter,
    tenant: caller.tenant,
    storeIds,
    // A small store of a large account is found by its own index, not by that of the account.
    isByStore:
      storeIds !== undefined && userId === undefined && totalCent === undefined && !awaitingApproval && !isNarrow,
    from: isByTotal ? firstIdAt('pur', call.nowMs - TOTAL_DAYS * DAY_MS) : 'pur_',
    isNarrow,
    narrow,
  }
}

/** The part of a search that one index has, perhaps only purchases older than `after`. */
function indexed(
  db: Db,
  { filter, tenant, storeIds, isByStore, isNarrow, from }: Search,
  after: string | undefined,
): Purchases {
  const { userId, awaitingApproval, totalCent, day } = filter
  const range = rangeOf(day, after)
  let query: Purchases = db.selectFrom('purchase')
  if (!isByStore) query = query.where('tenant', '=', tenant)
  else {
    query = query.where('store_id', 'in', listed(storeIds))
    // A user may have stores of both modes. A store of the request is the caller's.
    if (filter.storeId === undefined) query = query.where(sql<string>`tenant || ''`, '=', tenant)
  }
  if (awaitingApproval) query = query.where(IS_AWAITING).where('status', '=', 'CREATED')
  else if (userId !== undefined) query = query.where('user_id', '=', userId)
  else if (totalCent !== undefined && !isNarrow) query = query.where('total_cent', '=', totalCent)
  // With two bounds, SQLite would prefer the index of the account to that of the customer, the total or the list.
  const unindexed = sql<string>`purchase_id || ''`
  const plain = sql<string>`purchase_id`
  return query
    .where(isNarrow ? unindexed : plain, '>=', from > range.from ? from : range.from)
    .where(isNarrow || userId !== undefined || totalCent !== undefined ? unindexed : plain, '<', range.below)
}

/** Purchases of a search, perhaps only those older than `after`. */
function matching(db: Db, search: Search, after: string | undefined): Purchases {
  const { filter, tenant, storeIds, isByStore, isNarrow, narrow } = search
  const { userId, awaitingApproval, ean, day, totalCent } = filter
  let query = indexed(db, search, after)
  const range = rangeOf(day, after)
  if (ean !== undefined)
    query = query.where('purchase_id', 'in', (eb) =>
      eb
        .selectFrom('purchase_line')
        .select('purchase_id')
        .where('tenant', '=', tenant)
        .where('ean', 'in', ['-', ...eansOf(ean)])
        .where('purchase_id', '>=', range.from)
        .where('purchase_id', '<', range.below)
        .orderBy('purchase_id', 'desc')
        .limit(LINES_OF_EAN),
    )
  for (const add of narrow) query = add(query)
  if (awaitingApproval && userId !== undefined) query = query.where('user_id', '=', userId)
  // Not plain columns: their indexes have not the rows that the page looks at.
  if (totalCent !== undefined && (awaitingApproval || userId !== undefined || isNarrow))
    query = query.where(sql<number>`total_cent + 0`, '=', totalCent)
  if (day !== undefined)
    query = query
      .where(sql<number>`completed_ms + 0`, '>=', startOfDay(day))
      .where(sql<number>`completed_ms + 0`, '<', startOfDay(addDays(day, 1)))
  if (storeIds !== undefined && !isByStore) query = query.where(sql<string>`store_id || ''`, 'in', listed(storeIds))
  return query
}

/** A list for SQL, which must not be empty. */
const listed = (storeIds: readonly string[] = []) => (storeIds.length > 0 ? [...storeIds] : ['-'])

function upTo(query: Purchases, end: string | undefined): Purchases {
  return end === undefined ? query : query.where('purchase_id', '>=', end)
}

/** True if each purchase in the order of one index is one that the search finds. */
function isByIndexAlone({ filter, storeIds, isByStore }: Search): boolean {
  const { day, userId, totalCent, awaitingApproval } = filter
  const fields = [userId, totalCent, awaitingApproval].filter((field) => field !== undefined)
  return day === undefined && fields.length <= 1 && (storeIds === undefined || (isByStore && storeIds.length === 1))
}

/** Last purchase that a page looks at; undefined if it looks at all. */
async function endOfPage(
  db: Db,
  search: Search,
  { limit, offset }: { limit: number; offset: number },
  after: string | undefined,
): Promise<string | undefined> {
  if (search.isNarrow || isByIndexAlone(search)) return undefined
  const parts = search.isByStore ? listed(search.storeIds).map((id) => ({ ...search, storeIds: [id] })) : [search]
  const share = Math.max(offset + limit + 1, Math.floor(LOOKED_AT / parts.length))
  const ends: string[] = []
  for (const part of parts) {
    const looked = indexed(db, part, after).select('purchase_id').orderBy('purchase_id', 'desc')
    const end = await looked
      .offset(share - 1)
      .limit(1)
      .executeTakeFirst()
    if (end) ends.push(end.purchase_id)
  }
  return ends.length === 0 ? undefined : ends.reduce((a, b) => (a > b ? a : b))
}

/** Purchases of the sales of tills with this number, or with this code on their receipt. */
export function salesOfTills(
  db: Db,
  storeId: string,
  { saleId, receiptCode }: { saleId: string | undefined; receiptCode: string | undefined },
) {
  const sales = db
    .selectFrom('till_sale')
    .select('till_sale.purchase_id')
    .where('till_sale.purchase_id', 'is not', null)
  const numbered = saleId === undefined ? sales : sales.where('till_sale.sale_id', '=', saleId)
  if (receiptCode === undefined) return numbered.where('till_sale.store_id', '=', storeId)
  return numbered
    .innerJoin('receipt_code', 'receipt_code.sale_key', 'till_sale.sale_key')
    .where('receipt_code.store_id', '=', storeId)
    .where('receipt_code.code', '=', receiptCodeHash(storeId, receiptCode))
}

/** Range of the ids of the purchases that a page may contain. Ids begin with their time, so it bounds each search. */
function rangeOf(day: string | undefined, after: string | undefined): { from: string; below: string } {
  const [from, below] =
    day === undefined
      ? ['pur_', 'pur_9'] // Above all ids in each collation: the first digit of an id is at most 7.
      : [
          firstIdAt('pur', startOfDay(day) - OPEN_DAYS * DAY_MS),
          firstIdAt('pur', startOfDay(addDays(day, 1)) + ID_GUARD_MS),
        ]
  return { from, below: after !== undefined && after < below ? after : below }
}

/** Ids of the items with this EPC, tag UID or printed number; an id that no item has if there are none. */
async function itemsOfTag(db: Db, tenant: string, tag: string): Promise<string[]> {
  const found = new Set<string>()
  for (const kind of ['epc', 'tagUid', 'tagId']) {
    const normal = normaliseIdentifiers({ [kind]: tag })
    const item = normal.ok ? await findItem(db, tenant, normal.identifiers) : undefined
    if (item) found.add(item.item_id)
  }
  return found.size > 0 ? [...found] : ['-']
}

async function withLines(call: Call, purchases: readonly Row<'purchase'>[]): Promise<WholePurchase[]> {
  if (purchases.length === 0) return []
  const ids = purchases.map((purchase) => purchase.purchase_id)
  const lines = new Map<string, Row<'purchase_line'>[]>(ids.map((id) => [id, []]))
  const rows = await call.db
    .selectFrom('purchase_line')
    .selectAll()
    .where('purchase_id', 'in', ids)
    .orderBy('purchase_id')
    .orderBy('line_no')
    .execute()
  for (const line of rows) lines.get(line.purchase_id)?.push(line)
  const refunds = await refundsOfMany(call.db, ids)
  const stores = new Map(
    await Promise.all(
      [...new Set(purchases.map((p) => p.store_id))].map(async (id) => [id, await findStore(call.db, id)] as const),
    ),
  )
  return purchases.flatMap((purchase) => {
    const store = stores.get(purchase.store_id)
    return store
      ? [
          {
            purchase,
            store,
            lines: lines.get(purchase.purchase_id) ?? [],
            refunds: refunds.get(purchase.purchase_id) ?? [],
          },
        ]
      : []
  })
}

const DEFAULT_PAGE = 20
const OLDER_DEFAULT_PAGE = 50
/** What a customer without a receipt brings or remembers. */
const SEARCH_FIELDS = {
  ean: ProductCodeText.optional().describe(
    'Purchases with this product, of its newest 20,000 sales. The EAN in any form.',
  ),
  tag: scanned(128).optional().describe('Purchases of the tagged item: its EPC, tag UID or printed number.'),
  number: z
    .string()
    .regex(/^[0-9A-HJKMNP-TV-Z]{6,26}$/i, 'must be the last 6 to 26 characters of a number')
    .optional()
    .describe('Last characters of the number of the purchase, as lists show them.'),
  saleId: text(64)
    .optional()
    .describe('Sales of tills with this number on their receipt (recordSales). Needs `storeId`.'),
  receiptCode: scanned(128)
    .optional()
    .describe(
      'Sales of tills that printed this code on their receipt (`receiptCodes` of recordSales). Needs `storeId`.',
    ),
  receipt: scanned(4_096)
    .optional()
    .describe('The purchase of this receipt: what its QR code contains, or its token. Receipts of agents count, too.'),
  day: Day.optional().describe('Purchases that were paid on this day, in the time zone of the store.'),
}
const TotalCent = z
  .int()
  .min(0)
  .describe('Purchases with this total. Without `day`, `ean` or `tag`, searches the last 30 days.')
const Paging = { total: z.int(), totalIsEstimate: z.literal(true).optional(), nextCursor: z.string().optional() }

export const fetchPurchaseHistory = operation({
  name: 'fetchPurchaseHistory',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Lists purchases, the newest first.',
  description:
    'All purchases, or only those of one store or one shopper. To find a purchase without its number, send `ean` or ' +
    '`tag` of the goods, the end of its number, its `receipt`, a code that its till printed, or `day` and `totalCent`. Omits QR codes of receipts; `fetchPurchase` ' +
    'returns them. A page looks at 20,000 purchases and may have fewer than `limit`: continue while there is a `nextCursor`.',
  changes: false,
  request: z.strictObject({
    storeId: Id.optional(),
    userId: text(128).optional(),
    awaitingApproval: z.literal(true).optional().describe('Only baskets that await `approveCheckout`.'),
    ...SEARCH_FIELDS,
    totalCent: TotalCent.optional(),
    limit: Limit.optional(),
    offset: Offset.optional(),
    cursor: cursorField('pur').optional(),
  }),
  response: z.strictObject({ ...Success, purchases: z.array(Purchase), ...Paging }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', limit: 20 },
  get: legacyForm({
    request: z.strictObject({
      storeId: Id.optional(),
      userId: text(128).optional(),
      awaitingApproval: z
        .literal('true')
        .transform(() => true as const)
        .optional(),
      ...SEARCH_FIELDS,
      totalCent: QueryNumber.pipe(TotalCent).optional(),
      limit: QueryNumber.pipe(Limit).optional(),
      offset: QueryNumber.pipe(Offset).optional(),
      cursor: cursorField('pur').optional(),
    }),
    response: z.strictObject({ ...Success, data: z.array(TransactionData), ...Paging }),
    async run(call, input) {
      const { purchases, ...rest } = await readHistory(call, input, OLDER_DEFAULT_PAGE)
      return { success: true as const, data: purchases.map((whole) => toTransactionData(whole, call, 'list')), ...rest }
    },
  }),
  async run(call, input) {
    const { purchases, ...rest } = await readHistory(call, input, DEFAULT_PAGE)
    return { success: true as const, purchases: purchases.map((whole) => toPurchase(whole, call, 'list')), ...rest }
  },
})
