import type { Db } from '../../platform/persistence/database.ts'
import { changedRow } from './product-row.ts'
import { findSharedProduct, listListings } from './queries.ts'
import { writeProducts } from './write-products.ts'

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
  const known = (await listListings(db, [productId])).get(productId) ?? []
  await writeProducts(db, [{ before, after, known, listing: undefined }])
}
