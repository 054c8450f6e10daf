import { z } from 'zod'
import { notFound, invalid, Failure } from '../../platform/foundation/failure.ts'
import { Euros, Id, Success, Timestamp, scanned, text, ProductCodeText } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { RawJson } from '../../platform/operations/raw-json.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { assertAcceptable, eanWarning, eansOf } from './ean.ts'
import {
  namedProduct,
  eanOfRequest,
  eanToStore,
  endCounting,
  findDocument,
  findProduct,
  listingsIn,
  soldElsewhere,
  findSharedProduct,
  priceColumns,
  changedRow,
  newProductRow,
  sharedColumns,
} from './queries.ts'
import { toProduct, pricedAt } from './render.ts'
import {
  BARCODE_FIELDS,
  checkOldPrice,
  Product,
  PRODUCT_CHANGES,
  PRODUCT_FIELDS,
  PRODUCT_NAMES,
  type ProductChanges,
  type ProductInput,
} from './schema.ts'
import { removeListing, writeProducts, addNewProduct, type PriceInStore } from './write-products.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import { assert } from '../../../policy/assert.ts'
import { newId } from '../../../policy/ids.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { hashOfBytes } from '../../platform/operations/idempotency.ts'

/** Stores the small picture of an image. Agents find it by the address of the image, which products name. */
export async function storePicture(db: Db, imageUrl: string, bytes: Uint8Array): Promise<void> {
  const row = { image_url: imageUrl, hash: hashOfBytes(bytes), bytes: Buffer.from(bytes).toString('base64url') }
  await db
    .insertInto('product_picture')
    .values(row)
    .onConflict((c) => c.column('image_url').doUpdateSet({ hash: row.hash, bytes: row.bytes }))
    .execute()
}

/** Returns the small pictures with these hashes, base64url. Leaves out unknown hashes. */
export async function picturesByHash(db: Db, hashes: readonly string[]): Promise<string[]> {
  if (hashes.length === 0) return []
  const rows = await db
    .selectFrom('product_picture')
    .select(['hash', 'bytes'])
    .distinct()
    .where('hash', 'in', hashes)
    .execute()
  return rows.map(({ bytes }) => bytes)
}

/** Sets the image of a product in all stores that sell it. */
export async function setProductImage(
  db: Db,
  tenant: string,
  productId: string,
  imageUrl: string,
  nowMs: number,
): Promise<void> {
  const before = await findSharedProduct(db, tenant, { productId })
  if (!before) return
  const after = changedRow(before, { image_url: imageUrl, media_snapshot: imageUrl }, nowMs)
  if (after === before) return
  await writeProducts(db, [{ before, after, here: undefined, listing: undefined }])
}

/** Result of `insertIntoStore`. */
interface InsertedProduct {
  product: Product
  /** Fields of the request that were ignored, because other stores already sell the product with different values. */
  ignored: string[]
}

/**
 * Adds a product to a store. Throws 409 if the store already sells the product. If other stores sell the product, only
 * the price of the input is used.
 */
async function insertIntoStore(
  call: Call,
  store: Row<'store'>,
  input: ProductInput & { ean: string },
): Promise<InsertedProduct> {
  const { price_cent = 0, old_price_cent = null } = priceColumns(input)
  const listing = { store_id: store.store_id, price_cent, old_price_cent, updated_ms: call.nowMs }
  const made = { tenant: store.tenant, ean: input.ean, nowMs: call.nowMs }
  const added = newProductRow(input, { productId: newId('prd', call.services.platform), ...made })
  const isNew = await addNewProduct(call.db, added, listing)
  const after = isNew ? added : await listSharedProduct(call, added, listing)
  const product = toProduct(pricedAt(after, { product_id: after.product_id, ...listing }))
  return { product, ignored: Object.keys(input).filter((name) => differs(input, product, name)) }
}

/**
 * Adds a product of the account to a store. `stated`: the row to write if the product is no longer sold in any store.
 */
async function listSharedProduct(call: Call, stated: Row<'product'>, listing: PriceInStore): Promise<Row<'product'>> {
  call.requireAlone()
  const { tenant, ean } = stated
  const before = await findSharedProduct(call.db, tenant, { ean })
  assert(before !== undefined, `product ${ean} is neither there nor new`)
  const { product_id, created_ms } = before
  if ((await listingsIn(call.db, listing.store_id, [product_id])).has(product_id))
    throw new Failure('already-exists', `the store already sells a product with the ean ${ean}: use updateProduct`, {
      reason: 'product_exists',
    })
  const isSold = (await soldElsewhere(call.db, listing.store_id, [product_id])).has(product_id)
  const after = isSold ? before : { ...stated, product_id, created_ms }
  await writeProducts(call.db, [{ before, after, here: undefined, listing }])
  return after
}

function differs(input: object, product: Product, name: string): boolean {
  const stated = (input as Record<string, unknown>)[name]
  return (
    stated !== undefined &&
    name in PRODUCT_FIELDS &&
    JSON.stringify(stated) !== JSON.stringify((product as Record<string, unknown>)[name])
  )
}

/** Throws 400 if the old price is below the price. */
function assertOldPrice(priceCent: number, oldPriceCent: number | null): void {
  if (oldPriceCent !== null && oldPriceCent < priceCent) throw invalid('oldPrice', 'must not be below price')
}

/** Prices that a change states. A price at or above the stored old price removes the old price. */
function newPrices(stated: Partial<ProductChanges>, here: PriceInStore | undefined) {
  const prices = priceColumns(stated)
  if (!here) return prices
  const { price_cent = here.price_cent, old_price_cent } = prices
  if (old_price_cent !== undefined) assertOldPrice(price_cent, old_price_cent)
  const isOver = old_price_cent === undefined && here.old_price_cent !== null && here.old_price_cent <= price_cent
  return isOver && prices.price_cent !== undefined ? { ...prices, old_price_cent: null } : prices
}

/** Changes a product that the store sells: `price` and `oldPrice` in this store, other fields in all stores. */
async function changeProduct(
  call: Call,
  store: Row<'store'>,
  before: Row<'product'>,
  stated: Partial<ProductChanges>,
): Promise<void> {
  const { product_id } = before
  const here = (await listingsIn(call.db, store.store_id, [product_id])).get(product_id)
  const prices = newPrices(stated, here)
  const isAlone = here !== undefined && !(await soldElsewhere(call.db, store.store_id, [product_id])).has(product_id)
  const after = changedRow(before, { ...sharedColumns(stated), ...(isAlone && prices) }, call.nowMs)
  const isNewPrice =
    here !== undefined && Object.entries(prices).some(([name, value]) => here[name as keyof typeof prices] !== value)
  const listing = here && (isNewPrice ? { ...here, ...prices, updated_ms: call.nowMs } : here)
  if (after === before && !isNewPrice) return
  await writeProducts(call.db, [{ before, after, here, listing }])
}

/**
 * Fields that the system sets. `updateProduct` accepts them if they are unchanged, so that clients can edit a response
 * and send it back (ADR requests).
 */
const SYSTEM_FIELDS = {
  success: z.literal(true).optional(),
  ean: ProductCodeText.optional(),
  barcode: ProductCodeText.optional(),
  media: z
    .strictObject({ snapshot: scanned(2_048) })
    .nullable()
    .optional(),
  fromPos: z.boolean().optional(),
  posProductId: text(128).nullable().optional(),
  nameLower: text(240).optional(),
  brandLower: text(240).nullable().optional(),
  createdAt: Timestamp.optional(),
  updatedAt: Timestamp.optional(),
}

const SAME_TIME = new Set(['createdAt', 'updatedAt'])

type Sent = z.output<z.ZodObject<Omit<typeof SYSTEM_FIELDS, 'ean' | 'barcode'>>>

/** Removes the system fields from a request. Throws 400 if one of these fields differs from the product. */
function settableFields<T extends Sent>(
  sent: T,
  eans: { ean?: string | undefined; barcode?: string | undefined },
  product: Product,
): Omit<T, keyof Sent> {
  const {
    success: _success,
    media,
    fromPos,
    posProductId,
    nameLower,
    brandLower,
    createdAt,
    updatedAt,
    ...fields
  } = sent
  const system = { media, fromPos, posProductId, nameLower, brandLower, createdAt, updatedAt }
  for (const [name, value] of Object.entries(system)) {
    if (value === undefined) continue
    const is = product[name as keyof typeof system] ?? null
    const isSame = SAME_TIME.has(name)
      ? Date.parse(String(value)) === Date.parse(String(is))
      : JSON.stringify(value) === JSON.stringify(is)
    if (!isSame) throw invalid(name, 'is set by the system and cannot be changed', 'system_field')
  }
  if ((eans.ean ?? eans.barcode) !== undefined && !eansOf(eanOfRequest(eans)).includes(product.ean)) {
    throw invalid(
      'ean',
      'cannot be changed, because the EAN identifies the product. Insert a new product instead',
      'system_field',
    )
  }
  return fields
}

const EXAMPLE_STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B'
const EXAMPLE_PRODUCT = 'prd_01KANX6Y7C3V9Q2M8R5T4W6Z1B'

const ProductAnswer = Product.extend(Success)

/** Returns the document of a product. */
async function answerProduct(call: Call, storeId: string, productId: string) {
  const document = await findDocument(call.db, storeId, productId)
  if (!document) throw notFound('product')
  return new RawJson<z.input<typeof ProductAnswer>>(document.doc)
}

/** Finds a product of the account that this store sells; 404 otherwise. */
async function productOfStore(
  call: Call,
  storeId: string,
  names: Parameters<typeof namedProduct>[1],
): Promise<Row<'product'>> {
  await ownStore(call, storeId)
  const product = await namedProduct(call, names)
  if (!(await findDocument(call.db, storeId, product.product_id))) throw notFound('product')
  return product
}

export const insertProduct = operation({
  name: 'insertProduct',
  together: 'catalogue',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Adds one product to a store.',
  description:
    'The EAN identifies a product. If another store of the account sells it, the product keeps its `productId` ' +
    'and fields, and only the price of this store is added. If this store sells it, the operation fails with ' +
    '409 `already-exists`. A UPC needs the account setting `acceptUpc`. A wrong check digit only causes an entry in `warnings`.',
  changes: true,
  emits: ['product.created'],
  request: z.strictObject({ storeId: Id, ...BARCODE_FIELDS, ...PRODUCT_FIELDS }).superRefine(checkOldPrice),
  response: ProductAnswer.extend({ warnings: z.array(z.string()).optional() }),
  example: {
    storeId: EXAMPLE_STORE,
    ean: '4012345678901',
    name: 'Hafermilch 1 l',
    price: 1.99,
    vat: 7,
    brand: 'Lindwerk',
    category: 'Getränke',
  },
  async run(call, { storeId, ...input }) {
    const store = await ownStore(call, storeId)
    const ean = await eanToStore(call.db, store.tenant, eanOfRequest(input))
    await assertAcceptable(call.db, store.tenant, ean)
    const { product, ignored } = await insertIntoStore(call, store, { ...input, ean })
    call.changed(product.productId)
    call.emit({
      type: 'product.created',
      storeId,
      data: { productId: product.productId, storeId, ean, name: product.name, price: product.price },
    })
    const warnings = ignored.map(
      (name) =>
        `${name} was not changed, because other stores sell this product too; use updateProduct to change it for ` +
        'all',
    )
    const wrongDigit = eanWarning(ean)
    if (wrongDigit !== undefined) warnings.unshift(wrongDigit)
    return { success: true as const, ...product, ...(warnings.length > 0 && { warnings }) }
  },
})

export const updateProduct = operation({
  name: 'updateProduct',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Changes a product.',
  description:
    '`price` and `oldPrice` apply to this store, all other fields to the product in every store. Lists and the search ' +
    'of other stores follow within seconds. Omitted fields ' +
    'keep their values; null clears an optional field. A new `price` above the stored `oldPrice` removes that. The global price follows the store price while only one ' +
    'store sells the product. You may send back fields that the system sets if they are unchanged.',
  changes: true,
  request: z
    .strictObject({ storeId: Id, ...PRODUCT_NAMES, ...PRODUCT_CHANGES, ...SYSTEM_FIELDS })
    .superRefine(checkOldPrice),
  response: ProductAnswer,
  example: { productId: EXAMPLE_PRODUCT, storeId: EXAMPLE_STORE, price: 1.79, oldPrice: 1.99 },
  async run(call, { storeId, productId, id, ean, barcode, ...input }) {
    const store = await ownStore(call, storeId)
    const names = productId === undefined && id === undefined ? { ean, barcode } : { productId, id }
    const product = await productOfStore(call, storeId, names)
    const priced = await findProduct(call.db, store.tenant, { productId: product.product_id }, storeId)
    if (!priced) throw notFound('product')
    await changeProduct(call, store, product, settableFields(input, { ean, barcode }, toProduct(priced)))
    call.changed(product.product_id)
    return answerProduct(call, storeId, product.product_id)
  },
})

export const registerProductToStore = operation({
  name: 'registerProductToStore',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Adds a product of the account to another store, or sets the price at which a store sells it.',
  description:
    '`oldPrice` is the former price in this store. Without `price` a new store gets the global price, and a store that already sells the product keeps its ' +
    'price.',
  changes: true,
  request: z
    .strictObject({
      storeId: Id,
      ...PRODUCT_NAMES,
      price: Euros.optional(),
      oldPrice: Euros.nullable().optional().describe('The price before, in this store; null removes it.'),
    })
    .superRefine(checkOldPrice),
  response: ProductAnswer,
  example: { productId: EXAMPLE_PRODUCT, storeId: EXAMPLE_STORE, price: 1.89 },
  async run(call, { storeId, price, oldPrice, ...names }) {
    const store = await ownStore(call, storeId)
    const product = await namedProduct(call, names)
    if ((await listingsIn(call.db, storeId, [product.product_id])).has(product.product_id)) {
      await changeProduct(call, store, product, { price, oldPrice })
    } else {
      const { price_cent = product.price_cent, old_price_cent: stated } = priceColumns({ price, oldPrice })
      const old_price_cent = stated === undefined ? (price === undefined ? product.old_price_cent : null) : stated
      assertOldPrice(price_cent, old_price_cent)
      const listing = { store_id: storeId, price_cent, old_price_cent, updated_ms: call.nowMs }
      await writeProducts(call.db, [{ before: product, after: product, here: undefined, listing }])
    }
    call.changed(product.product_id)
    return answerProduct(call, storeId, product.product_id)
  },
})

export const removeProductFromStore = operation({
  name: 'removeProductFromStore',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Removes a product from a store.',
  description:
    'Other stores and past purchases keep the product. If you insert it again, it gets the same `productId`. ' +
    'The stock of this store is no longer counted.',
  changes: true,
  request: z.strictObject({ storeId: Id, ...PRODUCT_NAMES }),
  response: z.strictObject(Success),
  example: { productId: EXAMPLE_PRODUCT, storeId: EXAMPLE_STORE },
  async run(call, { storeId, ...names }) {
    const product = await productOfStore(call, storeId, names)
    await removeListing(call.db, storeId, product.product_id)
    await endCounting(call.db, storeId, product.product_id, call.nowMs)
    call.changed(product.product_id)
    return { success: true as const }
  },
})
