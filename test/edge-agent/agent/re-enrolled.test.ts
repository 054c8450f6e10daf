import { afterEach, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { replaceAgent } from '../../support/replace-agent.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

let store: TestStore
afterEach(() => store.stop())

const station = () => store.shop.devices[LANES.station]
const ok = (operation: string, body: object): Promise<Json> => store.drive(store.shop.ok(operation, body))
const buy = () => store.buy([{ ean: store.shop.products.toSorted((a, b) => a.price - b.price)[0].ean, quantity: 1 }])
const tokenFor = async (purchase: Json) =>
  (await ok('verifySecurityTagDeactivation', { purchaseId: purchase.transactionId, deviceId: station() }))
    .authorizationToken
const withToken = (token: string) =>
  store.authorize({ deviceId: station(), protectionAction: 'deactivate_label', token })
const status = async (purchase: Json) =>
  (await ok('fetchPurchase', { transactionId: purchase.transactionId })).securityTagStatus
const agents = async (): Promise<[string, string][]> =>
  (await ok('fetchAgents', { storeId: store.shop.storeId })).agents.map((a: Json) => [a.agentId, a.state])
const raised = async (): Promise<string[]> =>
  (await ok('fetchExceptions', { storeId: store.shop.storeId })).exceptions.map((e: Json) => e.kind)
const homeOf = async (): Promise<string> =>
  (await ok('fetchProtectionPolicy', { storeId: store.shop.storeId })).policy.home
const network = async (isUp: boolean) => {
  store.network(isUp)
  await store.until(isUp ? 'online' : 'offline', () => store.agent.link.isOnline === isUp)
}

/** Deactivates a label by token while the cloud is offline, so that the cloud has no report. */
async function releaseUnheard(): Promise<Json> {
  const { purchase } = await buy()
  const token = await tokenFor(purchase)
  await network(false)
  expect(await withToken(token)).toMatchObject({ authorized: true, offline: true })
  return purchase
}

/**
 * Expects that this agent has the devices, is the home, has reported the offline use, and releases the next purchase.
 */
async function expectInPlace(agentId: string, told: Json): Promise<void> {
  const { devices } = await ok('fetchDevices', { storeId: store.shop.storeId })
  expect(devices.find((d: Json) => d.deviceId === station()).agentId).toBe(agentId)
  expect(await homeOf()).toBe(agentId)
  expect([await status(told), await raised()]).toEqual(['deactivated', []])
  const { purchase } = await buy()
  expect(await withToken(await tokenFor(purchase))).toMatchObject({ authorized: true, outcome: 'confirmed' })
}

it('a re-enrolled agent takes over devices and receipt home of its predecessor, and reports its redemptions', async () => {
  store = await openStore()
  const former = store.agent.identity.agentId
  expect(await homeOf()).toBe(former)
  const purchase = await releaseUnheard()
  const { agentId } = await replaceAgent(store)
  expect(await agents()).toEqual([
    [former, 'revoked'],
    [agentId, 'active'],
  ])
  await expectInPlace(agentId, purchase)
  expect(store.pulses('station')).toBe(2)
})

it('reports the redemptions of a predecessor that was revoked before the re-enrolment', async () => {
  store = await openStore()
  const purchase = await releaseUnheard()
  const { agentId } = await replaceAgent(store, (former) => ok('revokeAgent', { agentId: former.agentId }))
  expect([await status(purchase), await raised()]).toEqual(['deactivated', []])
  await store.until(
    'the devices',
    async () =>
      (await store.shop.ok('fetchDevices', { storeId: store.shop.storeId })).devices.find(
        (d: Json) => d.deviceId === station(),
      ).agentId === agentId,
  )
})

it('an agent re-enrolled twice before its start still replaces the first', async () => {
  store = await openStore()
  const purchase = await releaseUnheard()
  const { agentId } = await replaceAgent(store, undefined, 2)
  expect((await agents()).filter(([, state]) => state === 'active')).toEqual([[agentId, 'active']])
  await expectInPlace(agentId, purchase)
})

it('an agent that a restored cloud does not know is the successor of an earlier one, by its key only', async () => {
  store = await openStore()
  const { identity } = store.agent
  const { shop, world, fetch } = store
  const { enrol } = await import('../../../edge-agent/enrolment/enrol.ts')
  const { newKey } = await import('../../../policy/documents/keys.ts')
  const key = newKey(world.random)
  const unknown = { ...identity, agentId: 'agt_unknown', x: key.x, secret: key.secret.toString('base64url') }
  const { agentId, x, secret } = identity
  const predecessorFor = async (former: typeof identity) => {
    const { code } = await ok('createEnrolmentCode', { storeId: shop.storeId })
    const enrolled = await store.drive(enrol({ cloud: shop.cloud.baseUrl, code, former, platform: world, fetch }))
    if (!enrolled.ok) throw new Error(enrolled.why)
    expect(enrolled.identity.predecessors?.[0]).toMatchObject({ agentId: former.agentId })
    const rows = shop.cloud.db.database.reads.selectFrom('agent').select('replaces')
    return (await rows.where('agent_id', '=', enrolled.identity.agentId).executeTakeFirst())?.replaces
  }
  expect(await predecessorFor({ ...unknown, predecessors: [{ agentId, x, secret }] })).toBe(agentId)
  const forged = { agentId, x: unknown.x, secret: unknown.secret }
  expect(await predecessorFor({ ...unknown, predecessors: [forged] })).toBeNull()
})

it('the predecessor works until its successor logs in, and only its own key permits the replacement', async () => {
  store = await openStore()
  const { identity } = store.agent
  const { shop, world, fetch } = store
  const { enrol } = await import('../../../edge-agent/enrolment/enrol.ts')
  const { newKey } = await import('../../../policy/documents/keys.ts')
  const codeNow = async (): Promise<string> => (await ok('createEnrolmentCode', { storeId: shop.storeId })).code
  const { x, secret } = newKey(world.random)
  const forged = { ...identity, x, secret: secret.toString('base64url') }
  const claimed = async (former: typeof identity) => {
    const enrolled = await store.drive(
      enrol({ cloud: shop.cloud.baseUrl, code: await codeNow(), former, platform: world, fetch }),
    )
    if (!enrolled.ok) throw new Error(enrolled.why)
    const row = await shop.cloud.db.database.reads
      .selectFrom('agent')
      .select('replaces')
      .where('agent_id', '=', enrolled.identity.agentId)
      .executeTakeFirst()
    return { agentId: enrolled.identity.agentId, replaces: row?.replaces }
  }
  expect(await claimed(forged)).toMatchObject({ replaces: null })
  expect(await claimed({ ...identity, agentId: 'agt_unknown' })).toMatchObject({ replaces: null })
  const attempt = await claimed(identity)
  expect(attempt).toMatchObject({ replaces: identity.agentId })
  // The answer to this enrolment was lost, so the former agent still works.
  const { purchase } = await buy()
  expect(await withToken(await tokenFor(purchase))).toMatchObject({ authorized: true, offline: false })
  expect((await agents()).map(([, state]) => state)).toEqual(['active', 'active', 'active', 'active'])
  // The next replacement revokes the agent of the lost attempt too, and no other agent.
  await replaceAgent(store)
  const revoked = (await agents()).flatMap(([agentId, state]) => (state === 'revoked' ? [agentId] : []))
  expect(revoked.toSorted()).toEqual([identity.agentId, attempt.agentId].toSorted())
})

it('a new home waits until the successor has reported the unreported redemptions of its predecessor', async () => {
  store = await openStore()
  await releaseUnheard()
  const former = store.agent.identity.agentId
  await ok('moveReceiptHome', { storeId: store.shop.storeId, home: 'cloud' })
  const { database } = store.shop.cloud.db
  const waits = async () =>
    (await database.reads.selectFrom('home_move_wait').select('agent_id').execute()).map(({ agent_id }) => agent_id)
  expect(await waits()).toEqual([former])
  const seen: string[][] = []
  store.onFetch(async (url) => {
    if (url.endsWith('/fetchSignedDocuments')) seen.push(await waits())
    return true
  })
  const { agentId } = await replaceAgent(store)
  expect(seen[0]).toEqual([agentId])
  await store.until('nobody to wait for', async () => (await waits()).length === 0)
})
