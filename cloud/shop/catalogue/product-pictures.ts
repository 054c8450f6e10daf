import { hashOfBytes } from '../../platform/operations/idempotency.ts'
import type { Db } from '../../platform/persistence/database.ts'

/** Stores the small picture of an image. Agents find it by the address of the image, which products name. */
export async function storePicture(db: Db, imageUrl: string, bytes: Uint8Array): Promise<void> {
  const row = { image_url: imageUrl, hash: hashOfBytes(bytes), bytes: Buffer.from(bytes).toString('base64url') }
  await db
    .insertInto('product_picture')
    .values(row)
    .onConflict((c) => c.column('image_url').doUpdateSet({ hash: row.hash, bytes: row.bytes }))
    .execute()
}

/** Returns the small pictures with these hashes, base64url. Leaves out unknown hashes. */
export async function picturesByHash(db: Db, hashes: readonly string[]): Promise<string[]> {
  if (hashes.length === 0) return []
  const rows = await db
    .selectFrom('product_picture')
    .select(['hash', 'bytes'])
    .distinct()
    .where('hash', 'in', hashes)
    .execute()
  return rows.map(({ bytes }) => bytes)
}
