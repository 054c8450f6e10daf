import { afterAll, beforeAll, expect, it } from 'vitest'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

const START = Date.parse('2026-11-20T09:00:00Z')
const YEAR_MS = 365 * 86_400_000

/**
 * Corrected agents reject the tokens of a clock that was a year ahead, so the cloud must grant the paid goods again.
 */
inFullSizeOnEveryDatabase('goods that the cloud granted while its clock was ahead', (kind) => {
  let platform: VirtualPlatform
  let shop: Shop
  let agent: TestAgent
  let admin: string

  beforeAll(async () => {
    platform = virtualPlatform({ startMs: START })
    shop = await openShop(kind, { platform })
    agent = await enrolTestAgent(shop)
    admin = await shop.cloud.key('admin', 'live')
  })
  afterAll(() => shop.stop())

  const startAt = (ms: number) => shop.cloud.restart(() => platform.setWall(ms + platform.clock.elapsed()))
  /** The procedure of docs/reference/tokens.md: correct the clock, then revoke the key that signed the wrong time. */
  async function correctClock(): Promise<void> {
    await startAt(START)
    await shop.cloud.ok(admin, 'rotateSigningKey', { mode: 'test', use: 'freshness', revoke: true })
  }
  const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Json
  const buy = () => shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
  const verify = (purchaseId: string, deviceId: string) =>
    shop.ok('verifySecurityTagDeactivation', { purchaseId, deviceId })

  it('are granted again to a device without an agent', async () => {
    const deviceId = shop.devices.pos_deactivator
    await startAt(START + YEAR_MS)
    const { transactionId } = await buy()
    expect(claimsOf((await verify(transactionId, deviceId)).authorizationToken).iat * 1_000).toBeGreaterThan(
      START + YEAR_MS - 1,
    )
    await correctClock()
    const { authorizationToken } = await verify(transactionId, deviceId)
    expect(claimsOf(authorizationToken).iat * 1_000).toBeLessThan(START + YEAR_MS)
    expect(
      await shop.ok('redeemProtectionAuthorization', { authorizationToken, deviceId, redemptionId: 'r-1' }),
    ).toMatchObject({ success: true })
  })

  it('are granted again after the agent of the first lease releases it', async () => {
    const deviceId = shop.devices.self_checkout_detacher
    await shop.ok('updateDevice', { deviceId, workflowType: 'staff_assisted' })
    await agent.call('reportDeviceHeartbeat', { deviceId })
    await startAt(START + YEAR_MS)
    await agent.login()
    const { transactionId } = await buy()
    const verifyByAgent = async () =>
      (await agent.call('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId })).body
    const before = await verifyByAgent()
    expect(before).toMatchObject({ deactivationAuthorized: true })
    await correctClock()
    await agent.login()
    const refused = await verifyByAgent()
    expect(refused).toMatchObject({ deactivationAuthorized: false, reason: 'authorization_outstanding' })
    expect(refused.retryAfter).toBeLessThan(300)
    const recalled = await shop.cloud.db.database.reads
      .selectFrom('protection_authorization')
      .select('void_asked_ms')
      .where('nonce', '=', before.replayProtectedNonce)
      .executeTakeFirst()
    expect(recalled?.void_asked_ms).not.toBeNull()
    await agent.report([agent.row({ evidence: { kind: 'void', nonce: before.replayProtectedNonce } })])
    const granted = await verifyByAgent()
    expect(granted).toMatchObject({ deactivationAuthorized: true })
    expect(granted.replayProtectedNonce).not.toBe(before.replayProtectedNonce)
  })
})
