import { knownCaller } from '../../platform/foundation/caller.ts'
import { invalid, notFound } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { ProductRow } from '../../platform/persistence/tables/stores.ts'
import { comparableCode, whyUnknown } from './ean.ts'
import { isSoldIn } from './is-sold-in.ts'
import { findSharedProduct } from './queries.ts'

export interface ProductNames {
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
 * Finds a product of the account by productId, id, ean or barcode (ADR 0002, ADR 0005). Returns the product with its global
 * price.
 *
 * Throws 400 if the request has no identifier, or if two identifiers differ. Throws 404 if the product is unknown, or
 * if none of the stores of the caller's API key sells it.
 */
export async function namedProduct(call: Call, names: ProductNames): Promise<ProductRow> {
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
