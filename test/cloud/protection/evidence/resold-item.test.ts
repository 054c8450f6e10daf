import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Evidence } from '../../../../policy/journal.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'

/** Each sale by another system starts a new release, independent of the earlier sale. */
inFullSizeOnEveryDatabase('goods that another system sold twice', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const detacher = () => shop.devices.self_checkout_detacher
  const detach = (epc: string, more: Json = {}) =>
    shop.ok('verifyProtectedItem', { deviceId: detacher(), protectionAction: 'detach_hard_tag', epc, ...more })
  const redeem = ({ replayProtectedNonce }: Json, redemptionId: string, outcome: string) =>
    shop.ok('redeemProtectionAuthorization', { replayProtectedNonce, deviceId: detacher(), redemptionId, outcome })
  const move = (epc: string, itemStatus: string) =>
    shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus })
  const doubleRedeems = async () =>
    ((await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: 'double_redeem' })).exceptions as Json[]).length

  /** An item that was sold elsewhere, released, returned and sold again. */
  async function soldAgain(name: string) {
    const { epc } = await shop.newItem(shop.products[0])
    await move(epc, 'paid')
    const former = await detach(epc)
    await redeem(former, `${name}-first`, 'confirmed')
    await move(epc, 'returned')
    await move(epc, 'sellable')
    await move(epc, 'paid')
    return epc
  }

  it('are released once more without a double_redeem exception', async () => {
    const before = await doubleRedeems()
    const epc = await soldAgain('good')
    const grant = await detach(epc)
    expect(grant).toMatchObject({ authorized: true })
    await redeem(grant, 'good-second', 'confirmed')
    expect(await doubleRedeems()).toBe(before)
    expect(await detach(epc)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  })

  it('may be released again after the detacher failed', async () => {
    const epc = await soldAgain('jam')
    await redeem(await detach(epc), 'jam-second', 'failed')
    expect(await detach(epc)).toMatchObject({ authorized: true })
  })

  it('are granted again after an unused token was revoked', async () => {
    const epc = await soldAgain('unused')
    const { replayProtectedNonce } = await detach(epc)
    await shop.ok('revokeProtectionAuthorization', { replayProtectedNonce })
    expect(await detach(epc)).toMatchObject({ authorized: true })
  })

  it('ignore a late report of the release before the return', async () => {
    const agent = await enrolTestAgent(shop)
    const deviceId = shop.devices.pos_deactivator
    await agent.call('reportDeviceHeartbeat', { deviceId })
    await shop.ok('updateDevice', { deviceId, canReadUhfRfid: true })
    const { epc } = await shop.newItem(shop.products[0])
    await move(epc, 'paid')
    const { body } = await agent.call('verifyProtectedItem', { deviceId, protectionAction: 'deactivate_label', epc })
    expect(body.authorized).toBe(true)
    await move(epc, 'returned')
    await move(epc, 'sellable')
    await move(epc, 'paid')
    const nonce = body.replayProtectedNonce as string
    const claim: Evidence = {
      kind: 'claim',
      redemptionId: 'late-first',
      nonce,
      source: 'token',
      rightClass: 'release',
      ordinals: [0],
      deviceId,
    }
    await agent.report([
      agent.row({ evidence: claim }),
      agent.row({ evidence: { kind: 'outcome', redemptionId: 'late-first', outcome: 'confirmed' } }),
    ])
    expect(await detach(epc)).toMatchObject({ authorized: true })
  })
})
