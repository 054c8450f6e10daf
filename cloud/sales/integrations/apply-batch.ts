import { foldText } from '../../../policy/fold-text.ts'
import { acceptsUpc, Ean } from '../../shop/catalogue/ean.ts'
import { fieldsStoredAs } from '../../shop/catalogue/product-fields.ts'
import { findByEans, findProduct, listingsIn } from '../../shop/catalogue/queries.ts'
import { upsertProducts, type Upsert, checkRow, refuseUpc, rowErrors } from '../../shop/catalogue/upsert-products.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { insertChunks } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { setLevels } from '../../shop/stock/queries.ts'
import { type BatchCounts, type SyncError, printable } from './connection.ts'
import { upsertErpRecords } from './queries.ts'
import type { DataType } from './connector.ts'
import { asPrice, asVat } from '../../shop/catalogue/import/read-products.ts'
import { CLEARED_BY_NULL } from './mapping.ts'
import { z } from 'zod'
import { text } from '../../platform/operations/fields.ts'
import { validate } from '../../platform/operations/validation.ts'
import { Failure } from '../../platform/foundation/failure.ts'

/** Converts ERP records to our form. Systems send numbers for texts and texts for numbers. */

const QUANTITY_LIMIT = 1_000_000_000
const shortText = (max: number) =>
  z.preprocess((value) => (typeof value === 'number' ? String(value) : value), text(max))
const amount = z.preprocess(
  (value) =>
    typeof value === 'string' && /^-?\d+(?:[.,]\d+)?$/.test(value.trim())
      ? Number(value.trim().replace(',', '.'))
      : value,
  z.number(),
)
const Code = z.preprocess((value) => (typeof value === 'number' ? value.toFixed(0) : value), Ean)

/** Whole pieces: negative stock becomes 0, fractions are rounded down. */
const Quantity = amount
  .pipe(z.number().min(-QUANTITY_LIMIT).max(QUANTITY_LIMIT))
  .transform((pieces) => Math.max(0, Math.floor(pieces)))

const Stock = z.object({
  ean: Code.optional(),
  barcode: Code.optional(),
  productId: shortText(128).optional(),
  quantity: Quantity,
})

const Line = z.object({
  ean: shortText(40).optional(),
  name: shortText(300).optional(),
  externalProductId: shortText(128).optional(),
  quantity: amount.optional(),
  unitPrice: amount.optional(),
})

/** A purchase order of goods that are expected. */
const Order = z.object({
  externalId: shortText(128),
  number: shortText(128).optional(),
  status: shortText(60).optional(),
  supplierId: shortText(128).optional(),
  orderedAt: shortText(40).optional(),
  expectedAt: shortText(40).optional(),
  total: amount.optional(),
  currency: shortText(3).optional(),
  lines: z.array(Line).max(1_000).optional(),
})

const Supplier = z.object({
  externalId: shortText(128),
  name: shortText(300),
  email: shortText(320).optional(),
  phone: shortText(60).optional(),
  address: z
    .union([shortText(500), z.record(z.string().max(60), z.union([z.string().max(300), z.number(), z.null()]))])
    .optional(),
  countryCode: shortText(60).optional(),
  vatId: shortText(60).optional(),
})

interface StockRecord {
  readonly name: { ean: string } | { productId: string }
  readonly quantity: number
}

/** A record of an ERP system, stored unchanged. */
interface ErpDocument {
  readonly externalId: string
  readonly doc: object
}

type Read<T> = { record: T } | { errors: SyncError[] }

/** Validates a mapped stock record, or lists its errors. */
export function readStock(record: unknown, index: number): Read<StockRecord> {
  return read('stock', Stock, record, index, ({ ean, barcode, productId, quantity }) => {
    const stated = ean ?? barcode
    if (stated !== undefined) return { name: { ean: stated }, quantity }
    return productId === undefined ? undefined : { name: { productId }, quantity }
  })
}

/** Validates a mapped order or supplier, or lists its errors. */
export function readErpDocument(dataType: 'orders' | 'suppliers', record: unknown, index: number): Read<ErpDocument> {
  const schema: z.ZodType<{ externalId: string }> = dataType === 'orders' ? Order : Supplier
  return read(dataType, schema, record, index, (doc) => ({ externalId: doc.externalId, doc }))
}

function read<T, R>(
  dataType: string,
  schema: z.ZodType<T>,
  record: unknown,
  index: number,
  make: (read: T) => R | undefined,
): Read<R> {
  const stated = typeof record === 'object' && record !== null ? (record as Record<string, unknown>) : {}
  const at = {
    dataType,
    index,
    ean: printable(stated['ean'] ?? stated['barcode']),
    externalId: printable(stated['externalId'] ?? stated['externalProductId']),
  }
  try {
    const present = Object.fromEntries(Object.entries(stated).filter(([, value]) => value !== null && value !== ''))
    const made = make(validate(schema, present))
    return made === undefined
      ? {
          errors: [
            {
              ...at,
              field: 'ean',
              code: 'missing',
              message: 'ean is missing: send ean, barcode or productId to identify the product',
            },
          ],
        }
      : { record: made }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return {
      errors: (error.extras.details ?? [])
        .slice(0, 5)
        .map(({ path, code, message }) => ({ ...at, field: path, code, message })),
    }
  }
}

/** Text fields of a product. Some systems send numbers in them. */
const TEXTS = ['ean', 'barcode', 'name', ...fieldsStoredAs('text')]
const PRICES = ['price', 'oldPrice', ...fieldsStoredAs('amount')]
const VATS = ['vat', ...fieldsStoredAs('rate')]
const UNCHANGED_FIELDS = [...fieldsStoredAs('flag', 'json'), 'tagged', 'flags']

/** Converts a mapped article to a product, or lists its errors. */
export function productOfArticle(
  record: unknown,
  index: number,
  takesUpc: boolean,
): { upsert: Upsert } | { errors: SyncError[] } {
  const article =
    typeof record === 'object' && record !== null && !Array.isArray(record)
      ? (record as Record<string, unknown>)
      : undefined
  if (!article)
    return {
      errors: [
        {
          dataType: 'articles',
          index,
          ean: null,
          externalId: null,
          field: '',
          code: 'invalid',
          message: 'the article is not a JSON object',
        },
      ],
    }
  const raw: Record<string, unknown> = {}
  for (const name of TEXTS) raw[name] = asText(article[name])
  for (const name of PRICES)
    raw[name] = typeof article[name] === 'string' ? asPrice(article[name].trim()) : article[name]
  for (const name of VATS) {
    const vat = article[name]
    raw[name] = typeof vat === 'string' || typeof vat === 'number' ? asVat(vat) : vat
  }
  for (const name of UNCHANGED_FIELDS) raw[name] = article[name]
  for (const name of Object.keys(raw))
    if (raw[name] === undefined || raw[name] === null || raw[name] === '') delete raw[name]
  const externalId = printable(article['externalProductId'])
  const errors = rowErrors()
  const product = checkRow(raw, { index }, errors)
  const takenBack = Object.fromEntries(
    CLEARED_BY_NULL.filter((name) => article[name] === null).map((name) => [name, null]),
  )
  if (product && !refuseUpc(product.ean, takesUpc, { index }, errors))
    return { upsert: { product: { ...product, ...takenBack }, pos: { posProductId: externalId } } }
  return {
    errors: errors.listed.map(({ ean, field, code, message }) => ({
      dataType: 'articles',
      index,
      ean,
      externalId,
      field,
      code,
      message,
    })),
  }
}

function asText(value: unknown): unknown {
  if (typeof value === 'string') return value.trim()
  // Many systems store EANs as numbers. `toFixed` formats long numbers without an exponent.
  return typeof value === 'number' && Number.isSafeInteger(value) ? value.toFixed(0) : value
}

/** Records per transaction. */
export const BATCH_LIMIT = 500

/** The store and the system of a batch of records, and how to write the batch. */
interface Target {
  call: Call
  store: Row<'store'>
  system: string
  /** Index of the batch's first record in the whole list. */
  from: number
  /** Counts the results without writing. */
  dryRun: boolean
}

/** Writes up to 500 records in one transaction. Valid records are written even if other records are invalid. */
export function applyBatch(dataType: DataType, records: readonly unknown[], target: Target): Promise<BatchCounts> {
  if (dataType === 'articles') return applyArticles(records, target)
  return dataType === 'stock' ? applyStock(records, target) : applyDocuments(dataType, records, target)
}

async function applyArticles(records: readonly unknown[], { call, store, from, dryRun }: Target): Promise<BatchCounts> {
  const errors: SyncError[] = []
  const upserts = new Map<string, Upsert>()
  const takesUpc = await acceptsUpc(call.db, store.tenant)
  let failed = 0
  for (const [i, record] of records.entries()) {
    const index = from + i
    const read = productOfArticle(record, index, takesUpc)
    const ean = 'upsert' in read ? read.upsert.product.ean : ''
    if ('upsert' in read && !upserts.has(ean)) upserts.set(ean, read.upsert)
    else if ('upsert' in read)
      errors.push({ ...repeated('articles', index, 'ean'), ean, externalId: read.upsert.pos?.posProductId ?? null })
    else for (const error of read.errors) errors.push(error)
    if ('errors' in read || upserts.get(ean) !== read.upsert) failed++
  }
  const products = [...upserts.values()]
  const { repriced } = dryRun ? { repriced: 0 } : await upsertProducts(call, store, products)
  const categories = products.flatMap(({ product }) => foldText(product.category ?? '') || [])
  return {
    seen: records.length,
    taken: products.length,
    repriced,
    categories: [...new Set(categories)],
    errors,
    failed,
  }
}

function repeated(dataType: DataType, index: number, field: string): SyncError {
  return {
    dataType,
    index,
    ean: null,
    externalId: null,
    field,
    code: 'repeated',
    message: `${field}: another record of this page has the same EAN`,
  }
}

async function applyStock(records: readonly unknown[], { call, store, from, dryRun }: Target): Promise<BatchCounts> {
  const errors: SyncError[] = []
  const good = each(records, from, errors, readStock)
  const productIds = await sold(
    call,
    store,
    good.map(({ record }) => record),
  )
  const levels = new Map<string, number>()
  for (const { index, record } of good) {
    const productId = productIds.get(keyOf(record))
    const ean = 'ean' in record.name ? record.name.ean : null
    const at = { dataType: 'stock', index, ean, externalId: null, field: ean === null ? 'productId' : 'ean' }
    if (productId === undefined)
      errors.push({ ...at, code: 'unknown_product', message: 'the store does not sell this product' })
    else if (levels.has(productId)) errors.push({ ...repeated('stock', index, at.field), ean })
    else levels.set(productId, record.quantity)
  }
  if (!dryRun) await setLevels(call.db, store.store_id, levels, call.nowMs)
  return { seen: records.length, taken: levels.size, errors, failed: records.length - levels.size }
}

const keyOf = ({ name }: StockRecord) => ('ean' in name ? `ean ${name.ean}` : `id ${name.productId}`)

/** Returns the product ids of the records whose product the store sells, by `keyOf`. */
async function sold({ db }: Call, store: Row<'store'>, records: readonly StockRecord[]): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const eans = records.flatMap(({ name }) => ('ean' in name ? [name.ean] : []))
  const products = await findByEans(db, store.tenant, eans)
  const listings = await listingsIn(
    db,
    store.store_id,
    [...products.values()].map((product) => product.product_id),
  )
  for (const [ean, { product_id }] of products) {
    if (listings.has(product_id)) found.set(`ean ${ean}`, product_id)
  }
  for (const { name } of records) {
    if ('ean' in name) continue
    const product = await findProduct(db, store.tenant, name, store.store_id)
    if (product) found.set(`id ${name.productId}`, product.product_id)
  }
  return found
}

async function applyDocuments(
  dataType: 'orders' | 'suppliers',
  records: readonly unknown[],
  { call, store, system, from, dryRun }: Target,
): Promise<BatchCounts> {
  const errors: SyncError[] = []
  const documents = new Map<string, ErpDocument>()
  for (const { index, record } of each(records, from, errors, (raw, at) => readErpDocument(dataType, raw, at))) {
    if (documents.has(record.externalId))
      errors.push({ ...repeated(dataType, index, 'externalId'), externalId: record.externalId })
    else documents.set(record.externalId, record)
  }
  const rows = [...documents.values()].map(({ externalId, doc }) => ({
    store_id: store.store_id,
    data_type: dataType,
    system,
    external_id: externalId,
    tenant: store.tenant,
    doc: JSON.stringify(doc),
    updated_ms: call.nowMs,
  }))
  if (!dryRun) for (const chunk of insertChunks(rows)) await upsertErpRecords(call.db, chunk)
  return { seen: records.length, taken: rows.length, errors, failed: records.length - rows.length }
}

function each<T>(
  records: readonly unknown[],
  from: number,
  errors: SyncError[],
  read: (record: unknown, index: number) => Read<T>,
): { index: number; record: T }[] {
  return records.flatMap((raw, i) => {
    const result = read(raw, from + i)
    if ('record' in result) return [{ index: from + i, record: result.record }]
    for (const error of result.errors) errors.push(error)
    return []
  })
}
