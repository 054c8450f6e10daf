import { afterEach, describe, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { addAgent, type SecondAgent } from '../../support/second-agent.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

/** Tests two agents of one store on a virtual clock. They exchange data only through the cloud. */

let store: TestStore
let others: SecondAgent[] = []
afterEach(async () => {
  for (const other of others) await other.stop()
  others = []
  await store.stop()
})

const station = () => store.shop.devices[LANES.station]
const gate = () => store.shop.devices[LANES.gate]
const product = () => store.shop.products.toSorted((a, b) => a.price - b.price)[0]
const ok = (operation: string, body: Json) => store.drive(store.shop.ok(operation, body))
const add = async (deviceIds: string[], options: Parameters<typeof addAgent>[2] = { broker: true }) => {
  const other = await addAgent(store, deviceIds, options)
  others.push(other)
  return other
}
const register = async (deviceType: string) =>
  (await ok('registerDevice', { storeId: store.shop.storeId, deviceType })).deviceId as string
const tokenFor = (purchaseId: string, deviceId = station()) =>
  ok('verifySecurityTagDeactivation', { purchaseId, deviceId })
const authorization = (nonce: string) =>
  store.shop.cloud.db.database.reads
    .selectFrom('protection_authorization')
    .selectAll()
    .where('nonce', '=', nonce)
    .executeTakeFirstOrThrow()
const raised = async () =>
  ((await ok('fetchExceptions', { storeId: store.shop.storeId })).exceptions as Json[]).map(({ kind }) => kind)
/** Returns the result of `work` and its duration in virtual ms. */
const took = async <T>(work: () => Promise<T>): Promise<{ ms: number; value: T }> => {
  const from = store.world.clock.elapsed()
  const value = await work()
  return { ms: store.world.clock.elapsed() - from, value }
}
const buy = () => store.buy([{ ean: product().ean, quantity: 1 }])
const offline = async () => {
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
}
const online = async () => {
  store.network(true)
  await store.until('all told', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
}

describe('a revoked token', () => {
  it('is voided by its agent within a second, so that a cancelled purchase is refunded at once', async () => {
    store = await openStore({ broker: true })
    const { purchase } = await buy()
    const { replayProtectedNonce: nonce, authorizationToken: token } = await tokenFor(purchase.transactionId)
    const { ms } = await took(async () => {
      await ok('revokeProtectionAuthorization', { replayProtectedNonce: nonce })
      await store.until('given up', async () => (await authorization(nonce)).voided_ms !== null)
    })
    expect(ms).toBeLessThan(1_000)
    expect(await store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', token })).toMatchObject({
      authorized: false,
      reason: 'token_revoked',
    })

    const again = await tokenFor(purchase.transactionId)
    expect(again.replayProtectedNonce).not.toBe(nonce)
    const cancelled = await took(async () => {
      await ok('markPurchaseCancelled', { transactionId: purchase.transactionId })
      await store.until('given up', async () => (await authorization(again.replayProtectedNonce)).voided_ms !== null)
    })
    expect(cancelled.ms).toBeLessThan(1_000)
    await store.until(
      'the refund',
      async () =>
        (await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).refundStatus === 'done',
      10_000,
    )
    expect(await raised()).toEqual([])
  })

  it('is voided without a broker with the next poll', async () => {
    store = await openStore()
    const { purchase } = await buy()
    const { replayProtectedNonce: nonce } = await tokenFor(purchase.transactionId)
    await ok('revokeProtectionAuthorization', { replayProtectedNonce: nonce })
    await store.until('given up', async () => (await authorization(nonce)).voided_ms !== null, 16_000)
  })

  it('keeps the redemptions of its used steps', async () => {
    store = await openStore({ broker: true })
    const { purchase } = await store.buy([{ ean: product().ean, quantity: 2 }])
    const { replayProtectedNonce: nonce, authorizationToken: token } = await tokenFor(purchase.transactionId)
    expect(await store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', token })).toMatchObject({
      authorized: true,
      remaining: 1,
    })
    await ok('revokeProtectionAuthorization', { replayProtectedNonce: nonce })
    await store.until('given up', async () => (await authorization(nonce)).voided_ms !== null)
    expect(await raised()).toEqual([])
    const rest = await tokenFor(purchase.transactionId)
    expect(rest).toMatchObject({ deactivationAuthorized: true, itemCount: 1 })
  })
})

it('a refund waits until the agents have applied the denial, and reports goods that left meanwhile', async () => {
  store = await openStore()
  const [{ purchase, receipt }, { purchase: kept, receipt: keptReceipt }] = [await buy(), await buy()]
  await offline()
  for (const { transactionId } of [purchase, kept]) await ok('markPurchaseCancelled', { transactionId })
  await store.world.advance(10_000)
  const statusOf = async (transactionId: string) => (await ok('fetchPurchase', { transactionId })).refundStatus
  expect(await statusOf(purchase.transactionId)).toBe('pending')
  // The offline agent does not know the cancellation, so it still honours the receipt.
  expect(await store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', receipt })).toMatchObject({
    authorized: true,
    offline: true,
  })
  await online()
  for (const { transactionId } of [purchase, kept])
    await store.until(
      'the refund',
      async () => (await store.shop.ok('fetchPurchase', { transactionId })).refundStatus === 'done',
      20_000,
    )
  const [agent] = (await ok('fetchAgents', { storeId: store.shop.storeId })).agents
  const { deny_seq: denied } = await store.shop.cloud.db.database.reads
    .selectFrom('purchase')
    .select('deny_seq')
    .where('purchase_id', '=', kept.transactionId)
    .executeTakeFirstOrThrow()
  expect(agent.denyVersion).toBeGreaterThanOrEqual(denied ?? Infinity)
  expect(await raised()).toEqual(['redeemed_after_revocation'])
  await offline()
  expect(
    await store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', receipt: keptReceipt }),
  ).toMatchObject({ authorized: false, reason: 'token_revoked', offline: true })
})

it('a lease moves to the requesting device of another agent within the request, unless the holder used it or is offline', async () => {
  store = await openStore({ broker: true })
  const second = await register('pos_deactivator')
  await add([second])
  const [{ purchase }, { purchase: used }] = [await buy(), await buy()]
  const held = await tokenFor(purchase.transactionId)
  const { ms, value: handed } = await took(() => tokenFor(purchase.transactionId, second))
  expect(handed).toMatchObject({ deactivationAuthorized: true, itemCount: 1 })
  expect(ms).toBeLessThan(1_000)
  expect(
    await store.authorize({
      deviceId: station(),
      protectionAction: 'deactivate_label',
      token: held.authorizationToken,
    }),
  ).toMatchObject({ authorized: false, reason: 'token_revoked' })
  // The lease returns to the first device, with another token than the one that it gave up.
  const back = await tokenFor(purchase.transactionId)
  expect(back.deactivationAuthorized).toBe(true)
  expect(back.replayProtectedNonce).not.toBe(held.replayProtectedNonce)

  const usedToken = await tokenFor(used.transactionId)
  expect(
    await store.authorize({
      deviceId: station(),
      protectionAction: 'deactivate_label',
      token: usedToken.authorizationToken,
    }),
  ).toMatchObject({ authorized: true })
  expect(await tokenFor(used.transactionId, second)).toMatchObject({
    authorizationToken: null,
    reason: 'already_redeemed',
  })

  await offline()
  const away = await took(() => tokenFor(purchase.transactionId, second))
  expect(away.value).toMatchObject({
    authorizationToken: null,
    reason: 'authorization_outstanding',
    retryAfter: expect.any(Number),
  })
  expect(away.ms).toBeLessThan(1_500)
  await online()
  await store.until(
    'handed over',
    async () => (await tokenFor(purchase.transactionId, second)).authorizationToken !== null,
    20_000,
  )
  expect(await raised()).toEqual([])
})

it('a device moves to another agent once the former one has voided its tokens, and both apply the move', async () => {
  store = await openStore({ broker: true })
  const other = await add([])
  const { agentId } = other.agent.identity
  const held = await tokenFor((await buy()).purchase.transactionId)
  const knownTo = (agent: TestStore['agent']) =>
    agent.trust.policy?.devices.find((d) => d.deviceId === station())?.agentId
  const { ms } = await took(async () => {
    expect(await ok('updateDevice', { deviceId: station(), agentId })).toMatchObject({
      agentId: store.identity.agentId,
      movingToAgentId: agentId,
    })
    await store.until('both follow', () => knownTo(store.agent) === agentId && knownTo(other.agent) === agentId)
  })
  expect(ms).toBeLessThan(1_500)
  const { receipt } = await buy()
  const wish = { deviceId: station(), protectionAction: 'deactivate_label' }
  expect(await store.authorize({ ...wish, token: held.authorizationToken })).toMatchObject({
    authorized: false,
    reason: 'device_unknown',
  })
  expect(await store.authorize({ ...wish, receipt })).toMatchObject({ authorized: false, reason: 'device_unknown' })

  // The device returns to the first agent, which has no open token for it.
  await ok('updateDevice', { deviceId: station(), agentId: store.identity.agentId })
  await store.until('known', () => knownTo(store.agent) === store.identity.agentId)
  expect(await store.authorize({ ...wish, receipt: (await buy()).receipt })).toMatchObject({ authorized: true })
})

it('a new home accepts no older receipt until the former home has reported its redemptions', async () => {
  store = await openStore()
  const secondGate = await register('exit_gate')
  const other = await add([secondGate], {})
  await store.until('the home', () => other.agent.trust.policy?.policy.home === store.identity.agentId)
  const [used, free] = [await buy(), await buy()]
  const leave = (receipt: string) => other.authorize({ deviceId: secondGate, action: 'authorize_exit', receipt })
  const isHome = () => other.agent.status().isHome
  await offline()
  expect(
    await store.authorize({ deviceId: gate(), protectionAction: 'authorize_exit', receipt: used.receipt }),
  ).toMatchObject({ authorized: true, offline: true })
  await ok('moveReceiptHome', { storeId: store.shop.storeId, home: other.agent.identity.agentId })
  await store.until('the new home', isHome, 20_000)
  // After some polls the new home still waits for the former home.
  await store.world.advance(20_000)
  const later = await buy()
  other.network(false)
  await store.until('alone', async () => {
    await other.agent.link.poll()
    return !other.agent.link.isOnline
  })
  expect(await leave(used.receipt)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  expect(await leave(free.receipt)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
  expect(await leave(later.receipt)).toMatchObject({ authorized: true, offline: true })
  await online()
  other.network(true)
  const honours = () =>
    other.agent.link.isOnline && !other.agent.trust.isImporting(store.world.clock.wall() / 1_000 + 60)
  await store.until('all that was used is known', honours, 60_000)
  other.network(false)
  await store.until('alone', async () => {
    await other.agent.link.poll()
    return !other.agent.link.isOnline
  })
  expect(await leave(used.receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
  expect(await leave(free.receipt)).toMatchObject({ authorized: true, offline: true })
  other.network(true)
  expect(await raised()).toEqual([])
})

it('an agent learns at once that its ledger got a new generation because of a copy, and continues with the cloud', async () => {
  store = await openStore({ broker: true })
  await store.until('told', () => store.agent.ledger.journal.waiting === 0)
  let copy: SecondAgent | undefined
  await store.restart(async () => {
    copy = await add([station()], { copyOf: store.dataDir })
    copy.network(false)
  })
  await online()
  const release = { deviceId: station(), protectionAction: 'deactivate_label' }
  expect(await store.authorize({ ...release, receipt: (await buy()).receipt })).toMatchObject({ authorized: true })
  await online()
  copy?.network(true)
  await store.until('the copy goes on', () => copy?.agent.ledger.generation === 2, 60_000)
  await store.until('the agent has heard', () => store.agent.ledger.generation === 2, 20_000)
  expect(await raised()).toEqual(['ledger_rollback'])
  await online()
  expect(await store.authorize({ ...release, receipt: (await buy()).receipt })).toMatchObject({
    authorized: true,
    offline: false,
  })
})

it('both copies of a forked agent report the fork and release nothing alone until an operator resolves it', async () => {
  store = await openStore({ broker: true })
  await store.until('told', () => store.agent.ledger.journal.waiting === 0)
  const receipts = [await buy(), await buy(), await buy(), await buy()].map(({ receipt }) => receipt)
  const held = await tokenFor((await buy()).purchase.transactionId)
  let copy: SecondAgent | undefined
  await store.restart(async () => {
    copy = await add([station()], { copyOf: store.dataDir })
  })
  await store.until('online', () => store.agent.link.isOnline)
  const release = { deviceId: station(), protectionAction: 'deactivate_label' }
  expect(await store.authorize({ ...release, receipt: receipts[0] })).toMatchObject({ authorized: true })
  await online()
  // The copy writes a different row with the same number.
  await copy?.authorize({ deviceId: station(), action: 'deactivate_label', receipt: 'nonsense' })
  const { ms } = await took(async () => {
    await store.until('the fork at the copy', () => copy?.agent.status().ledgerDoubt === 'forked', 30_000)
    await store.until('the fork at the agent', () => store.agent.status().ledgerDoubt === 'forked', 1_000)
  })
  expect(ms).toBeLessThan(20_000)
  expect(await raised()).toContain('agent_fork')
  const page = await store.local('/station?device=' + station())
  expect(page.body).toContain('role="alert"')
  expect((await store.local('/setup?lang=en')).body).toMatch(/two copies of this agent/)
  // With a token of the cloud the agent still releases. It rejects an earlier token, because the copy may have used it.
  expect(await store.authorize({ ...release, receipt: receipts[1] })).toMatchObject({
    authorized: true,
    offline: false,
  })
  expect(await store.authorize({ ...release, token: held.authorizationToken })).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
  })
  await offline()
  await store.restart()
  expect(await store.authorize({ ...release, receipt: receipts[2] })).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  await copy?.stop()
  others = []
  await online()
  await ok('resolveAgentFork', { agentId: store.identity.agentId, decision: 'trust' })
  await store.until('trusted again', () => store.agent.status().ledgerDoubt === 'put_back', 1_000)
  await online()
  // The agent may lack uses of the copy. So each use needs the cloud for eleven minutes.
  expect(await store.authorize({ ...release, receipt: receipts[3] })).toMatchObject({
    authorized: true,
    offline: false,
  })
  await store.world.advance(11 * 60_000)
  await online()
  await offline()
  expect(await store.authorize({ ...release, receipt: receipts[2] })).toMatchObject({ authorized: true, offline: true })
  await online()
  expect((await ok('fetchAgents', { storeId: store.shop.storeId })).agents[0]).toMatchObject({ state: 'active' })
  expect(await raised()).not.toContain('double_redeem')
})

it('the worst-case loss grows with each agent, also without a gate', async () => {
  store = await openStore()
  const { storeId } = store.shop
  const worst = async () => (await ok('fetchProtectionPolicy', { storeId })).worstCaseLoss
  expect(await worst()).toBe(20_000)
  await add([await register('pos_deactivator')])
  expect(await worst()).toBe(40_000)
  await ok('decommissionDevice', { deviceId: gate() })
  expect(await worst()).toBe(40_000)
})
