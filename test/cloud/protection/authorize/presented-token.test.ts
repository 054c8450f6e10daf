import { afterAll, beforeAll, expect, it } from 'vitest'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import type { Json } from '../../../support/cloud.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/** The cloud exchanges such a token. See test/edge-agent/agent/token-exchange.test.ts for the agent’s part. */
inFullSizeOnEveryDatabase('a token that a customer presents to an agent with an untrusted ledger', (kind) => {
  let shop: Shop
  let agent: TestAgent
  let other: TestAgent
  const station = () => shop.devices.pos_deactivator
  const setFork = (forkMs: number | null) =>
    shop.cloud.db.database.write((db) =>
      db.updateTable('agent').set({ fork_ms: forkMs }).where('agent_id', '=', agent.agentId).execute(),
    )
  const verify = (transactionId: string, deviceId = station()) =>
    shop.ok('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId })
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
    await shop.cloud.db.database.write((db) =>
      db.updateTable('device').set({ agent_id: agent.agentId }).where('device_id', '=', station()).execute(),
    )
    await setFork(shop.cloud.platform.clock.wall())
  })
  afterAll(() => shop.stop())

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
    expect(third.body).toMatchObject({ authorized: false, reason: 'authorization_outstanding' })
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

  it('releases one unit once if presented twice at the same time', async () => {
    const { authorizationToken: token } = await verify(await buy())
    const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(agent, token)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(answers.filter(({ body }) => body.authorized)).toHaveLength(1)
  })
})
