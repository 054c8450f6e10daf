import { z } from 'zod'
import { invalid } from '../foundation/failure.ts'
import { Timestamp, scanned, text, ProductCodeText } from '../operations/fields.ts'
import { eanOfRequest } from './named-product.ts'
import { eansOf } from './ean.ts'
import type { Product } from './schema.ts'

/**
 * Fields that the system sets. `updateProduct` accepts them if they are unchanged, so that clients can edit a response
 * and send it back (ADR 0002).
 */
export const SYSTEM_FIELDS = {
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
export function settableFields<T extends Sent>(
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
