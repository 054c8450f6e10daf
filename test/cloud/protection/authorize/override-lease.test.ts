import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/** Only an unreachable agent leads to `authorization_outstanding`, and staff may override (ADR leases). */
inFullSizeOnEveryDatabase('goods that are leased to an offline agent', (kind) => {
  let shop: Shop
  let agent: TestAgent
  let till: string
  let detacher: string
  beforeAll(async () => {
    shop = await openShop(kind)
    agent = await enrolTestAgent(shop)
    till = shop.devices.pos_deactivator
    detacher = shop.devices.self_checkout_detacher
    await agent.call('reportDeviceHeartbeat', { deviceId: till })
  })
  afterAll(() => shop.stop())

  const operatorId = 'op-1'
  const exceptions = async (what: string): Promise<Json[]> =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: what, state: 'open' })).exceptions
  /** A paid item whose token the agent holds. */
  async function leasedItem() {
    const [p] = shop.products
    const { epc } = await shop.newItem(p)
    const purchase = await shop.buy([{ ean: p.ean, quantity: 1, epcs: [epc] }])
    const { replayProtectedNonce: nonce } = (
      await agent.call('verifySecurityTagDeactivation', {
        purchaseId: purchase.transactionId,
        deviceId: till,
        operatorId,
      })
    ).body
    return { epc, purchase, nonce: nonce as string, subject: `${purchase.items[0].itemLineId}/1/release` }
  }
  const verifyItem = (epc: string, fields: Json = {}) =>
    shop.ok('verifyProtectedItem', { deviceId: detacher, protectionAction: 'detach_hard_tag', epc, ...fields })
  const redeem = (nonce: string, redemptionId: string) =>
    shop.ok('redeemProtectionAuthorization', {
      replayProtectedNonce: nonce,
      deviceId: detacher,
      redemptionId,
      outcome: 'confirmed',
    })
  const reportRelease = (nonce: string, redemptionId: string) =>
    agent.report([
      agent.row({
        evidence: {
          kind: 'claim',
          redemptionId,
          nonce,
          source: 'token',
          rightClass: 'release',
          ordinals: [0],
          deviceId: till,
        },
      }),
      agent.row({ evidence: { kind: 'outcome', redemptionId, outcome: 'confirmed' } }),
    ])

  it('are granted to an operator, with an exception, and the agent’s token is revoked', async () => {
    const { epc, nonce } = await leasedItem()
    expect(await verifyItem(epc)).toMatchObject({
      authorized: false,
      reason: 'authorization_outstanding',
      retryAfter: expect.any(Number),
    })
    expect(await exceptions('lease_overridden')).toEqual([])
    const granted = await verifyItem(epc, { operatorId })
    expect(granted).toMatchObject({ authorized: true })
    expect((await exceptions('lease_overridden')).map((each) => each.subject)).toEqual([nonce])
    expect((await verifyItem(epc, { operatorId })).replayProtectedNonce).toBe(granted.replayProtectedNonce)
    const { documents } = (await agent.call('fetchSignedDocuments', { have: {} })).body as { documents: string[] }
    expect(
      documents.some((jws) =>
        Buffer.from(jws.split('.')[1] ?? '', 'base64url')
          .toString()
          .includes(nonce),
      ),
    ).toBe(true)
    await redeem(granted.replayProtectedNonce, 'r-overridden')
    await agent.report([agent.row({ evidence: { kind: 'void', nonce } })])
    expect(await exceptions('double_redeem')).toEqual([])
  })

  it('raise double_redeem if the offline agent released them too, in any order of reports', async () => {
    const [first, second] = [await leasedItem(), await leasedItem()]
    const granted = await verifyItem(first.epc, { operatorId })
    await redeem(granted.replayProtectedNonce, 'r-here')
    await reportRelease(first.nonce, 'r-there')
    expect((await exceptions('double_redeem')).map((each) => each.subject)).toEqual([first.subject])

    const late = await verifyItem(second.epc, { operatorId })
    await reportRelease(second.nonce, 'r-there-first')
    expect(
      (
        await shop.call('redeemProtectionAuthorization', {
          replayProtectedNonce: late.replayProtectedNonce,
          deviceId: detacher,
          redemptionId: 'r-late',
          outcome: 'confirmed',
        })
      ).status,
    ).toBe(409)
    expect((await exceptions('double_redeem')).map((each) => each.subject)).toEqual([first.subject])
  })

  it('are also granted to an operator by purchase', async () => {
    const { purchase, nonce } = await leasedItem()
    const deviceId = (
      await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'pos_deactivator', name: 'Kasse 2' })
    ).deviceId
    const verify = (fields: Json = {}) =>
      shop.ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId, ...fields })
    expect(await verify()).toMatchObject({ deactivationAuthorized: false, reason: 'authorization_outstanding' })
    expect(await verify({ operatorId })).toMatchObject({
      deactivationAuthorized: true,
      authorizationToken: expect.any(String),
    })
    expect((await exceptions('lease_overridden')).map((each) => each.subject)).toContain(nonce)
  })
})
