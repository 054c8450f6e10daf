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
import { sql } from 'kysely'
import { firstIdAt } from '../../../policy/ids.ts'
import { claimedReceipts } from '../../../policy/receipts/receipt-token.ts'
import { receiptCodeHash } from '../../../policy/till-sale.ts'
import { normaliseIdentifiers } from '../../../policy/item-identifiers.ts'
import { Day } from '../../shop/analytics/schema.ts'
import { addDays, startOfDay } from '../../shop/analytics/store-days.ts'
import { eansOf } from '../../shop/catalogue/ean.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { invalid } from '../../platform/foundation/failure.ts'
import { findItem } from '../../protection/items/item-queries.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { findStore } from '../../platform/stores/queries.ts'
import { refundsOfMany } from '../../shop/purchases/refund-queries.ts'

/** Maximum exact total. Larger totals are estimates, because counting would cost more than reading the page. */
const EXACT_TOTAL = 10_000
const DAY_MS = 86_400_000
/** Days in which a purchase is found by the end of its number, and by its total alone. */
const NUMBER_DAYS = 90
const TOTAL_DAYS = 30
/** Days between the first checkout and the payment of a purchase that `day` finds. */
const OPEN_DAYS = 30
/** Clocks of several processes may differ by this time, ms. */
const ID_GUARD_MS = 3_600_000
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
  const matching = await purchasesOf(call, filter)
  const older = page.after === undefined ? matching : await purchasesOf(call, filter, page.after)
  const rows = await older
    .selectAll()
    .orderBy('purchase_id', 'desc')
    .limit(page.limit + 1)
    .offset(page.offset)
    .execute()
  const { items, nextCursor } = await toPageWithinLines(call.db, 'purchase_line', rows, page)
  const counted = await call.db
    .selectFrom(
      matching
        .select('purchase_id')
        .limit(EXACT_TOTAL + 1)
        .as('matching'),
    )
    .select((eb) => eb.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  const total = Number(counted.count)
  return {
    purchases: await withLines(call, items),
    total: Math.min(total, EXACT_TOTAL),
    ...(total > EXACT_TOTAL && { totalIsEstimate: true as const }),
    ...(nextCursor !== undefined && { nextCursor }),
  }
}

/**
 * Selects purchases, perhaps only older ones than `after`. Without `storeId`, selects the purchases of all stores that the
 * caller may see (ADR requests).
 */
async function purchasesOf(call: Call, filter: HistoryFilter, after?: string) {
  const { storeId, userId, awaitingApproval, ean, tag, day, number, saleId, receiptCode, receipt, totalCent } = filter
  const since = (days: number) => firstIdAt('pur', call.nowMs - days * DAY_MS)
  const caller = knownCaller(call.caller)
  const own = caller.kind === 'agent' ? [caller.storeId] : caller.storeIds
  const [only] = storeId === undefined ? (own?.length === 1 ? own : []) : [(await ownStore(call, storeId)).store_id]
  let query = call.db.selectFrom('purchase')
  // A small store of a large account is found by its own index, not by that of the account.
  if (only === undefined || userId !== undefined || totalCent !== undefined || awaitingApproval)
    query = query.where('tenant', '=', caller.tenant)
  else query = query.where(sql<string>`tenant || ''`, '=', caller.tenant)
  if (after !== undefined) query = query.where('purchase_id', '<', after)
  if (userId !== undefined) query = query.where('user_id', '=', userId)
  if (awaitingApproval) query = query.where(IS_AWAITING).where('status', '=', 'CREATED')
  const range = rangeOf(filter.day, after)
  if (ean !== undefined)
    query = query.where('purchase_id', 'in', (eb) =>
      eb
        .selectFrom('purchase_line')
        .select('purchase_id')
        .where('tenant', '=', caller.tenant)
        .where('ean', 'in', ['-', ...eansOf(ean)])
        .where('purchase_id', '>=', range.from)
        .where('purchase_id', '<', range.below)
        .orderBy('purchase_id', 'desc')
        .limit(LINES_OF_EAN),
    )
  if (tag !== undefined) {
    const itemIds = await itemsOfTag(call.db, caller.tenant, tag)
    query = query.where('purchase_id', 'in', (eb) =>
      eb.selectFrom('purchase_unit').select('purchase_id').where('item_id', 'in', itemIds),
    )
  }
  if (saleId !== undefined || receiptCode !== undefined) {
    const field = saleId === undefined ? 'receiptCode' : 'saleId'
    if (storeId === undefined) throw invalid('storeId', `is required with ${field}`, 'missing')
    const { store_id: ownId } = await ownStore(call, storeId)
    query = query.where('purchase_id', 'in', salesOfTills(call.db, ownId, { saleId, receiptCode }))
  }
  // No signature is checked: an expired receipt names its purchase, too, and the answer grants nothing.
  if (receipt !== undefined) query = query.where('cti', 'in', ['-', ...claimedReceipts(receipt).map(({ cti }) => cti)])
  if (day !== undefined)
    query = query
      .where('completed_ms', '>=', startOfDay(day))
      .where('completed_ms', '<', startOfDay(addDays(day, 1)))
      .where('purchase_id', '>=', range.from)
      .where('purchase_id', '<', range.below)
  // No index has the end of a number or the total, so that time limits the search.
  if (number !== undefined)
    query = query
      .where('purchase_id', '>=', since(NUMBER_DAYS))
      .where('purchase_id', 'like', `%${number.toUpperCase()}`)
  if (totalCent !== undefined) {
    query = query.where('total_cent', '=', totalCent)
    const isNarrow = [day, ean, tag, saleId, receiptCode, receipt].some((named) => named !== undefined)
    if (!isNarrow) query = query.where('purchase_id', '>=', since(TOTAL_DAYS))
  }
  if (only !== undefined) return query.where('store_id', '=', only)
  return own === null ? query : query.where('store_id', 'in', own.length > 0 ? [...own] : ['-'])
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
      ? ['pur_', 'pur_~']
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
    .describe('Last characters of the number of the purchase, as lists show them. Searches the last 90 days.'),
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
    'returns them.',
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
