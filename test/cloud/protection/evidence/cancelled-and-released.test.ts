import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Evidence } from '../../../../policy/journal.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/** A cancellation and a release may arrive in either order: the cloud raises an exception and grants nothing more. */
inFullSizeOnEveryDatabase('a cancelled purchase whose goods were released', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let agent: TestAgent
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    agent = await enrolTestAgent(shop)
    await agent.call('reportDeviceHeartbeat', { deviceId: shop.devices.exit_gate })
    await agent.call('reportDeviceHeartbeat', { deviceId: shop.devices.self_checkout_detacher })
  })
  afterAll(() => shop.stop())

  const grant = async (epc: string, purchase: Json) =>
    (
      await agent.call('verifyProtectedItem', {
        deviceId: shop.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        epc,
        purchaseId: purchase.transactionId,
      })
    ).body
  const status = async (epc: string) => (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus
  const exceptionsOf = async ({ transactionId }: Json) =>
    ((await shop.ok('fetchExceptions', { storeId: shop.storeId, limit: 500 })).exceptions as Json[])
      .filter((each) => each.purchaseId === transactionId)
      .map((each) => each.kind as string)
  /** The agent used the token earlier and reports it now. */
  const reportClaim = (nonce: string, redemptionId: string, atMs: number, source: 'token' | 'receipt' = 'token') => {
    const claim: Evidence = {
      kind: 'claim',
      redemptionId,
      nonce,
      source,
      rightClass: 'release',
      ordinals: [0],
      deviceId: shop.devices.self_checkout_detacher,
    }
    return agent.report([
      agent.row({ evidence: claim, atMs }),
      agent.row({ evidence: { kind: 'outcome', redemptionId, outcome: 'confirmed' }, atMs }),
    ])
  }

  async function buyUnit(bound: boolean) {
    const [product] = shop.products
    const { epc } = await shop.newItem(product)
    return { epc, purchase: await shop.buy([{ ean: product.ean, quantity: 1, ...(bound && { epcs: [epc] }) }]) }
  }

  /** A token releases a unit while the agent is offline, and the purchase is cancelled ten minutes later. */
  async function releasedThenCancelled(bound: boolean) {
    const { epc, purchase } = await buyUnit(bound)
    const { replayProtectedNonce: nonce } = await grant(epc, purchase)
    const usedMs = platform.clock.wall()
    forward(600_000)
    await agent.login()
    await shop.ok('markPurchaseCancelled', { transactionId: purchase.transactionId })
    return { epc, purchase, nonce, usedMs }
  }

  it.each([
    ['its tag was scanned at checkout', true],
    ['it was one of several of its kind', false],
  ])('raises an exception and holds the item if the agent reports later (%s)', async (_which, bound) => {
    const { epc, purchase, nonce, usedMs } = await releasedThenCancelled(bound)
    expect(await exceptionsOf(purchase)).toEqual([])
    await reportClaim(nonce, `late-${bound}`, usedMs)
    expect(await exceptionsOf(purchase)).toEqual(['cancelled_after_release'])
    expect(await status(epc)).toBe('exception_hold')
    const gate = { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit', epc }
    expect((await agent.call('verifyProtectedItem', gate)).body).toMatchObject({ authorized: false })
  })

  /** One unit was released by its token, and its line was refunded before the agent reported that. */
  async function releasedThenRefunded(bound: boolean) {
    const { epc, purchase } = await buyUnit(bound)
    const { replayProtectedNonce: nonce } = await grant(epc, purchase)
    const usedMs = platform.clock.wall()
    await shop.ok('refundPayment', {
      transactionId: purchase.transactionId,
      lines: [{ itemLineId: purchase.items[0].itemLineId }],
    })
    return { epc, purchase, nonce, usedMs }
  }

  it.each([
    ['bound', true],
    ['not yet bound', false],
  ])('holds the item of a refunded line that was released once (%s)', async (_which, bound) => {
    const { epc, purchase, nonce, usedMs } = await releasedThenRefunded(bound)
    await reportClaim(nonce, `late-line-${bound}`, usedMs)
    expect(await exceptionsOf(purchase)).toEqual(['released_after_refund'])
    expect(await status(epc)).toBe('exception_hold')
  })

  it('holds the item of a refunded line that was released by its receipt', async () => {
    const { epc, purchase } = await buyUnit(true)
    await shop.ok('refundPayment', {
      transactionId: purchase.transactionId,
      lines: [{ itemLineId: purchase.items[0].itemLineId }],
    })
    expect(await status(epc)).toBe('returned')
    const { cti } = await shop.cloud.db.database.reads
      .selectFrom('purchase')
      .select('cti')
      .where('purchase_id', '=', purchase.transactionId)
      .executeTakeFirstOrThrow()
    await reportClaim(cti ?? '', 'late-receipt', platform.clock.wall(), 'receipt')
    expect(await exceptionsOf(purchase)).toEqual(['released_after_refund'])
    expect(await status(epc)).toBe('exception_hold')
    // A second release of the same unit raises its own exception.
    await reportClaim(cti ?? '', 'late-receipt-2', platform.clock.wall(), 'receipt')
    expect((await exceptionsOf(purchase)).toSorted()).toEqual(['double_redeem', 'released_after_refund'])
  })

  it('leaves a refunded item as staff set it before the agent reported the release', async () => {
    const { epc, purchase, nonce, usedMs } = await releasedThenRefunded(true)
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'sellable' })
    await reportClaim(nonce, 'late-refund-shelf', usedMs)
    expect(await exceptionsOf(purchase)).toEqual(['released_after_refund'])
    expect(await status(epc)).toBe('sellable')
  })

  it('leaves an item on the shelf that staff put there meanwhile', async () => {
    const { epc, nonce, usedMs } = await releasedThenCancelled(true)
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'sellable' })
    await reportClaim(nonce, 'late-shelf', usedMs)
    expect(await status(epc)).toBe('sellable')
  })
})

inFullSizeOnEveryDatabase('a token that has just expired', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
  })
  afterAll(() => shop.stop())

  it.each(['cancelled', 'refunded', 'returned by staff'])(
    'releases nothing by a clock that is behind once its goods are %s',
    async (how) => {
      const [product] = shop.products
      const { epc } = await shop.newItem(product)
      const purchase = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
      const deviceId = shop.devices.self_checkout_detacher
      const { replayProtectedNonce } = await shop.ok('verifyProtectedItem', {
        deviceId,
        protectionAction: 'detach_hard_tag',
        epc,
      })
      forward(310_000)
      const { transactionId } = purchase
      if (how === 'cancelled') await shop.ok('markPurchaseCancelled', { transactionId })
      else if (how === 'refunded')
        await shop.ok('refundPayment', { transactionId, lines: [{ itemLineId: purchase.items[0].itemLineId }] })
      else await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'returned' })
      const occurredAt = new Date(platform.clock.wall() - 20_000).toISOString()
      expect(
        await shop.call('redeemProtectionAuthorization', {
          replayProtectedNonce,
          deviceId,
          redemptionId: `behind-${how}`,
          occurredAt,
        }),
      ).toMatchObject({ status: 409, body: { reason: 'token_revoked' } })
    },
  )
})
