import { eanOfGtin14, toGtin14 } from '../../../policy/gs1/gtin.ts'
import { parseEpc } from '../../../policy/gs1/epc.ts'
import {
  normaliseIdentifiers,
  type ItemIdentifierInput,
  type ItemIdentifiers,
} from '../../../policy/item-identifiers.ts'
import { dayOf } from '../../shop/analytics/store-days.ts'
import { whyUnknown } from '../../shop/catalogue/ean.ts'
import { scannedProducts, type Scanned } from '../../shop/catalogue/scanned-product.ts'
import { findProduct } from '../../shop/catalogue/queries.ts'
import type { PricedProduct } from '../../shop/catalogue/schema.ts'
import { UNIT_FIELDS, unitDataOf, type UnitData } from '../../shop/catalogue/render.ts'
import { invalid, precondition, type ErrorDetail, Failure } from '../../platform/foundation/failure.ts'
import { offerPrices } from '../../shop/offers/offer-products.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { recallsIn } from '../../protection/items/recalls.ts'
import { ITEM_UNKNOWN, itemsWith } from '../../protection/items/item-queries.ts'
import { depositOf, type Deposit } from '../../shop/purchases/line-value.ts'
import { isTest } from '../../shop/purchases/present.ts'
import type { CheckoutLine, PriceOrigin, PriceReason } from '../../shop/purchases/schema.ts'
import { weighedCent, weighedLine, type WeighedLine } from './weighed-line.ts'
import type { KnownCaller } from '../../platform/foundation/caller.ts'

/**
 * Priced line of a basket with the items that it names (ADR sales). A line with a product (from `ean`, `productId` or
 * its items) has a price of the catalogue, an offer or a scale's label. A line with items without a product has the
 * registered price of these items. Any other line has the price that the client sent. A line with `priceReason` has the
 * price that the till sent.
 */
export interface PricedLine {
  name: string
  priceCent: number
  /** Price of the store, if a till set another price; else null. */
  listPriceCent: number | null
  priceReason: PriceReason | null
  quantity: number
  vat: 7 | 19
  ean: string | null
  productId: string | null
  category: string | null
  brand: string | null
  serialNumber: string | null
  priceOrigin: PriceOrigin
  /** True if the units of the line carry tags in stores that use tags. */
  tagged: boolean
  /** True if staff must check the buyer's age. */
  requiresHumanVerification: boolean
  /** Deposit for one piece. */
  deposit?: Deposit | undefined
  /** Set if a scale priced the goods. */
  weighed?: WeighedLine | undefined
  items: Row<'protected_item'>[]
  /** What the line states or its items share. */
  unit: UnitData
}

/** Prices that a till sets with `priceReason`, and coupons (ADR sales). */

/** Only the merchant's own systems sell at another price than the store's (ADR sales). */
export function assertMaySetPrices(lines: readonly CheckoutLine[], { kind }: KnownCaller): void {
  const n = lines.findIndex((line) => line.priceReason !== undefined)
  if (kind === 'secret' || n < 0) return
  throw new Failure('permission-denied', `items[${n}].priceReason: only secret keys can set the price of a line`, {
    reason: 'secret_keys_only',
  })
}

/** Replaces the price of the store by the price of the till, and keeps it as the list price. */
function setPrice({ priceReason, priceUnit }: CheckoutLine, line: PricedLine | undefined): void {
  if (!line || priceReason === undefined || priceUnit === undefined) return
  line.listPriceCent = line.priceOrigin === 'client' ? null : line.priceCent
  line.priceCent = priceUnit
  line.priceReason = priceReason
  line.priceOrigin = 'client'
  // The label's price of a kilogram no longer explains the price of the line.
  if (line.weighed) line.weighed.kgPriceCent = null
}

/** Throws 400 if coupons exceed the goods of a VAT rate: the tax of this rate would be negative. */
function assertNotNegative(lines: readonly PricedLine[]): void {
  for (const rate of [7, 19]) {
    const goods = lines.reduce((sum, line) => sum + (line.vat === rate ? line.priceCent * line.quantity : 0), 0)
    const deposits = lines.reduce(
      (sum, { deposit, quantity }) => sum + (deposit?.vat === rate ? deposit.cent * quantity : 0),
      0,
    )
    if (goods + deposits < 0)
      throw invalid('items', `the coupons exceed the goods with ${rate} % VAT: lower the coupons`, 'coupon_too_high')
  }
}

/** Throws 400 if the price of a line contradicts its other fields. */
function assertPriceFields(line: CheckoutLine, path: string): void {
  const { priceUnit, priceReason, ean, productId, tagIds, epcs, tagUids, serialNumber, lot, expiry, serial } = line
  if (priceReason !== undefined && priceUnit === undefined)
    throw invalid(`${path}.priceUnit`, 'is required with priceReason', 'missing')
  if (priceUnit === undefined || priceUnit >= 0) return
  if (priceReason !== 'coupon') throw invalid(`${path}.priceUnit`, 'may be negative only with priceReason "coupon"')
  const goods = [ean, productId, tagIds, epcs, tagUids, serialNumber, lot, expiry, serial]
  if (goods.some((field) => field !== undefined))
    throw invalid(path, 'is a coupon and sells nothing: remove EAN, product and tags')
}

/** Returns the path of an item in the request. */
type WhereOf = (item: Row<'protected_item'>) => string

/** Products and items of all lines. */
interface Known {
  /** False for a shopper's app: goods of the catalogue keep their names, which staff compare with the goods. */
  mayRename: boolean
  scanned: (barcode: string) => Promise<Scanned | undefined>
  item: (identifiers: ItemIdentifiers) => Row<'protected_item'> | undefined
}

/** Prices all lines. Throws 409 with all price differences, so that an app can show them. */
export async function priceLines(
  db: Db,
  store: Row<'store'>,
  lines: readonly CheckoutLine[],
  nowMs: number,
  mayRename = true,
): Promise<PricedLine[]> {
  const named = new Map<string, string>()
  const priced: PricedLine[] = []
  for (const [i, line] of lines.entries()) assertTagsFit(line, `items[${i}]`)
  const known: Known = {
    mayRename,
    scanned: await scannedProducts(
      db,
      store,
      lines.flatMap(({ ean }) => ean ?? []),
    ),
    item: await itemsWith(db, store.tenant, lines),
  }
  for (const [i, line] of lines.entries()) {
    const path = `items[${i}]`
    assertPriceFields(line, path)
    const items = namedItems(known, store, line, path, named)
    const whereOf: WhereOf = (item) => named.get(item.item_id) ?? path
    const result = await priceLine(db, known, store, line, items, path, whereOf)
    priced.push({ unit: unitOfLine(line, items, nowMs, path, whereOf), ...result })
  }
  assertNotExpired(priced, dayOf(nowMs), named)
  await assertNotRecalled(db, store, priced, named)
  await applyOffers(db, store, priced, nowMs)
  for (const [i, line] of lines.entries()) setPrice(line, priced[i])
  assertNotNegative(priced)
  const differences: ErrorDetail[] = []
  for (const [i, line] of lines.entries()) {
    const path = `items[${i}]`
    const result = priced[i]
    if (
      result &&
      line.priceReason === undefined &&
      line.priceUnit !== undefined &&
      line.priceUnit !== result.priceCent
    ) {
      differences.push({
        path: `${path}.priceUnit`,
        code: 'price_changed',
        message: `${path}: the price is ${result.priceCent} cents, not ${line.priceUnit}`,
      })
    }
  }
  if (differences.length > 0)
    throw precondition(
      'price_changed',
      'some prices differ from those of the store: show them to the shopper and start the checkout again',
      { details: differences },
    )
  return priced
}

/** Throws 400 if a list of tags names more items than the line has, so that few tags are looked up. */
function assertTagsFit({ epcs = [], tagUids = [], tagIds = [], quantity }: CheckoutLine, path: string): void {
  const count = Math.max(epcs.length, tagUids.length, tagIds.length)
  if (count > quantity) throw tooManyItems(path, count, quantity)
}

function tooManyItems(path: string, count: number, quantity: number): Failure {
  return invalid(path, `names ${count} items but has a quantity of ${quantity}`, 'too_many_items')
}

/** Applies the active offers. Keeps a catalogue price that is below the offer price. */
async function applyOffers(db: Db, store: Row<'store'>, priced: PricedLine[], nowMs: number): Promise<void> {
  if (isTest(store.tenant)) return // the sandbox does not store offers
  const eans = new Set(priced.flatMap((line) => (line.priceOrigin === 'catalogue' ? (line.ean ?? []) : [])))
  const prices = await offerPrices(db, store.store_id, [...eans], nowMs)
  for (const line of priced) {
    const price = line.priceOrigin === 'catalogue' && line.ean !== null ? prices.get(line.ean) : undefined
    if (price === undefined) continue
    if (!line.weighed) line.priceCent = Math.min(line.priceCent, price)
    else if (line.weighed.kgPriceCent !== null) {
      line.weighed.kgPriceCent = Math.min(line.weighed.kgPriceCent, price)
      line.priceCent = weighedCent(line.weighed)
    }
  }
}

/**
 * Finds the registered items that a line names. Throws 400 if one of these items is unknown or named twice, and 409 if
 * an item is not sellable.
 */
function namedItems(
  known: Known,
  store: Row<'store'>,
  line: CheckoutLine,
  path: string,
  named: Map<string, string>,
): Row<'protected_item'>[] {
  const names = [
    ...(line.epcs ?? []).map((epc, i) => ({ path: `${path}.epcs[${i}]`, input: { epc } })),
    ...(line.tagUids ?? []).map((tagUid, i) => ({ path: `${path}.tagUids[${i}]`, input: { tagUid } })),
    ...(line.tagIds ?? []).map((tagId, i) => ({ path: `${path}.tagIds[${i}]`, input: { tagId } })),
  ] satisfies { path: string; input: ItemIdentifierInput }[]
  const items = new Map<string, Row<'protected_item'>>()
  for (const { path: where, input } of names) {
    const normal = normaliseIdentifiers(input)
    if (!normal.ok) throw invalid(where, normal.message)
    const key = JSON.stringify(normal.identifiers)
    if (named.has(key)) throw invalid(where, `is named twice, also in ${named.get(key)}`, 'repeated')
    named.set(key, where)
    const item = known.item(normal.identifiers)
    if (item?.store_id !== store.store_id) throw invalid(where, ITEM_UNKNOWN, 'item_unknown')
    // A line may name one item by several identifiers. These identifiers stand for one unit.
    const earlier = named.get(item.item_id)
    if (earlier !== undefined && !items.has(item.item_id))
      throw invalid(where, `names the same item as ${earlier}`, 'repeated')
    named.set(item.item_id, where)
    items.set(item.item_id, item)
  }
  if (items.size > line.quantity) throw tooManyItems(path, items.size, line.quantity)
  for (const item of items.values()) {
    if (item.item_status !== 'sellable')
      throw refused('item_not_sellable', [{ where: named.get(item.item_id) ?? path, why: `is ${item.item_status}` }])
  }
  return [...items.values()]
}

async function priceLine(
  db: Db,
  known: Known,
  store: Row<'store'>,
  line: CheckoutLine,
  items: readonly Row<'protected_item'>[],
  path: string,
  whereOf: WhereOf,
): Promise<Omit<PricedLine, 'unit'>> {
  const scanned = await productOfLine(db, known, store, line, path)
  const product = scanned?.product ?? (await productOfItems(db, store, items, whereOf))
  const common = {
    quantity: line.quantity,
    serialNumber: line.serialNumber ?? null,
    listPriceCent: null,
    priceReason: null,
    items: [...items],
  }
  if (product) {
    assertAreOf(product, items, whereOf)
    const weighed = weighedLine(store, product, scanned?.label, line, path)
    return {
      name: (known.mayRename ? line.name : undefined) ?? product.name,
      priceCent: weighed ? weighedCent(weighed) : product.price_cent,
      vat: product.vat as 7 | 19,
      ean: product.ean,
      productId: product.product_id,
      category: product.category,
      brand: product.brand,
      priceOrigin: 'catalogue',
      tagged: product.tagged === 1 && !weighed,
      requiresHumanVerification: product.requires_human_verification === 1,
      deposit: depositOf(product),
      weighed,
      ...common,
    }
  }
  const own = registeredPrice(items, whereOf)
  const [first] = items
  if (line.name === undefined)
    throw invalid(`${path}.name`, 'is required, because the server does not know this product', 'missing')
  if (line.vat === undefined)
    throw invalid(`${path}.vat`, 'is required, because the server does not know this product', 'missing')
  const priceCent = own ?? line.priceUnit
  if (priceCent === undefined)
    throw invalid(`${path}.priceUnit`, 'is required, because the server does not know this product', 'missing')
  return {
    ...common,
    name: line.name,
    priceCent,
    vat: line.vat,
    // The GTIN of an SGTIN, so that a recall finds the line although the catalogue lacks its product.
    ean: items.every((item) => item.ean === first?.ean) ? (first?.ean ?? null) : null,
    productId: null,
    category: first?.category ?? null,
    brand: first?.brand ?? null,
    priceOrigin: own === undefined ? 'client' : 'item',
    tagged: priceCent >= 0,
    requiresHumanVerification: false,
  }
}

async function productOfLine(
  db: Db,
  known: Known,
  store: Row<'store'>,
  line: CheckoutLine,
  path: string,
): Promise<Scanned | undefined> {
  const scanned = line.ean === undefined ? undefined : await known.scanned(line.ean)
  if (line.ean !== undefined && line.productId === undefined && !scanned)
    throw invalid(
      `${path}.ean`,
      `is not in the catalogue of this store${await whyUnknown(db, store.tenant, line.ean)}`,
      'product_unknown',
    )
  if (line.productId === undefined) return scanned
  const product = await findProduct(db, store.tenant, { productId: line.productId }, store.store_id)
  if (!product) throw invalid(`${path}.productId`, 'is not in the catalogue of this store', 'product_unknown')
  if (line.ean !== undefined && scanned?.product.product_id !== product.product_id)
    throw invalid(`${path}.ean`, 'names another product than productId')
  return scanned ?? { product }
}

/**
 * Returns the product of the named items. Returns undefined if no item is registered with a product. Throws 409 if the
 * items have different products.
 */
async function productOfItems(
  db: Db,
  store: Row<'store'>,
  items: readonly Row<'protected_item'>[],
  whereOf: WhereOf,
): Promise<PricedProduct | undefined> {
  const productId = items.find((item) => item.product_id !== null)?.product_id
  if (!productId) return undefined
  const others = items.filter((item) => item.product_id !== productId)
  if (others.length > 0)
    throw refused(
      'item_mismatch',
      others.map((item) => ({ where: whereOf(item), why: 'has another product than the first item of its line' })),
    )
  return findProduct(db, store.tenant, { productId }, store.store_id)
}

/**
 * Throws 409 if the SGTIN or the registration of an item names another product, or if neither names a product. Without
 * this check, the payment of a cheap line could release any item.
 */
function assertAreOf(product: PricedProduct, items: readonly Row<'protected_item'>[], whereOf: WhereOf): void {
  const wrong = items.flatMap((item) => {
    const why = mismatchOf(product, item)
    return why === undefined ? [] : [{ where: whereOf(item), why: `is not a ${product.name} (${product.ean}): ${why}` }]
  })
  if (wrong.length > 0) throw refused('item_mismatch', wrong)
}

function mismatchOf(product: PricedProduct, item: Row<'protected_item'>): string | undefined {
  const gtin = item.epc === null ? undefined : parseEpc(item.epc)?.gtin14
  if (gtin !== undefined && gtin !== toGtin14(product.ean)) return `its SGTIN contains ${eanOfGtin14(gtin) ?? gtin}`
  if (item.product_id !== null && item.product_id !== product.product_id)
    return `it is registered as ${item.ean ?? 'another product'}`
  return item.product_id === null && gtin === undefined ? 'it is registered without a product' : undefined
}

/** Registered price of the items; undefined if the items have no price. Throws 409 if the prices differ. */
function registeredPrice(items: readonly Row<'protected_item'>[], whereOf: WhereOf): number | undefined {
  const price = items[0]?.price_cent
  const others = items.filter((item) => item.price_cent !== price)
  if (others.length > 0)
    throw refused(
      'item_mismatch',
      others.map((item) => ({ where: whereOf(item), why: 'has another price than the first item of its line' })),
    )
  return price ?? undefined
}

/**
 * Lot, expiry and serial of a line: what it states, or what all its items are registered with. Throws 409 if an item is
 * registered with another value than the line states.
 */
function unitOfLine(
  { lot, expiry, serial, ean }: CheckoutLine,
  items: readonly Row<'protected_item'>[],
  nowMs: number,
  path: string,
  whereOf: WhereOf,
): UnitData {
  const unit: { -readonly [field in keyof UnitData]: UnitData[field] } = {
    ...unitDataOf({ lot, expiry, serial, ean }, nowMs, `${path}.`),
  }
  for (const field of UNIT_FIELDS) {
    const value = unit[field]
    const shared = items[0]?.[field]
    const wrong = items.filter((item) => value !== undefined && item[field] !== null && item[field] !== value)
    if (wrong.length > 0)
      throw refused(
        'item_mismatch',
        wrong.map((item) => ({
          where: whereOf(item),
          why: `is registered with the ${field} "${item[field]}", not "${value}"`,
        })),
      )
    if (value === undefined && shared && items.every((item) => item[field] === shared)) unit[field] = shared
  }
  return unit
}

/** Throws 409 if a line or one of its items has an expiry before today. */
function assertNotExpired(priced: readonly PricedLine[], today: string, named: ReadonlyMap<string, string>): void {
  const why = (expiry: string) => `expired on ${expiry}: sell another piece, and take this one off the shelf`
  const expired = priced.flatMap(({ items, unit }, i) => {
    const own = items.flatMap(({ item_id, expiry }) =>
      expiry !== null && expiry < today ? [{ where: named.get(item_id) ?? `items[${i}]`, why: why(expiry) }] : [],
    )
    if (own.length > 0 || unit.expiry === undefined || unit.expiry >= today) return own
    return [{ where: `items[${i}]`, why: why(unit.expiry) }]
  })
  if (expired.length > 0) throw refused('expired', expired)
}

/** Throws 409 if a recall stops a line or one of its items. */
async function assertNotRecalled(
  db: Db,
  store: Row<'store'>,
  priced: readonly PricedLine[],
  named: ReadonlyMap<string, string>,
): Promise<void> {
  const recalls = await recallsIn(db, store)
  const stopped: string[] = []
  for (const [i, { items, unit, ean, quantity }] of priced.entries()) {
    const line = { ean, ...unit }
    const own = items.filter((item) => recalls.stop({ item, line }))
    stopped.push(...own.map(({ item_id }) => named.get(item_id) ?? `items[${i}]`))
    if (items.length < quantity && recalls.stop({ line })) stopped.push(`items[${i}]`)
  }
  if (stopped.length === 0) return
  throw refused(
    'recalled',
    stopped.map((where) => ({ where, why: 'is recalled: do not sell it, and set it aside' })),
  )
}

/** Builds a 409. The error names each item by its path in the request, so that an app can show the wrong tag. */
function refused(
  reason: 'item_mismatch' | 'item_not_sellable' | 'expired' | 'recalled',
  items: readonly { where: string; why: string }[],
): Failure {
  const details = items.map(({ where, why }): ErrorDetail => ({
    path: where,
    code: reason,
    message: `${where}: ${why}`,
  }))
  return precondition(
    reason,
    details
      .map((detail) => detail.message)
      .slice(0, 3)
      .join('; '),
    { details },
  )
}
