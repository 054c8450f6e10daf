import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import type { Json } from '../../../support/cloud.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/** The cloud exchanges such a token. See test/edge-agent/agent/token-exchange.test.ts for the agent’s part. */
inFullSizeOnEveryDatabase('a token that a customer presents to an agent with an untrusted ledger', (kind) => {
  let shop: Shop
  let agent: TestAgent
  let other: TestAgent
  let policy: Json
  const station = () => shop.devices.pos_deactivator
  const setFork = (forkMs: number | null) =>
    shop.cloud.db.database.write((db) =>
      db.updateTable('agent').set({ fork_ms: forkMs }).where('agent_id', '=', agent.agentId).execute(),
    )
  const verify = (transactionId: string, deviceId = station(), more: Json = {}) =>
    shop.ok('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId, ...more })
  const updatePolicy = (fields: Json) =>
    shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, ...fields } })
  let operators = 0
  const newOperator = async (): Promise<string> => {
    const name = `Operator ${++operators}`
    return (await shop.ok('registerOperator', { storeId: shop.storeId, name, pin: '482913' })).operatorId
  }
  const soldTag = async () => {
    const [, product] = shop.products
    const tagId = 'HT-1'
    await shop.newItem(product, { tagId, protectionTechnology: undefined })
    await shop.buy([{ ean: product.ean, quantity: 1, tagIds: [tagId] }])
    return tagId
  }
  const exchange = (by: TestAgent, authorizationToken: string, more: Json = {}) =>
    by.call('verifyProtectedItem', {
      deviceId: station(),
      protectionAction: 'deactivate_label',
      authorizationToken,
      ...more,
    })
  const buy = async (quantity = 1) =>
    (await shop.buy([{ ean: shop.products[0].ean, quantity }])).transactionId as string

  beforeAll(async () => {
    shop = await openShop(kind)
    ;[agent, other] = [await enrolTestAgent(shop), await enrolTestAgent(shop)]
    for (const each of [agent, other]) await each.login()
    const devices = [station(), shop.devices.cabinet_unlocker]
    await shop.cloud.db.database.write((db) =>
      db.updateTable('device').set({ agent_id: agent.agentId }).where('device_id', 'in', devices).execute(),
    )
    ;({ policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId }))
    await setFork(shop.cloud.platform.clock.wall())
  })
  afterAll(() => shop.stop())
  beforeEach(() => updatePolicy({}))

  it('is exchanged one unit at a time, for one request each', async () => {
    const { authorizationToken: token } = await verify(await buy(2))
    const [first, second, third] = [
      await exchange(agent, token),
      await exchange(agent, token),
      await exchange(agent, token),
    ]
    for (const { body } of [first, second])
      expect(body).toMatchObject({ authorized: true, itemCount: 1, authorizationState: 'issued' })
    expect(first.body.replayProtectedNonce).not.toBe(second.body.replayProtectedNonce)
    expect(third.body).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  })

  it('is rejected from another agent, for another action, and after its purchase was cancelled', async () => {
    const purchaseId = await buy()
    const { authorizationToken: token } = await verify(purchaseId)
    expect((await exchange(other, token)).body).toMatchObject({ authorized: false, reason: 'token_invalid' })
    expect((await exchange(agent, token, { protectionAction: 'authorize_exit' })).body).toMatchObject({
      authorized: false,
      reason: 'token_invalid',
    })
    expect((await exchange(agent, 'a.b.c')).body).toMatchObject({ authorized: false, reason: 'token_invalid' })
    expect(await exchange(agent, token, { purchaseId })).toMatchObject({
      status: 400,
      body: { details: [{ path: 'authorizationToken' }] },
    })
    await shop.ok('markPurchaseCancelled', { purchaseId })
    expect((await exchange(agent, token)).body.authorized).toBe(false)
  })

  it('is not exchanged if the agent’s own ledger may have redeemed it', async () => {
    await setFork(null)
    const { authorizationToken: token } = await verify(await buy())
    await setFork(shop.cloud.platform.clock.wall())
    expect((await exchange(agent, token)).body).toMatchObject({ authorized: false, reason: 'token_invalid' })
  })

  it('is not exchanged again after it, or its operator, was revoked', async () => {
    await updatePolicy({ requiresManualOverrideAboveValue: 1 })
    for (const end of [
      ({ replayProtectedNonce }: Json) => shop.ok('revokeProtectionAuthorization', { replayProtectedNonce }),
      (_: Json, operatorId: string) => shop.ok('removeOperator', { operatorId }),
    ]) {
      const operatorId = await newOperator()
      const given = await verify(await buy(2), station(), { operatorId })
      expect((await exchange(agent, given.authorizationToken)).body).toMatchObject({ authorized: true })
      await end(given, operatorId)
      expect((await exchange(agent, given.authorizationToken)).body).toMatchObject({
        authorized: false,
        reason: 'token_revoked',
      })
    }
  })

  it('lends its approval to no other goods', async () => {
    await updatePolicy({ requiresManualOverrideAboveValue: 1 })
    const operatorId = await newOperator()
    const { authorizationToken: token } = await verify(await buy(), station(), { operatorId })
    const tagId = await soldTag()
    expect((await exchange(agent, token, { tagId })).body).toMatchObject({ authorized: false, reason: 'token_invalid' })
    expect((await exchange(agent, token)).body).toMatchObject({ authorized: true })
  })

  it('counts an approval of another operator, and one that its issue did not need', async () => {
    await updatePolicy({ requiresManualOverrideAboveValue: 100_000 })
    const [ada, bob] = [await newOperator(), await newOperator()]
    const [free, again] = [await buy(), await buy(2)]
    const { authorizationToken: token } = await verify(free, station(), { operatorId: ada })
    await updatePolicy({ requiresManualOverrideAboveValue: 1, operatorOverridesPerHour: 1 })
    await verify(await buy(), station(), { operatorId: bob })
    expect((await exchange(agent, token, { operatorId: bob })).body).toMatchObject({ reason: 'limit_exceeded' })
    expect((await exchange(agent, token)).body).toMatchObject({ authorized: true })
    expect(
      (await shop.call('verifySecurityTagDeactivation', { purchaseId: again, deviceId: station(), operatorId: ada }))
        .body,
    ).toMatchObject({ deactivationAuthorized: false, reason: 'limit_exceeded' })
  })

  it('opens a fixture with unpaid goods once', async () => {
    const deviceId = shop.devices.cabinet_unlocker
    const tagId = 'V-1'
    await shop.newItem(shop.products[1], { tagId })
    const about = { deviceId, protectionAction: 'unlock_fixture' }
    const operatorId = await newOperator()
    const { authorizationToken: token } = await shop.ok('verifyProtectedItem', { ...about, tagId, operatorId })
    const answers = await Promise.all([1, 2, 3].map(() => exchange(agent, token, about)))
    expect(answers.filter(({ body }) => body.authorized)).toHaveLength(1)
    expect((await exchange(agent, token, about)).body).toMatchObject({ reason: 'already_redeemed' })
  })

  it('opens a fixture no second time after it was redeemed in the cloud', async () => {
    const about = { deviceId: shop.devices.cabinet_unlocker, protectionAction: 'unlock_fixture' }
    const tagId = 'F-9'
    await shop.newItem(shop.products[1], { tagId, protectionTechnology: undefined })
    const operatorId = await newOperator()
    const { authorizationToken } = await shop.ok('verifyProtectedItem', { ...about, tagId, operatorId })
    const redeem = { authorizationToken, deviceId: about.deviceId, redemptionId: 'opened', outcome: 'confirmed' }
    await shop.ok('redeemProtectionAuthorization', redeem)
    expect(await exchange(agent, authorizationToken, about)).toMatchObject({
      body: { authorized: false, reason: 'already_redeemed' },
    })
  })

  it('releases one unit once if presented twice at the same time', async () => {
    const { authorizationToken: token } = await verify(await buy())
    const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(agent, token)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(answers.filter(({ body }) => body.authorized)).toHaveLength(1)
  })
})
