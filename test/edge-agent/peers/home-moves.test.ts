import { expect, it } from 'vitest'
import { lanStore } from '../../support/lan-store.ts'
import { until } from '../../support/receiver.ts'

const s = lanStore()
const { addAgent, remove, run, kill, leave, receipt, cutCloud } = s

it('moveReceiptHome: the new home learns used rights, needs staff for older receipts until then, and the former home grants nothing', async () => {
  const [used, free] = [await receipt(), await receipt()]
  expect(await leave(s.home, used.text)).toMatchObject({ authorized: true })
  await until('an empty outbox', async () => s.home.agent.ledger.journal.waiting === 0)
  const moved = await s.shop.ok('moveReceiptHome', { storeId: s.shop.storeId, home: s.other.agent.identity.agentId })
  expect(moved).toMatchObject({ home: s.other.agent.identity.agentId, homeEpoch: 2 })
  expect(await s.shop.ok('moveReceiptHome', { storeId: s.shop.storeId, home: moved.home })).toMatchObject({
    homeEpoch: 2,
  })
  expect((await s.shop.call('moveReceiptHome', { storeId: s.shop.storeId, home: 'agt_x' })).status).toBe(404)
  const { database } = s.shop.cloud.db
  await until('all reports of the former home', async () => {
    await s.home.agent.link.poll()
    return (await database.reads.selectFrom('home_move_wait').selectAll().execute()).length === 0
  })
  // The new home has the policy, but not yet the used rights.
  const [{ deny_seq: last } = { deny_seq: 0 }] = await database.reads
    .selectFrom('home_move')
    .select('deny_seq')
    .execute()
  expect(last).toBeGreaterThan(0)
  await database.write((db) =>
    db
      .updateTable('home_move')
      .set({ deny_seq: last + 1_000 })
      .execute(),
  )
  await database.write((db) =>
    db
      .updateTable('store')
      .set((eb) => ({ document_version: eb('document_version', '+', 1) }))
      .where('store_id', '=', s.shop.storeId)
      .execute(),
  )
  await s.other.agent.link.poll()
  await s.home.agent.link.poll()
  expect(s.other.agent.trust.policy).toMatchObject({
    policy: moved.policy ?? { home: moved.home },
    homeMove: { denySeq: last + 1_000 },
  })
  await cutCloud()
  expect(await leave(s.other, free.text)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  expect(await leave(s.home, free.text)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  s.isUp = true
  await database.write((db) => db.updateTable('home_move').set({ deny_seq: last }).execute())
  await database.write((db) =>
    db
      .updateTable('store')
      .set((eb) => ({ document_version: eb('document_version', '+', 1) }))
      .where('store_id', '=', s.shop.storeId)
      .execute(),
  )
  for (const node of s.nodes)
    await until(
      'the move complete',
      async () =>
        node.agent.link.isOnline &&
        node.agent.trust.policy?.homeMove?.denySeq === last &&
        (node.agent.trust.heldVersions().deny?.[1] ?? 0) >= last,
    )
  await cutCloud()
  expect(await leave(s.other, used.text)).toMatchObject({
    authorized: false,
    reason: 'already_redeemed',
    offline: true,
  })
  expect(await leave(s.home, free.text)).toMatchObject({ authorized: true, offline: true })
  expect(await leave(s.other, free.text)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  expect(s.sent.at(-1)?.url).toContain(`:${s.other.port}/`)
})

it('no new home grants until the agents have reported the rights that a revoked home delegated', async () => {
  const third = await addAgent(
    (await s.shop.ok('registerDevice', { storeId: s.shop.storeId, deviceType: 'exit_gate' })).deviceId,
  )
  const [used, free] = [await receipt(), await receipt()]
  await cutCloud()
  expect(await leave(s.other, used.text)).toMatchObject({ authorized: true, offline: true })
  for (const node of [s.home, s.other]) await kill(node)
  s.isUp = true
  await s.shop.ok('revokeAgent', { agentId: s.home.agent.identity.agentId })
  await s.shop.ok('moveReceiptHome', { storeId: s.shop.storeId, home: third.agent.identity.agentId })
  const takenOver = () =>
    until('the new home', async () => {
      await third.agent.link.poll()
      return third.agent.link.isOnline && third.agent.trust.policy?.policy.home === third.agent.identity.agentId
    })
  await takenOver()
  remove(s.home)
  s.isUp = false
  const alone = () => until('offline', async () => (await third.agent.link.poll(), !third.agent.link.isOnline))
  await alone()
  expect(await leave(third, used.text)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  s.isUp = true
  await run(s.other)
  await until('an empty outbox', async () => s.other.agent.link.isOnline && s.other.agent.ledger.journal.waiting === 0)
  await takenOver()
  await until('all known', async () => {
    for (const node of s.nodes) await node.agent.link.poll()
    return !third.agent.trust.isImporting(s.platform.clock.wall() / 1_000 + 60)
  })
  s.isUp = false
  await alone()
  expect(await leave(third, used.text)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
  expect(await leave(third, free.text)).toMatchObject({ authorized: true, offline: true })
})

it('a new home waits for agents that were offline while the cloud was the home', async () => {
  const [used, free] = [await receipt(), await receipt()]
  const { storeId } = s.shop
  const { database } = s.shop.cloud.db
  const nobodyWaited = async () => {
    for (const node of s.nodes) await node.agent.link.poll()
    return (await database.reads.selectFrom('home_move_wait').selectAll().execute()).length === 0
  }
  await s.shop.ok('moveReceiptHome', { storeId, home: 'cloud' })
  // The former home is online, so the cloud has its reports at once.
  await until('all reports at the cloud', nobodyWaited)
  await until('the policy', () => s.nodes.every((node) => node.agent.trust.policy?.policy.home === 'cloud'))
  await cutCloud()
  expect(await leave(s.other, used.text)).toMatchObject({ authorized: true, offline: true })
  await kill(s.other)
  s.isUp = true
  await s.shop.ok('moveReceiptHome', { storeId, home: s.home.agent.identity.agentId })
  const { agentId } = s.home.agent.identity
  await until(
    'the new home',
    async () => (
      await s.home.agent.link.poll(),
      s.home.agent.link.isOnline && s.home.agent.trust.policy?.policy.home === agentId
    ),
  )
  s.isUp = false
  const alone = () => until('offline', async () => (await s.home.agent.link.poll(), !s.home.agent.link.isOnline))
  await alone()
  expect(await leave(s.home, used.text)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  s.isUp = true
  await run(s.other)
  await until('an empty outbox', async () => s.other.agent.link.isOnline && s.other.agent.ledger.journal.waiting === 0)
  await until('all reports at the cloud', nobodyWaited)
  await until('all known', async () => {
    for (const node of s.nodes) await node.agent.link.poll()
    return !s.home.agent.trust.isImporting(s.platform.clock.wall() / 1_000 + 60)
  })
  s.isUp = false
  await alone()
  expect(await leave(s.home, used.text)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
  expect(await leave(s.home, free.text)).toMatchObject({ authorized: true, offline: true })
})

it('a new home waits for a forked agent until staff resolve the fork', async () => {
  const { storeId } = s.shop
  const { database } = s.shop.cloud.db
  const { agentId } = s.other.agent.identity
  await database.write((db) => db.updateTable('agent').set({ fork_ms: 1 }).where('agent_id', '=', agentId).execute())
  await s.shop.ok('moveReceiptHome', { storeId, home: 'cloud' })
  const waited = async () => {
    for (const node of s.nodes) await node.agent.link.poll()
    return (await database.reads.selectFrom('home_move_wait').select('agent_id').execute()).map((row) => row.agent_id)
  }
  await until('the former home heard', async () => (await waited()).length === 1)
  await until('the policy', async () => (await waited(), s.other.agent.trust.policy?.policy.home === 'cloud'))
  for (let i = 0; i < 3; i++) expect(await waited()).toEqual([agentId])
  await s.shop.ok('resolveAgentFork', { agentId, decision: 'trust' })
  await until('heard', async () => (await waited()).length === 0)
})
