import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../support/databases.ts'
import { movablePlatform } from '../../support/movable-platform.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

/** Overrides are limited per operator and hour, in the transaction that grants (ADR releases). */
inFullSizeOnEveryDatabase('the override limit of an operator', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let policy: Json
  let detacher: string
  let operators = 0
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    policy = (await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })).policy
    detacher = shop.devices.self_checkout_detacher
  })
  afterAll(() => shop.stop())

  const newOperator = () => `op-${++operators}`
  const updatePolicy = (changed: Json) =>
    shop.ok('updateProtectionPolicy', {
      storeId: shop.storeId,
      policy: { ...policy, requiresManualOverrideAboveValue: 0.01, ...changed },
    })
  async function paid(): Promise<string> {
    const [p] = shop.products
    const { epc } = await shop.newItem(p)
    await shop.buy([{ ean: p.ean, quantity: 1, epcs: [epc] }])
    return epc
  }
  const verifyItem = (epc: string, operatorId: string, more: Json = {}, headers: Record<string, string> = {}) =>
    shop.ok(
      'verifyProtectedItem',
      { deviceId: detacher, protectionAction: 'detach_hard_tag', epc, operatorId, ...more },
      headers,
    )

  it('is the number in the policy, per hour and operator', async () => {
    await updatePolicy({ operatorOverridesPerHour: 2 })
    const [anna, ben] = [newOperator(), newOperator()]
    const [one, two, three] = [await paid(), await paid(), await paid()]
    for (const epc of [one, two])
      expect(await verifyItem(epc, anna)).toMatchObject({ authorized: true, authorizationToken: expect.any(String) })
    const refused = await verifyItem(three, anna, { explain: true })
    expect(refused).toMatchObject({ authorized: false, reason: 'limit_exceeded', authorizationToken: null })
    expect(refused.trace.at(-1)).toMatchObject({
      check: 'limit_exceeded',
      detail: 'the operator has approved 2 overrides in the last hour; another operator must approve this one',
    })
    expect(await verifyItem(three, anna.toUpperCase())).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    expect(await verifyItem(three, ben)).toMatchObject({ authorized: true })
    forward(3_600_000)
    expect(await verifyItem(await paid(), anna)).toMatchObject({ authorized: true })
    // The same request was denied before.
    await shop.ok('revokeProtectionAuthorization', {
      replayProtectedNonce: (await verifyItem(three, ben)).replayProtectedNonce,
    })
    expect(await verifyItem(three, anna, { explain: true })).toMatchObject({ authorized: true })
  })

  it('forbids all overrides with 0, and does not limit grants that need no operator', async () => {
    await updatePolicy({ operatorOverridesPerHour: 0 })
    const [epc, operatorId] = [await paid(), newOperator()]
    expect(await verifyItem(epc, operatorId)).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
    expect(await verifyItem(epc, operatorId, { protectionAction: 'verify_item_status' })).toMatchObject({
      authorized: true,
    })
    const tried = await shop.ok('simulateProtectionPolicy', {
      storeId: shop.storeId,
      policy: { ...policy, requiresManualOverrideAboveValue: 0.01, operatorOverridesPerHour: 1 },
    })
    expect(tried.changed.at(0)).toMatchObject({
      before: { authorized: false, reason: 'limit_exceeded' },
      after: { authorized: true },
    })
    await updatePolicy({ requiresManualOverrideAboveValue: null, operatorOverridesPerHour: 0 })
    expect(await verifyItem(epc, operatorId)).toMatchObject({ authorized: true })
    // Cabinets are always opened by staff, so this is no override.
    const tagId = `case-${kind}`
    await shop.newItem(shop.products[0], { tagId, protectionTechnology: 'mechanical_lock' })
    expect(
      await shop.ok('verifyProtectedItem', {
        deviceId: shop.devices.cabinet_unlocker,
        protectionAction: 'unlock_fixture',
        tagId,
        operatorId,
      }),
    ).toMatchObject({ authorized: true })
  })

  it('counts an authorization once, however often the device requests it', async () => {
    await updatePolicy({ operatorOverridesPerHour: 1 })
    const [epc, operatorId] = [await paid(), newOperator()]
    const first = await verifyItem(epc, operatorId)
    for (const key of ['k-1', 'k-2'])
      expect(
        (await verifyItem(epc, operatorId, {}, { 'Idempotency-Key': `${operatorId}-${key}` })).replayProtectedNonce,
      ).toBe(first.replayProtectedNonce)
    expect(await verifyItem(await paid(), operatorId)).toMatchObject({ authorized: false, reason: 'limit_exceeded' })
  })

  it('applies to concurrent requests', async () => {
    await updatePolicy({ operatorOverridesPerHour: 3 })
    const operatorId = newOperator()
    const epcs = await Promise.all(Array.from({ length: 8 }, () => paid()))
    const answers = await Promise.all(epcs.map((epc) => verifyItem(epc, operatorId)))
    expect(answers.filter((a) => a.authorized)).toHaveLength(3)
    expect(new Set(answers.flatMap((a) => a.reason ?? []))).toEqual(new Set(['limit_exceeded']))
  })

  it('counts a whole purchase once, and ignores grants that need no operator', async () => {
    const [cheap, dear] = [...shop.products].sort((a, b) => a.price - b.price)
    await updatePolicy({ requiresManualOverrideAboveValue: dear.price, operatorOverridesPerHour: 1 })
    const operatorId = newOperator()
    const verify = async (items: Json[]) =>
      shop.ok('verifySecurityTagDeactivation', {
        purchaseId: (await shop.buy(items)).transactionId,
        deviceId: shop.devices.pos_deactivator,
        operatorId,
      })
    expect(await verify([{ ean: dear.ean, quantity: 3 }])).toMatchObject({ deactivationAuthorized: true, itemCount: 3 })
    expect(await verify([{ ean: dear.ean, quantity: 1 }])).toMatchObject({
      deactivationAuthorized: false,
      reason: 'limit_exceeded',
    })
    expect(
      await verify([
        { ean: dear.ean, quantity: 2 },
        { ean: cheap.ean, quantity: 1 },
      ]),
    ).toMatchObject({ deactivationAuthorized: true, itemCount: 1 })
  })

  it('counts a token of an untrusted ledger at its issue, not again at its exchange', async () => {
    await updatePolicy({ operatorOverridesPerHour: 1 })
    const agent = await enrolTestAgent(shop)
    const operatorId = newOperator()
    await shop.cloud.db.database.write(async (db) => {
      await db.updateTable('device').set({ agent_id: agent.agentId }).where('device_id', '=', detacher).execute()
      await db
        .updateTable('agent')
        .set({ fork_ms: platform.clock.wall() })
        .where('agent_id', '=', agent.agentId)
        .execute()
    })
    const { authorizationToken } = await verifyItem(await paid(), operatorId)
    const exchanged = await agent.call('verifyProtectedItem', {
      deviceId: detacher,
      protectionAction: 'detach_hard_tag',
      authorizationToken,
    })
    expect(exchanged.body).toMatchObject({ authorized: true, authorizationToken: expect.any(String) })
    await shop.cloud.db.database.write((db) =>
      db.updateTable('device').set({ agent_id: null }).where('device_id', '=', detacher).execute(),
    )
    expect(await verifyItem(await paid(), operatorId)).toMatchObject({ reason: 'limit_exceeded' })
  })

  it('counts the override of an offline agent’s lease', async () => {
    await updatePolicy({ requiresManualOverrideAboveValue: null, operatorOverridesPerHour: 1 })
    const agent = await enrolTestAgent(shop)
    const till = shop.devices.pos_deactivator
    await agent.call('reportDeviceHeartbeat', { deviceId: till })
    const operatorId = newOperator()
    const leasedItem = async () => {
      const [p] = shop.products
      const { epc } = await shop.newItem(p)
      const { transactionId } = await shop.buy([{ ean: p.ean, quantity: 1, epcs: [epc] }])
      await agent.call('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId: till })
      expect(
        await shop.ok('verifyProtectedItem', { deviceId: detacher, protectionAction: 'detach_hard_tag', epc }),
      ).toMatchObject({ reason: 'authorization_outstanding' })
      return epc
    }
    expect(await verifyItem(await leasedItem(), operatorId)).toMatchObject({ authorized: true })
    expect(await verifyItem(await leasedItem(), operatorId)).toMatchObject({
      authorized: false,
      reason: 'limit_exceeded',
    })
  })
})
