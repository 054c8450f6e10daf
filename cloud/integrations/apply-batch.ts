import { foldText } from '../../policy/fold-text.ts'
import { acceptsUpc } from '../catalogue/ean.ts'
import { findByEans, findProduct, listListings } from '../catalogue/queries.ts'
import { upsertProducts, type Upsert } from '../catalogue/upsert-products.ts'
import type { Call } from '../operations/operation.ts'
import { insertChunks } from '../persistence/insert-chunks.ts'
import type { StoreRow } from '../persistence/tables/stores.ts'
import { setLevels } from '../stock/set-levels.ts'
import { productOfArticle } from './article.ts'
import { readErpDocument, readStock, type ErpDocument, type Read, type StockRecord } from './erp-record.ts'
import type { BatchCounts } from './pull-state.ts'
import { upsertErpRecords } from './queries.ts'
import type { SyncError } from './sync-error.ts'
import type { DataType } from './systems.ts'

/** Records per transaction. */
export const BATCH_LIMIT = 500

/** The store and the system of a batch of records, and how to write the batch. */
export interface Target {
  call: Call
  store: StoreRow
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
async function sold({ db }: Call, store: StoreRow, records: readonly StockRecord[]): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  const eans = records.flatMap(({ name }) => ('ean' in name ? [name.ean] : []))
  const products = await findByEans(db, store.tenant, eans)
  const listings = await listListings(
    db,
    [...products.values()].map((product) => product.product_id),
  )
  for (const [ean, { product_id }] of products) {
    if (listings.get(product_id)?.some((listing) => listing.store_id === store.store_id) === true)
      found.set(`ean ${ean}`, product_id)
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
