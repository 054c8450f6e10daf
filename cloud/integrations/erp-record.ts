import { z } from 'zod'
import { Ean } from '../catalogue/ean.ts'
import { text } from '../operations/fields.ts'
import { validate } from '../operations/validation.ts'
import { Failure } from '../foundation/failure.ts'
import { printable, type SyncError } from './sync-error.ts'

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

export interface StockRecord {
  readonly name: { ean: string } | { productId: string }
  readonly quantity: number
}

/** A record of an ERP system, stored unchanged. */
export interface ErpDocument {
  readonly externalId: string
  readonly doc: object
}

export type Read<T> = { record: T } | { errors: SyncError[] }

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
