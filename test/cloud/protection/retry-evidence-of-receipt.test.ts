import { expect, it } from 'vitest'
import { keysOf, loadKeyFiles } from '../../../cloud/platform/authority/key-files.ts'
import { markRestored } from '../../../cloud/service/mark-restored.ts'
import type { Evidence } from '../../../policy/journal.ts'
import { receiptIdentity } from '../../../policy/receipts/receipt-claims.ts'
import { secretFiles } from '../../../host/secret-files.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { movablePlatform } from '../../support/movable-platform.ts'
import { until } from '../../support/receiver.ts'
import { openShop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

/**
 * The backup precedes the payment. After the restore the agent reports the redemptions, and then the provider repeats
 * its notification.
 */
onEveryDatabase('a cloud restored to a time before a payment', (kind) => {
  it('applies stored reports about a receipt as soon as the payment is repeated', async () => {
    const { platform } = movablePlatform()
    const shop = await openShop(kind, { platform })
    const { database } = shop.cloud.db
    const files = await loadKeyFiles(keysOf(shop.cloud.keyFolder), secretFiles, platform.random)
    await database.write((db) => markRestored(db, files, platform))
    const { services } = shop.cloud.cloud
    await services.authority.refresh()
    expect(services.authority.cloudGeneration).toBeGreaterThan(1)
    const agent = await enrolTestAgent(shop)
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'shopper-1' })
    const { transactionId } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: shop.products[0].ean, quantity: 1 }],
    })
    const { tenant } = await database.reads
      .selectFrom('purchase')
      .select('tenant')
      .where('purchase_id', '=', transactionId)
      .executeTakeFirstOrThrow()
    const nonce = Buffer.from(
      receiptIdentity(
        services.authority.keysOf(tenant as Parameters<typeof services.authority.keysOf>[0]).receiptSecret,
        transactionId,
      ),
    ).toString('hex')
    const claim: Evidence = {
      kind: 'claim',
      redemptionId: 'r-before',
      nonce,
      source: 'receipt',
      rightClass: 'release',
      ordinals: [0],
      deviceId: shop.devices.pos_deactivator,
    }
    await agent.report([
      agent.row({ evidence: claim }),
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'r-before', outcome: 'confirmed' } }),
    ])
    const right = () =>
      database.reads
        .selectFrom('unit_right')
        .select(['state', 'outcome'])
        .where('purchase_id', '=', transactionId)
        .where('right_class', '=', 'release')
        .executeTakeFirst()
    expect(await right()).toBeUndefined()
    await shop.ok('completeTestCheckout', { transactionId })
    await until('the release', async () => (await right())?.outcome === 'confirmed')
    expect(await right()).toEqual({ state: 'used', outcome: 'confirmed' })
    expect(shop.cloud.errors).toEqual([])
    await shop.stop()
  })
})
