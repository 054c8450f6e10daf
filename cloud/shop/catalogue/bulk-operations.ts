import { z } from 'zod'
import { Id, Success } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { acceptsUpc, eanWarning } from './ean.ts'
import { checkRow, refuseUpc, RowError, rowErrors } from './row-errors.ts'
import { ProductInput } from './schema.ts'
import { BATCH_LIMIT, upsertProducts, type Upsert } from './upsert-products.ts'
import { rolesFrom } from '../../platform/foundation/roles.ts'

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
