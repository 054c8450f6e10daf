import { newId } from '../../../policy/ids.ts'
import { newProductRow, type NewProduct } from '../../../cloud/shop/catalogue/queries.ts'
import { renderListing } from '../../../cloud/shop/catalogue/render.ts'
import { searchTermsOf } from '../../../cloud/shop/catalogue/search-queries.ts'
import { auditRow, outboxRow, Refused, type BareCall } from './bare-context.ts'
import { INSERT_PRODUCT, PAGE } from './statements.ts'

/** Returns the first products of a store. */
export async function fetchProducts(
  { caller, ask }: BareCall,
  { storeId, limit }: { storeId: string; limit: number },
): Promise<string> {
  const rows = await ask<{ product_id: string | null; doc: string; total: number }>(PAGE, [
    storeId,
    caller.tenant,
    '',
    limit + 1,
  ])
  const [first] = rows
  if (!first) throw new Refused('no such store')
  const page = first.product_id === null ? [] : rows.slice(0, limit)
  const next = rows.length > limit ? `,"nextCursor":"${page.at(-1)?.product_id}"` : ''
  return `{"success":true,"products":[${page.map(({ doc }) => doc).join(',')}],"total":${first.total}${next}}`
}

/** Inserts a product that the account does not have yet. */
export async function insertProduct(
  call: BareCall,
  { storeId, ean, ...input }: NewProduct & { storeId: string; ean: string },
): Promise<string> {
  const { caller, nowMs, platform, ask } = call
  const productId = newId('prd', platform)
  const row = newProductRow(input, { productId, tenant: caller.tenant, ean, nowMs })
  const { price_cent, old_price_cent } = row
  const listing = renderListing(row, {
    store_id: storeId,
    product_id: productId,
    price_cent,
    old_price_cent,
    updated_ms: nowMs,
    listing_no: 0, // The statement replaces it.
  })
  const { name, price } = input
  const [done] = await ask<{ stores: number; made: number }>(INSERT_PRODUCT, [
    storeId,
    caller.tenant,
    JSON.stringify(row),
    JSON.stringify(listing),
    searchTermsOf(row),
    row.category === null ? [''] : ['', row.category],
    auditRow(call, 'insertProduct', productId),
    outboxRow(call, storeId, 'product.created', { productId, storeId, ean, name, price }),
  ])
  if (done?.made !== 1) throw new Refused(done?.stores === 0 ? 'no such store' : 'the account has this product')
  return `{"success":true,${listing.doc.slice(1)}`
}
