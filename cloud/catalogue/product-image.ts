import { notFound } from '../operations/failure.ts'
import type { Call } from '../operations/operation.ts'
import { changedRow } from './product-row.ts'
import { findSharedProduct, listListings } from './queries.ts'
import { writeProducts } from './write-products.ts'

/** Gives a product of the tenant its uploaded image, in all stores. Throws 404 when there is no such product. */
export async function setProductImage({ db, nowMs }: Pick<Call, 'db' | 'nowMs'>, tenant: string, productId: string, url: string): Promise<void> {
  const before = await findSharedProduct(db, tenant, { productId })
  if (!before) throw notFound('product')
  const after = changedRow(before, { image_url: url, media_snapshot: url }, nowMs)
  if (after === before) return
  const known = (await listListings(db, [productId])).get(productId) ?? []
  await writeProducts(db, [{ before, after, known, listing: undefined }])
}
