import type { Db } from '../../platform/persistence/database.ts'
import { prepared, preparedForMany } from '../../platform/persistence/prepared.ts'
import { eansOf, comparableCode, whyUnknown } from './ean.ts'
import type { Page } from '../../platform/operations/paging.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { NO_FIELDS, setFieldColumns } from './product-fields.ts'
import { documentOf, type NumberedListing } from './render.ts'
import type { PricedProduct, ProductChanges, ProductInput } from './schema.ts'
import { centsOf } from '../../platform/operations/fields.ts'
import { knownCaller } from '../../platform/foundation/caller.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'

/** Origin of a product that a POS sync wrote: the product's id in the POS. */
export interface PosOrigin {
  posProductId: string | null
}

/** Returns the columns for the product fields that are the same in all stores. Omits fields that are undefined. */
export function sharedColumns(stated: SharedFields): Partial<Row<'product'>> {
  const columns: Partial<Row<'product'>> = {}
  setSharedColumns(columns, stated)
  return columns
}

type SharedFields = Omit<ProductChanges, 'price' | 'oldPrice'>

function setSharedColumns(row: Partial<Row<'product'>>, stated: SharedFields): void {
  const { name, vat, brand, tagged, flags } = stated
  const isAgeChecked = flags?.requiresHumanVerification
  if (name !== undefined) {
    row.name = name
    row.name_lower = name.toLowerCase()
  }
  if (vat !== undefined) row.vat = vat
  setFieldColumns(row, stated)
  if (brand !== undefined) row.brand_lower = brand?.toLowerCase() ?? null
  if (tagged !== undefined) row.tagged = Number(tagged)
  if (isAgeChecked !== undefined) row.requires_human_verification = Number(isAgeChecked)
}

/** Converts prices from EUR to cents. Omits prices that are undefined. */
export function priceColumns({
  price,
  oldPrice,
}: Pick<ProductChanges, 'price' | 'oldPrice'>): Partial<Pick<Row<'product'>, 'price_cent' | 'old_price_cent'>> {
  return {
    ...(price !== undefined && { price_cent: centsOf(price) }),
    ...(oldPrice !== undefined && { old_price_cent: oldPrice === null ? null : centsOf(oldPrice) }),
  }
}

/** Columns that mark a product as written by a POS sync; no columns for other products. */
export function originColumns(pos: PosOrigin | undefined): Partial<Row<'product'>> {
  return pos ? { from_pos: 1, pos_product_id: pos.posProductId } : {}
}

/** Fields that a POS sync clears with null. */
type Clearable = 'oldPrice' | 'deposit' | 'depositVat'
/** Input of a new product. */
export type NewProduct = Omit<ProductInput, 'barcode' | Clearable> & Pick<ProductChanges, Clearable>

/** Builds the row of a new product. */
export function newProductRow(
  input: NewProduct,
  made: { productId: string; tenant: string; ean: string; nowMs: number; pos?: PosOrigin | undefined },
): Row<'product'> {
  const { price_cent = 0, old_price_cent: stated = null } = priceColumns(input)
  // A till may state an old price that is not above the price.
  const old_price_cent = stated !== null && stated < price_cent ? null : stated
  const row: Row<'product'> = {
    product_id: made.productId,
    tenant: made.tenant,
    ean: made.ean,
    name: input.name,
    name_lower: '',
    vat: input.vat,
    price_cent,
    old_price_cent,
    brand_lower: null,
    media_snapshot: null,
    tagged: 1,
    requires_human_verification: 0,
    from_pos: made.pos ? 1 : 0,
    pos_product_id: made.pos?.posProductId ?? null,
    created_ms: made.nowMs,
    updated_ms: made.nowMs,
    ...NO_FIELDS,
  }
  setSharedColumns(row, input)
  return row
}

/** Merges columns into a product row. Returns `before` itself if nothing changes. */
export function changedRow(before: Row<'product'>, columns: Partial<Row<'product'>>, nowMs: number): Row<'product'> {
  const isSame = Object.entries(columns).every(([name, value]) => before[name as keyof Row<'product'>] === value)
  return isSame ? before : { ...before, ...columns, updated_ms: nowMs }
}

/** Products of a store at the store's prices. */
function storeProducts(db: Db) {
  return db
    .selectFrom('store_product')
    .innerJoin('product', 'product.product_id', 'store_product.product_id')
    .selectAll('product')
    .select([
      'store_product.store_id as store_id',
      'store_product.price_cent as price_cent',
      'store_product.old_price_cent as old_price_cent',
      'store_product.updated_ms as priced_ms',
    ])
}

/** Stored JSON response of a product in a store. */
export interface ProductDocument {
  product_id: string
  doc: string
}

interface PageParameters {
  storeId: string
  after: string
  limit: number
  offset: number
}

function documentPage(db: Db, p: PageParameters) {
  return db
    .selectFrom('store_product')
    .select(['product_id', 'doc'])
    .where('store_id', '=', p.storeId)
    .where('product_id', '>', p.after)
    .orderBy('product_id')
    .limit(p.limit)
    .offset(p.offset)
}
const pageOfAll = prepared((db, p: PageParameters) => documentPage(db, p))
const pageOfCategory = prepared((db, p: PageParameters & { category: string }) =>
  documentPage(db, p).where('category', '=', p.category),
)

/** A page of the store's products, sorted by id, which is the order of creation. `category`: folded. */
export function listDocuments(
  db: Db,
  storeId: string,
  { after = '', limit, offset }: Page,
  category?: string,
): Promise<ProductDocument[]> {
  const page = { storeId, after, limit, offset }
  return category === undefined ? pageOfAll(db, page) : pageOfCategory(db, { ...page, category })
}

/** Documents. `pending` is not null while a job writes a change of the product to its documents. */
function documents(db: Db) {
  return db
    .selectFrom('store_product')
    .leftJoin('listing_refresh', 'listing_refresh.product_id', 'store_product.product_id')
    .select(['store_product.product_id', 'store_product.doc', 'listing_refresh.product_id as pending'])
}

const oneDocument = prepared((db, p: { storeId: string; productId: string }) =>
  documents(db).where('store_product.store_id', '=', p.storeId).where('store_product.product_id', '=', p.productId),
)

/** The document of a product, as new as its row; undefined if the store does not sell the product. */
export async function findDocument(db: Db, storeId: string, productId: string): Promise<ProductDocument | undefined> {
  const [row] = await oneDocument(db, { storeId, productId })
  return row && renewed(db, storeId, row)
}

async function renewed(
  db: Db,
  storeId: string,
  { product_id, doc, pending }: ProductDocument & { pending: string | null },
): Promise<ProductDocument | undefined> {
  if (pending === null) return { product_id, doc }
  const [row] = await inStoreById(db, { storeId, productId: product_id })
  return row && { product_id, doc: documentOf(row) }
}

const oneDocumentByEan = prepared((db, p: { storeId: string; tenant: string; ean: string }) =>
  documents(db)
    .innerJoin('product', 'product.product_id', 'store_product.product_id')
    .where('store_product.store_id', '=', p.storeId)
    .where('product.tenant', '=', p.tenant)
    .where('product.ean', '=', p.ean),
)

/** Like `findDocument`, by the EAN in any form. */
export async function findDocumentByEan(
  db: Db,
  { store_id: storeId, tenant }: Pick<Row<'store'>, 'store_id' | 'tenant'>,
  code: string,
): Promise<ProductDocument | undefined> {
  const [row] = await firstOf(code, (ean) => oneDocumentByEan(db, { storeId, tenant, ean }))
  return row && renewed(db, storeId, row)
}

const countIn = prepared((db, p: { storeId: string; category: string }) =>
  db
    .selectFrom('product_count')
    .select((eb) => eb.fn.sum<number | null>('products').as('products'))
    .where('store_id', '=', p.storeId)
    .where('category', '=', p.category),
)

/** Exact number of products of a store, or of one folded category. Each write of a product updates this stored number. */
export async function countProducts(db: Db, storeId: string, category = ''): Promise<number> {
  const [row] = await countIn(db, { storeId, category })
  return row?.products ?? 0
}

const inStoreById = prepared((db, p: { storeId: string; productId: string }) =>
  storeProducts(db).where('store_product.store_id', '=', p.storeId).where('store_product.product_id', '=', p.productId),
)
const inStoreByEan = prepared((db, p: { storeId: string; tenant: string; ean: string }) =>
  storeProducts(db)
    .where('store_product.store_id', '=', p.storeId)
    .where('product.tenant', '=', p.tenant)
    .where('product.ean', '=', p.ean),
)
const inStoreByEans = preparedForMany((db, eans, p: { storeId: string; tenant: string }) =>
  storeProducts(db)
    .where('store_product.store_id', '=', p.storeId)
    .where('product.tenant', '=', p.tenant)
    .where('product.ean', 'in', eans),
)
const globalById = prepared((db, p: { tenant: string; productId: string }) =>
  db.selectFrom('product').selectAll().where('tenant', '=', p.tenant).where('product_id', '=', p.productId),
)
const globalByEan = prepared((db, p: { tenant: string; ean: string }) =>
  db.selectFrom('product').selectAll().where('tenant', '=', p.tenant).where('ean', '=', p.ean),
)

/**
 * Finds a product by id, or by its EAN in any form that `readProductCode` reads. With `storeId`, finds the product only if this store sells the product, and returns the
 * store's price.
 */
export async function findProduct(
  db: Db,
  tenant: string,
  by: { productId: string } | { ean: string },
  storeId?: string,
): Promise<PricedProduct | undefined> {
  if (storeId !== undefined) {
    const [row] =
      'productId' in by
        ? await inStoreById(db, { storeId, productId: by.productId })
        : await firstOf(by.ean, (ean) => inStoreByEan(db, { storeId, tenant, ean }))
    return row?.tenant === tenant ? row : undefined
  }
  const row = await findSharedProduct(db, tenant, by)
  return row && { ...row, store_id: null, priced_ms: 0 }
}

/** Finds a product that a store sells, by its EAN in any form. */
export type FindByEan = (code: string) => Promise<PricedProduct | undefined>

/** Reads the products that a store sells under these codes with one query. Returns a function that finds them. */
export async function storeProductsWith(
  db: Db,
  { tenant, store_id: storeId }: Pick<Row<'store'>, 'tenant' | 'store_id'>,
  codes: readonly string[],
): Promise<FindByEan> {
  const rows = await inStoreByEans(db, codes.flatMap(eansOf), { storeId, tenant })
  const byEan = new Map(rows.map((row) => [row.ean, row]))
  return (code) => {
    const ean = eansOf(code).find((each) => byEan.has(each))
    return Promise.resolve(ean === undefined ? undefined : byEan.get(ean))
  }
}

/** Finds a product with its global price. */
export async function findSharedProduct(
  db: Db,
  tenant: string,
  by: { productId: string } | { ean: string },
): Promise<Row<'product'> | undefined> {
  const [row] =
    'productId' in by
      ? await globalById(db, { tenant, productId: by.productId })
      : await firstOf(by.ean, (ean) => globalByEan(db, { tenant, ean }))
  return row
}

/** Rows of the likeliest EAN of a code that has any. */
async function firstOf<R>(code: string, find: (ean: string) => Promise<R[]>): Promise<R[]> {
  for (const ean of eansOf(code)) {
    const rows = await find(ean)
    if (rows.length > 0) return rows
  }
  return []
}

/**
 * Products by stored EAN; at most 500 EANs. Eight digits that may be a UPC-E find its UPC-A if that is the only product.
 */
export async function findByEans(
  db: Db,
  tenant: string,
  eans: readonly string[],
): Promise<Map<string, Row<'product'>>> {
  if (eans.length === 0) return new Map()
  const readings = eans.map((ean) => [ean, eansOf(ean)] as const)
  const rows = await db
    .selectFrom('product')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('ean', 'in', [...new Set(readings.flatMap(([, forms]) => forms))])
    .execute()
  const byEan = new Map(rows.map((row) => [row.ean, row]))
  return new Map(
    readings.flatMap(([ean, forms]) => {
      const row = forms.map((form) => byEan.get(form)).find((each) => each !== undefined)
      return row ? [[ean, row] as const] : []
    }),
  )
}

/** The EAN under which a request stores a product: another reading if only that is a product, see `findByEans`. */
export async function eanToStore(db: Db, tenant: string, ean: string): Promise<string> {
  if (eansOf(ean).length < 2) return ean
  return (await findSharedProduct(db, tenant, { ean }))?.ean ?? ean
}

/** A listing with the terms and the category for which it is found. */
export type StoredListing = NumberedListing & Pick<Row<'store_product'>, 'words' | 'category'>

function storedListings(db: Db) {
  return db
    .selectFrom('store_product')
    .select(['store_id', 'product_id', 'price_cent', 'old_price_cent', 'updated_ms', 'listing_no'])
    .select(['words', 'category'])
}

/** Listings of these products (at most 500) in one store, by product id. */
export async function listingsIn(
  db: Db,
  storeId: string,
  productIds: readonly string[],
): Promise<Map<string, StoredListing>> {
  if (productIds.length === 0) return new Map()
  const rows = await storedListings(db).where('store_id', '=', storeId).where('product_id', 'in', productIds).execute()
  return new Map(rows.map((row) => [row.product_id, row]))
}

/** At most `limit` listings of these products (at most 500) in the stores after `afterStore`, by product and store. */
export async function listingsAfter(
  db: Db,
  productIds: readonly string[],
  afterStore: string,
  limit: number,
): Promise<StoredListing[]> {
  if (productIds.length === 0) return []
  return storedListings(db)
    .where('product_id', 'in', productIds)
    .where('store_id', '>', afterStore)
    .orderBy('product_id')
    .orderBy('store_id')
    .limit(limit)
    .execute()
}

/** Those of these products (at most 500) that a store other than this one sells. */
export async function soldElsewhere(db: Db, storeId: string, productIds: readonly string[]): Promise<Set<string>> {
  if (productIds.length === 0) return new Set()
  const rows = await db
    .selectFrom('product')
    .select('product_id')
    .where('product_id', 'in', productIds)
    .where(({ exists, selectFrom }) =>
      exists(
        selectFrom('store_product')
          .select('store_product.store_id')
          .whereRef('store_product.product_id', '=', 'product.product_id')
          .where('store_product.store_id', '<>', storeId),
      ),
    )
    .execute()
  return new Set(rows.map((row) => row.product_id))
}

/**
 * Stops counting the stock of a product that the store no longer sells. Otherwise the old number would apply again if
 * the store later sells the product again.
 */
export async function endCounting(db: Db, storeId: string, productId: string, updated_ms: number): Promise<void> {
  await db
    .updateTable('stock_level')
    .set({ on_hand: null, updated_ms })
    .where('store_id', '=', storeId)
    .where('product_id', '=', productId)
    .execute()
}

interface ProductNames {
  productId?: string | undefined
  id?: string | undefined
  barcode?: string | undefined
  ean?: string | undefined
}

/** Returns `ean` or its synonym `barcode`. Throws 400 if both fields are missing or name different codes. */
export function eanOfRequest({ ean, barcode }: Pick<ProductNames, 'ean' | 'barcode'>): string {
  const stated = agreedCode({ ean, barcode })
  if (stated === undefined) throw invalid('ean', 'is missing', 'missing')
  return stated
}

/**
 * Finds a product of the account by productId, id, ean or barcode (ADR requests, ADR catalogue). Returns the product with its global
 * price.
 *
 * Throws 400 if the request has no identifier, or if two identifiers differ. Throws 404 if the product is unknown, or
 * if none of the stores of the caller's API key sells it.
 */
export async function namedProduct(call: Call, names: ProductNames): Promise<Row<'product'>> {
  const caller = knownCaller(call.caller)
  const productId = agreedValue('productId', names.productId, names.id)
  const code = agreedCode(names)
  if (productId === undefined && code === undefined)
    throw invalid('productId', 'is missing: name the product by productId or barcode', 'missing')
  const bound = caller.kind === 'agent' ? [caller.storeId] : caller.storeIds
  const find = async (name: { ean: string } | { productId: string }) => {
    const product = await findSharedProduct(call.db, caller.tenant, name)
    return product && (bound === null || (await isSoldIn(call.db, product.product_id, bound))) ? product : undefined
  }
  const byEan = code === undefined ? undefined : await find({ ean: code })
  const product = productId === undefined ? byEan : await find({ productId })
  if (!product || (code !== undefined && !byEan))
    throw notFound(`product${code === undefined ? '' : await whyUnknown(call.db, caller.tenant, code)}`)
  if (byEan && byEan.product_id !== product.product_id) throw invalid('ean', 'names another product than productId')
  return product
}

/** The code of `ean` or `barcode`; 400 if they are different codes. */
function agreedCode({ ean, barcode }: Pick<ProductNames, 'ean' | 'barcode'>): string | undefined {
  if (ean !== undefined && barcode !== undefined && comparableCode(ean) === comparableCode(barcode)) return ean
  return agreedValue('ean', ean, barcode)
}

function agreedValue(field: string, a: string | undefined, b: string | undefined): string | undefined {
  if (a !== undefined && b !== undefined && a !== b) throw invalid(field, 'is sent twice with different values')
  return a ?? b
}

/** True if at least one of these stores sells the product. */
export async function isSoldIn(db: Db, productId: string, storeIds: readonly string[]): Promise<boolean> {
  if (storeIds.length === 0) return false
  const row = await db
    .selectFrom('store_product')
    .select('product_id')
    .where('product_id', '=', productId)
    .where('store_id', 'in', [...storeIds])
    .executeTakeFirst()
  return row !== undefined
}
