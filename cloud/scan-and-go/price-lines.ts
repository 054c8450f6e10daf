import { eanOfGtin14, toGtin14 } from '../../policy/gs1/gtin.ts'
import { parseEpc } from '../../policy/gs1/epc.ts'
import { normaliseIdentifiers, type ItemIdentifierInput } from '../../policy/item-identifiers.ts'
import { scannedProduct, type Scanned } from '../catalogue/scanned-product.ts'
import { findProduct } from '../catalogue/queries.ts'
import type { PricedProduct } from '../catalogue/schema.ts'
import { invalid, precondition, type ErrorDetail, type Failure } from '../foundation/failure.ts'
import { offerPrices } from '../offers/offer-prices.ts'
import type { Db } from '../persistence/database.ts'
import type { ProtectedItemRow } from '../persistence/tables/protection.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { findItem } from '../protection/items/item-queries.ts'
import { depositOf, type Deposit } from '../purchases/deposit.ts'
import { isTest } from '../purchases/present.ts'
import type { CheckoutLine, PriceOrigin } from '../purchases/schema.ts'
import { weighedCent, weighedLine, type WeighedLine } from './weighed-line.ts'

/**
 * Priced line of a basket with the items that it names (ADR 0008). A line with a product (from `ean`, `productId` or
 * its items) has a price of the catalogue, an offer or a scale's label. A line with items without a product has the
 * registered price of these items. Any other line has the price that the client sent.
 */
export interface PricedLine {
  name: string
  priceCent: number
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
  items: ProtectedItemRow[]
}

/** Returns the path of an item in the request. */
type WhereOf = (item: ProtectedItemRow) => string

/** Prices all lines. Throws 409 with all price differences, so that an app can show them. */
export async function priceLines(
  db: Db,
  store: StoreRow,
  lines: readonly CheckoutLine[],
  nowMs: number,
): Promise<PricedLine[]> {
  const named = new Map<string, string>()
  const priced: PricedLine[] = []
  for (const [i, line] of lines.entries()) {
    const path = `items[${i}]`
    const items = await namedItems(db, store, line, path, named)
    priced.push(await priceLine(db, store, line, items, path, (item) => named.get(item.item_id) ?? path))
  }
  await applyOffers(db, store, priced, nowMs)
  const differences: ErrorDetail[] = []
  for (const [i, line] of lines.entries()) {
    const path = `items[${i}]`
    const result = priced[i]
    if (result && line.priceUnit !== undefined && line.priceUnit !== result.priceCent) {
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

/** Applies the active offers. Keeps a catalogue price that is below the offer price. */
async function applyOffers(db: Db, store: StoreRow, priced: PricedLine[], nowMs: number): Promise<void> {
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
async function namedItems(
  db: Db,
  store: StoreRow,
  line: CheckoutLine,
  path: string,
  named: Map<string, string>,
): Promise<ProtectedItemRow[]> {
  const names = [
    ...(line.epcs ?? []).map((epc, i) => ({ path: `${path}.epcs[${i}]`, input: { epc } })),
    ...(line.tagUids ?? []).map((tagUid, i) => ({ path: `${path}.tagUids[${i}]`, input: { tagUid } })),
    ...(line.tagIds ?? []).map((tagId, i) => ({ path: `${path}.tagIds[${i}]`, input: { tagId } })),
  ] satisfies { path: string; input: ItemIdentifierInput }[]
  const items = new Map<string, ProtectedItemRow>()
  for (const { path: where, input } of names) {
    const normal = normaliseIdentifiers(input)
    if (!normal.ok) throw invalid(where, normal.message)
    const key = JSON.stringify(normal.identifiers)
    if (named.has(key)) throw invalid(where, `is named twice, also in ${named.get(key)}`, 'repeated')
    named.set(key, where)
    const item = await findItem(db, store.tenant, normal.identifiers)
    if (item?.store_id !== store.store_id) throw invalid(where, 'is not registered in this store', 'item_unknown')
    // A line may name one item by several identifiers. These identifiers stand for one unit.
    const earlier = named.get(item.item_id)
    if (earlier !== undefined && !items.has(item.item_id))
      throw invalid(where, `names the same item as ${earlier}`, 'repeated')
    named.set(item.item_id, where)
    items.set(item.item_id, item)
  }
  if (items.size > line.quantity)
    throw invalid(path, `names ${items.size} items but has a quantity of ${line.quantity}`, 'too_many_items')
  for (const item of items.values()) {
    if (item.item_status !== 'sellable')
      throw refused('item_not_sellable', [{ where: named.get(item.item_id) ?? path, why: `is ${item.item_status}` }])
  }
  return [...items.values()]
}

async function priceLine(
  db: Db,
  store: StoreRow,
  line: CheckoutLine,
  items: readonly ProtectedItemRow[],
  path: string,
  whereOf: WhereOf,
): Promise<PricedLine> {
  const scanned = await productOfLine(db, store, line, path)
  const product = scanned?.product ?? (await productOfItems(db, store, items, whereOf))
  const common = { quantity: line.quantity, serialNumber: line.serialNumber ?? null, items: [...items] }
  if (product) {
    assertAreOf(product, items, whereOf)
    const weighed = weighedLine(store, product, scanned?.label, line, path)
    return {
      ...common,
      name: line.name ?? product.name,
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
    ean: null,
    productId: null,
    category: first?.category ?? null,
    brand: first?.brand ?? null,
    priceOrigin: own === undefined ? 'client' : 'item',
    tagged: true,
    requiresHumanVerification: false,
  }
}

async function productOfLine(db: Db, store: StoreRow, line: CheckoutLine, path: string): Promise<Scanned | undefined> {
  const scanned = line.ean === undefined ? undefined : await scannedProduct(db, store, line.ean)
  if (line.ean !== undefined && line.productId === undefined && !scanned)
    throw invalid(`${path}.ean`, 'is not in the catalogue of this store', 'product_unknown')
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
  store: StoreRow,
  items: readonly ProtectedItemRow[],
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
function assertAreOf(product: PricedProduct, items: readonly ProtectedItemRow[], whereOf: WhereOf): void {
  const wrong = items.flatMap((item) => {
    const why = mismatchOf(product, item)
    return why === undefined ? [] : [{ where: whereOf(item), why: `is not a ${product.name} (${product.ean}): ${why}` }]
  })
  if (wrong.length > 0) throw refused('item_mismatch', wrong)
}

function mismatchOf(product: PricedProduct, item: ProtectedItemRow): string | undefined {
  const gtin = item.epc === null ? undefined : parseEpc(item.epc)?.gtin14
  if (gtin !== undefined && gtin !== toGtin14(product.ean)) return `its SGTIN contains ${eanOfGtin14(gtin) ?? gtin}`
  if (item.product_id !== null && item.product_id !== product.product_id)
    return `it is registered as ${item.ean ?? 'another product'}`
  return item.product_id === null && gtin === undefined ? 'it is registered without a product' : undefined
}

/** Registered price of the items; undefined if the items have no price. Throws 409 if the prices differ. */
function registeredPrice(items: readonly ProtectedItemRow[], whereOf: WhereOf): number | undefined {
  const price = items[0]?.price_cent
  const others = items.filter((item) => item.price_cent !== price)
  if (others.length > 0)
    throw refused(
      'item_mismatch',
      others.map((item) => ({ where: whereOf(item), why: 'has another price than the first item of its line' })),
    )
  return price ?? undefined
}

/** Builds a 409. The error names each item by its path in the request, so that an app can show the wrong tag. */
function refused(
  reason: 'item_mismatch' | 'item_not_sellable',
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
