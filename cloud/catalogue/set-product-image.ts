import type { Db } from '../persistence/database.ts'

/** Sets the picture of a product in all stores that sell it. */
export async function setProductImage(db: Db, tenant: string, productId: string, imageUrl: string, nowMs: number): Promise<void> {
  await db.updateTable('product').set({ image_url: imageUrl, updated_ms: nowMs }).where('tenant', '=', tenant).where('product_id', '=', productId).execute()
}
