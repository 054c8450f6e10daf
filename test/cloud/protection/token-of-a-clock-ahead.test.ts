import { afterAll, beforeAll, expect, it } from 'vitest'
import { inFullSizeOnEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'

inFullSizeOnEveryDatabase('a token of a process whose clock is ahead', (kind) => {
  let shop: Shop
  beforeAll(async () => void (shop = await openShop(kind)))
  afterAll(() => shop.stop())

  it('ends with its purchase, although it was issued later than the cancellation began', async () => {
    const { transactionId: purchaseId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    const deviceId = shop.devices.pos_deactivator
    const { replayProtectedNonce: nonce } = await shop.ok('verifySecurityTagDeactivation', { purchaseId, deviceId })
    const { database } = shop.cloud.db
    await database.write((db) =>
      db
        .updateTable('protection_authorization')
        .set((eb) => ({ iat: eb('iat', '+', 2) }))
        .where('nonce', '=', nonce)
        .execute(),
    )
    await shop.ok('markPurchaseCancelled', { purchaseId })
    const token = await database.reads
      .selectFrom('protection_authorization')
      .select('revoked_ms')
      .where('nonce', '=', nonce)
      .executeTakeFirstOrThrow()
    expect(token.revoked_ms).not.toBeNull()
  })
})
