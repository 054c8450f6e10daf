import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signAuthorization, type AuthorizationClaims } from '../../../../policy/documents/authorization.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { testKey } from '../../../support/keys.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { releaseRefunds } from '../../../../cloud/sales/payments/release-refunds.ts'

inFullSizeOnEveryDatabase('redeemProtectionAuthorization', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let deviceId: string
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    deviceId = shop.devices.pos_deactivator
  })
  afterAll(() => shop.stop())

  const grantFor = async (quantity: number) => {
    const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity }])
    return shop.ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId })
  }
  const redeem = (body: Json) => shop.call('redeemProtectionAuthorization', { deviceId, ...body })

  describe('a device without an agent that works offline', () => {
    let offlineId: string
    let otherId: string
    beforeAll(async () => {
      const add = async () =>
        (
          await shop.ok('registerDevice', {
            storeId: shop.storeId,
            deviceType: 'pos_deactivator',
            supportsOfflineAuth: true,
          })
        ).deviceId as string
      ;[offlineId, otherId] = [await add(), await add()]
    })
    const buy = async () => (await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])).transactionId as string
    const verify = (purchaseId: string, at: string, fields: Json = {}) =>
      shop.ok('verifySecurityTagDeactivation', { purchaseId, deviceId: at, ...fields })
    const outstanding = { deactivationAuthorized: false, authorizationToken: null, reason: 'authorization_outstanding' }

    it('is the only holder of its token until it has expired and the guard of 60 s is over', async () => {
      const purchaseId = await buy()
      const grant = await verify(purchaseId, offlineId)
      expect(grant.deactivationAuthorized).toBe(true)
      expect((await verify(purchaseId, offlineId)).authorizationToken).toBe(grant.authorizationToken)
      for (const at of [otherId, deviceId])
        expect(await verify(purchaseId, at)).toMatchObject({ ...outstanding, retryAfter: expect.closeTo(360, -1) })
      // Neither an operator nor a revocation can reach the device.
      expect(await verify(purchaseId, otherId, { operatorId: 'op-1' })).toMatchObject(outstanding)
      const { replayProtectedNonce } = grant
      await shop.ok('revokeProtectionAuthorization', { replayProtectedNonce })
      expect(await verify(purchaseId, otherId)).toMatchObject(outstanding)
      expect(await verify(purchaseId, offlineId)).toMatchObject(outstanding)
      forward(350_000)
      expect(await verify(purchaseId, otherId)).toMatchObject(outstanding)
      forward(12_000)
      expect(await verify(purchaseId, otherId)).toMatchObject({ deactivationAuthorized: true })
    })

    it('holds the refund of a cancelled purchase back until its token has ended', async () => {
      const purchaseId = await buy()
      await verify(purchaseId, offlineId)
      const { database } = shop.cloud.db
      const refund = async () => {
        await releaseRefunds(database, shop.cloud.cloud.services)
        return (await shop.ok('fetchPurchase', { transactionId: purchaseId })).refundStatus
      }
      expect(await shop.ok('markPurchaseCancelled', { purchaseId })).toMatchObject({ refundStatus: 'pending' })
      forward(350_000)
      expect(await refund()).toBe('pending')
      forward(12_000)
      expect(await refund()).toBe('done')
    })

    it('reports releases after they happened, also late or after a revocation', async () => {
      const { replayProtectedNonce } = await verify(await buy(), offlineId)
      const occurredAt = new Date(platform.clock.wall() + 10_000).toISOString()
      await shop.ok('revokeProtectionAuthorization', { replayProtectedNonce })
      forward(3_600_000)
      const report = { deviceId: offlineId, replayProtectedNonce, redemptionId: 'late', occurredAt }
      // Without an outcome, the device asks before it acts.
      expect(await redeem(report)).toMatchObject({ status: 409, body: { reason: 'token_revoked' } })
      expect(await redeem({ ...report, outcome: 'confirmed' })).toMatchObject({ status: 200, body: { remaining: 0 } })
      const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId })
      expect(exceptions).toContainEqual(
        expect.objectContaining({ kind: 'redeemed_after_revocation', deviceId: offlineId }),
      )
    })

    it('raises an exception if another device released the unit in between', async () => {
      const purchaseId = await buy()
      const { replayProtectedNonce } = await verify(purchaseId, offlineId)
      const occurredAt = new Date(platform.clock.wall()).toISOString()
      forward(361_000)
      const second = await verify(purchaseId, otherId)
      const used = { redemptionId: 'second', outcome: 'confirmed' }
      await redeem({ deviceId: otherId, replayProtectedNonce: second.replayProtectedNonce, ...used })
      await redeem({
        deviceId: offlineId,
        replayProtectedNonce,
        redemptionId: 'first',
        outcome: 'confirmed',
        occurredAt,
      })
      const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId })
      expect(exceptions).toContainEqual(expect.objectContaining({ kind: 'double_redeem', purchaseId }))
    })
  })

  it('uses up the steps in order, each once, and repeats the response of a redemption', async () => {
    const grant = await grantFor(2)
    const { replayProtectedNonce } = grant
    const first = await redeem({ replayProtectedNonce, redemptionId: 'a' })
    expect(first).toMatchObject({ status: 200, body: { authorizationState: 'redeemed', remaining: 1 } })
    const second = await redeem({ replayProtectedNonce, redemptionId: 'b' })
    expect(second.body.remaining).toBe(0)
    expect((await redeem({ replayProtectedNonce, redemptionId: 'a' })).text).toBe(first.text)
    expect((await redeem({ replayProtectedNonce, redemptionId: 'a', outcome: 'confirmed' })).text).toBe(first.text)
    expect(await redeem({ replayProtectedNonce, redemptionId: 'c' })).toMatchObject({
      status: 409,
      body: { code: 'failed-precondition', reason: 'already_redeemed' },
    })
  })

  it('returns the same event id for each repetition; the event has the scan source', async () => {
    const purchase = await shop.buy([{ ean: shop.products[0].ean, quantity: 2 }])
    const { replayProtectedNonce } = await shop.ok('verifySecurityTagDeactivation', {
      purchaseId: purchase.transactionId,
      deviceId,
      scanSource: 'service_desk',
    })
    const at = await redeem({ replayProtectedNonce, redemptionId: 'red-outcome-1' })
    const failed = await redeem({ replayProtectedNonce, redemptionId: 'red-outcome-2', outcome: 'failed' })
    for (let n = 0; n < 2; n++)
      expect(
        (await redeem({ replayProtectedNonce, redemptionId: 'red-outcome-1', outcome: 'confirmed' })).body.eventId,
      ).toBe(at.body.eventId)
    const { events } = await shop.ok('fetchProtectionEvents', {
      storeId: shop.storeId,
      purchaseId: purchase.transactionId,
    })
    expect(events.filter((e: Json) => e.type.startsWith('protection.action.'))).toMatchObject([
      { type: 'protection.action.failed', eventId: failed.body.eventId, scanSource: 'service_desk' },
      { type: 'protection.action.completed', eventId: at.body.eventId, scanSource: 'service_desk' },
    ])
  })

  it('takes effect at once for a device whose clock is ahead', async () => {
    const { replayProtectedNonce } = await grantFor(1)
    forward(3_000)
    const occurredAt = new Date(platform.clock.wall() + 299_000).toISOString()
    const { status, body } = await redeem({ replayProtectedNonce, redemptionId: 'ahead', occurredAt })
    expect([status, body.authorizationState]).toEqual([200, 'redeemed'])
    expect(Date.parse(body.redeemedAt)).toBeLessThanOrEqual(platform.clock.wall())
    const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId })
    expect(exceptions.filter((each: Json) => each.kind === 'late_redeem')).toEqual([])
  })

  it('redeems a named step once', async () => {
    const { replayProtectedNonce } = await grantFor(2)
    expect((await redeem({ replayProtectedNonce, redemptionId: 's2', step: 2 })).status).toBe(200)
    expect(await redeem({ replayProtectedNonce, redemptionId: 's2b', step: 2 })).toMatchObject({
      status: 409,
      body: { reason: 'already_redeemed' },
    })
    expect((await redeem({ replayProtectedNonce, redemptionId: 's3', step: 3 })).status).toBe(400)
  })

  it('redeems for exactly one of 64 concurrent calls', async () => {
    const { replayProtectedNonce } = await grantFor(1)
    const answers = await Promise.all(
      Array.from({ length: 64 }, (_, i) => redeem({ replayProtectedNonce, redemptionId: `race-${i}` })),
    )
    expect(answers.filter((a) => a.status === 200)).toHaveLength(1)
    expect(answers.filter((a) => a.status === 409)).toHaveLength(63)
  })

  it('stores the first outcome and replaces only unknown', async () => {
    const grant = await grantFor(1)
    const body = { replayProtectedNonce: grant.replayProtectedNonce, redemptionId: 'o1' }
    await redeem({ ...body, outcome: 'unknown' })
    await redeem({ ...body, outcome: 'confirmed' })
    await redeem({ ...body, outcome: 'failed' })
    const row = await shop.cloud.db.database.reads
      .selectFrom('redemption')
      .select('outcome')
      .where('redemption_id', '=', 'o1')
      .executeTakeFirst()
    expect(row?.outcome).toBe('confirmed')
  })

  it('rejects another device, a forged token, an unknown nonce and a missing name', async () => {
    const grant = await grantFor(1)
    const other = shop.devices.self_checkout_detacher
    expect(
      await redeem({ authorizationToken: grant.authorizationToken, redemptionId: 'x', deviceId: other }),
    ).toMatchObject({ status: 409, body: { reason: 'token_invalid' } })
    const forged = `${grant.authorizationToken.slice(0, -6)}AAAAAA`
    expect((await redeem({ authorizationToken: forged, redemptionId: 'x' })).status).toBe(404)
    expect((await redeem({ replayProtectedNonce: 'AAAAAAAAAAAAAAAAAAAAAA', redemptionId: 'x' })).status).toBe(404)
    expect((await redeem({ redemptionId: 'x' })).status).toBe(400)
    expect(
      (await redeem({ replayProtectedNonce: grant.replayProtectedNonce, redemptionId: 'x', deviceId: 'dev_nobody' }))
        .status,
    ).toBe(404)
  })

  it('rejects a token signed with an unknown key', async () => {
    const now = Math.floor(Date.now() / 1_000)
    const claims: AuthorizationClaims = {
      iss: 'acc_x.test',
      aud: deviceId,
      iat: now,
      exp: now + 300,
      jti: 'A'.repeat(22),
      led: 'cloud',
      act: 'deactivate_label',
      cnt: 1,
      eid: 'evt_1',
      rc: 0,
      pv: 1,
      kv: 1,
    }
    expect(
      (await redeem({ authorizationToken: signAuthorization(claims, testKey('token').signer), redemptionId: 'x' }))
        .status,
    ).toBe(404)
  })

  it('rejects revoked authorizations and keeps earlier redemptions', async () => {
    const [unused, used] = [await grantFor(1), await grantFor(1)]
    await redeem({ replayProtectedNonce: used.replayProtectedNonce, redemptionId: 'before' })
    expect(
      await shop.ok('revokeProtectionAuthorization', { replayProtectedNonce: unused.replayProtectedNonce }),
    ).toMatchObject({ authorizationState: 'revoked' })
    expect(
      await shop.ok('revokeProtectionAuthorization', { replayProtectedNonce: used.replayProtectedNonce }),
    ).toMatchObject({ authorizationState: 'redeemed' })
    expect(await redeem({ replayProtectedNonce: unused.replayProtectedNonce, redemptionId: 'after' })).toMatchObject({
      status: 409,
      body: { reason: 'token_revoked' },
    })
  })

  it('leaves no error in the log', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
