import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import { centsOf, Id, Success } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import {
  changedRow,
  newProductRow,
  originColumns,
  priceColumns,
  sharedColumns,
  type NewProduct,
  type PosOrigin,
  findByEans,
  listingsIn,
  soldElsewhere,
  type StoredListing,
  eanOfRequest,
} from './queries.ts'
import { writeProducts, type ProductWrite } from './write-products.ts'
import { z } from 'zod'
import { Failure } from '../../platform/foundation/failure.ts'
import { validate } from '../../platform/operations/validation.ts'
import { isUpc, upcRefusal, acceptsUpc, eanWarning } from './ean.ts'
import { FILE_FIELDS } from './product-fields.ts'
import { ProductInput } from './schema.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'

/** Error of one row of an import. */
export const RowError = z.strictObject({
  index: z.int().describe('Index in the list of rows, from 0.'),
  row: z.int().optional().describe('Row number in the file, from 1.'),
  ean: z.string().nullable(),
  field: z.string(),
  code: z.string(),
  message: z.string(),
})
export type RowError = z.infer<typeof RowError>

/** Maximum number of errors in the response; further errors are only counted. */
export const ROW_ERRORS_LIMIT = 1_000
/** Maximum number of errors reported for one row. */
const ERRORS_OF_ROW = 5

interface RowErrors {
  readonly listed: readonly RowError[]
  /** Number of all errors, also of those that `listed` omits. */
  count(): number
  add(error: RowError): void
}

/** Collects errors up to `ROW_ERRORS_LIMIT`. */
export function rowErrors(): RowErrors {
  const listed: RowError[] = []
  let count = 0
  return {
    listed,
    count: () => count,
    add(error) {
      if (++count <= ROW_ERRORS_LIMIT) listed.push(error)
    },
  }
}

/** Names that files use for fields of the API. */
const FILE_NAMES: ReadonlyMap<string, string> = new Map(FILE_FIELDS.map(({ field, name }) => [field, name]))

/** Adds the error of a UPC in an account that does not accept it. Returns true if it did. */
export function refuseUpc(
  ean: string,
  isAccepted: boolean,
  at: { index: number; row?: number },
  errors: RowErrors,
): boolean {
  if (isAccepted || !isUpc(ean)) return false
  const { code, message } = upcRefusal(ean)
  errors.add({ ...at, ean, field: 'ean', code, message: `ean: ${message}` })
  return true
}

/** Validates one row. Returns undefined and adds the errors if the row is invalid, worded by `explain`. */
export function checkRow(
  raw: unknown,
  at: { index: number; row?: number },
  errors: RowErrors,
  explain: (field: string, message: string) => string = (_, message) => message,
): (ProductInput & { ean: string }) | undefined {
  try {
    const { barcode, ean, ...product } = validate(ProductInput, raw)
    return { ...product, ean: eanOfRequest({ ean, barcode }) }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const stated = raw as { ean?: unknown; barcode?: unknown } | null
    const ean = stated?.ean ?? stated?.barcode
    for (const { path, code, message } of (error.extras.details ?? []).slice(0, ERRORS_OF_ROW)) {
      const field = at.row === undefined ? path : (FILE_NAMES.get(path) ?? path)
      errors.add({
        ...at,
        ean: typeof ean === 'string' ? ean.slice(0, 40) : null,
        field,
        code,
        message: explain(field, message),
      })
    }
    return undefined
  }
}

/** Products per transaction and per bulk request. */
export const BATCH_LIMIT = 500

export interface Upsert {
  product: NewProduct & { ean: string }
  /** Set if the product comes from a POS sync. */
  pos?: PosOrigin
}

export interface Upserted {
  imported: number
  /** Number of imported products that the store already sold. */
  updated: number
}

interface Context {
  db: Db
  nowMs: number
  services: { platform: Platform }
}

/**
 * Adds products to a store, or changes products that the store already sells. A new price applies to this store. Other
 * fields apply to every store that sells the product. Accepts at most 500 products, each EAN once.
 *
 * Omitted fields keep their values, but an old price that is not above the new price is cleared. Unchanged rows are not
 * written. `repriced` is the number of products whose price in the store changed.
 */
export async function upsertProducts(
  { db, nowMs, services }: Context,
  store: Row<'store'>,
  upserts: readonly Upsert[],
): Promise<Upserted & { repriced: number }> {
  const known = await findByEans(
    db,
    store.tenant,
    upserts.map(({ product }) => product.ean),
  )
  const ids = [...new Set([...known.values()].map((row) => row.product_id))]
  const listings = await listingsIn(db, store.store_id, ids)
  const elsewhere = await soldElsewhere(db, store.store_id, ids)
  const writes: ProductWrite[] = []
  let [updated, repriced] = [0, 0]
  for (const { product, pos } of upserts) {
    const before = known.get(product.ean)
    if (!before) {
      const productId = newId('prd', services.platform)
      const after = newProductRow(product, { productId, tenant: store.tenant, ean: product.ean, nowMs, pos })
      const { price_cent, old_price_cent } = after
      writes.push({
        before,
        after,
        here: undefined,
        listing: { store_id: store.store_id, price_cent, old_price_cent, updated_ms: nowMs },
      })
      continue
    }
    const here = listings.get(before.product_id)
    if (here) updated++
    if (here && here.price_cent !== centsOf(product.price)) repriced++
    const write = changeOf(before, here, elsewhere.has(before.product_id), product, pos, store.store_id, nowMs)
    if (write) writes.push(write)
  }
  await writeProducts(db, writes)
  return { imported: upserts.length, updated, repriced }
}

function changeOf(
  before: Row<'product'>,
  here: StoredListing | undefined,
  isSoldElsewhere: boolean,
  product: NewProduct,
  pos: PosOrigin | undefined,
  store_id: string,
  nowMs: number,
): ProductWrite | undefined {
  const prices = priceColumns(product)
  const { price_cent = 0 } = prices
  const ifStillHigher = (old: number | null) => (old !== null && old > price_cent ? old : null)
  // A till may state an old price that is no longer above the price.
  const stated = prices.old_price_cent === undefined ? undefined : ifStillHigher(prices.old_price_cent)
  const globalPrices = {
    price_cent,
    old_price_cent: stated === undefined ? ifStillHigher(before.old_price_cent) : stated,
  }
  const columns = { ...sharedColumns(product), ...originColumns(pos), ...(!isSoldElsewhere && globalPrices) }
  const after = changedRow(before, columns, nowMs)
  const old_price_cent = stated === undefined ? ifStillHigher(here?.old_price_cent ?? null) : stated
  const isSamePrice = here?.price_cent === price_cent && here.old_price_cent === old_price_cent
  if (after === before && isSamePrice) return undefined
  const updated_ms = isSamePrice && here ? here.updated_ms : nowMs
  return { before, after, here, listing: { store_id, price_cent, old_price_cent, updated_ms } }
}

const BULK_BODY_LIMIT = 2 * 1024 * 1024
const WARNINGS_LIMIT = 100

/** Response of both product imports. */
export const ImportAnswer = z.strictObject({
  ...Success,
  imported: z.int().describe('Valid rows that were written: new and changed products.'),
  updated: z.int().describe('How many of these products the store already sold.'),
  errors: z.array(RowError).describe('The first 1,000 errors.'),
  errorCount: z.int().describe('Number of all errors, also of those that `errors` omits.'),
  warnings: z.array(z.string()).optional(),
})

/**
 * Form of a row in the API description. The operation validates each row by itself, so that an invalid row does not
 * reject the others.
 */
const Row = z.unknown().meta(rowDocument())

function rowDocument() {
  const { properties, required, type } = z.toJSONSchema(ProductInput, { target: 'openapi-3.0', io: 'input' })
  return { type, properties, required, additionalProperties: false } as Record<string, unknown>
}

export const bulkImportProducts = operation({
  name: 'bulkImportProducts',
  area: 'catalogue',
  minimumPackage: 'DISCOVER',
  roles: rolesFrom('manager'),
  summary: 'Adds up to 500 products to a store, or changes those that it already sells.',
  description:
    'Valid rows are imported even if others are invalid; `errors[]` names the invalid ones. Fields that a row ' +
    'omits keep their values. The price applies to this store, all other fields apply to the product in every ' +
    'store.',
  changes: true,
  bodyLimit: BULK_BODY_LIMIT,
  emits: ['product.bulk_imported'],
  request: z.strictObject({ storeId: Id, products: z.array(Row).min(1).max(BATCH_LIMIT) }),
  response: ImportAnswer,
  example: {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    products: [{ ean: '4012345678901', name: 'Hafermilch 1 l', price: 1.99, vat: 7 }],
  },
  async run(call, { storeId, products }) {
    const store = await ownStore(call, storeId)
    const errors = rowErrors()
    const takesUpc = await acceptsUpc(call.db, store.tenant)
    const indexOfEan = new Map<string, number>()
    const upserts: Upsert[] = []
    for (const [index, raw] of products.entries()) {
      const product = checkRow(raw, { index }, errors)
      if (!product || refuseUpc(product.ean, takesUpc, { index }, errors)) continue
      const first = indexOfEan.get(product.ean)
      if (first === undefined) upserts.push({ product })
      else
        errors.add({
          index,
          ean: product.ean,
          field: 'ean',
          code: 'repeated',
          message: `ean: products[${first}] has the same EAN`,
        })
      if (first === undefined) indexOfEan.set(product.ean, index)
    }
    const { imported, updated } = await upsertProducts(call, store, upserts)
    recordImport(call, storeId, { imported, updated, errorCount: errors.count() })
    const warnings = warningsOf(upserts)
    return {
      success: true as const,
      imported,
      updated,
      errors: [...errors.listed],
      errorCount: errors.count(),
      ...(warnings.length > 0 && { warnings }),
    }
  },
})

/** Writes the audit log entry of an import and emits `product.bulk_imported` if any row was written. */
export function recordImport(
  call: Call,
  storeId: string,
  counts: { imported: number; updated: number; errorCount: number },
): void {
  call.changed(storeId)
  if (counts.imported > 0) call.emit({ type: 'product.bulk_imported', storeId, data: { storeId, ...counts } })
}

/** Warnings about rows that were imported, at most 100. */
export function warningsOf(upserts: readonly Upsert[]): string[] {
  return upserts.flatMap(({ product }) => eanWarning(product.ean) ?? []).slice(0, WARNINGS_LIMIT)
}
