import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { LANES, openStore, type TestStore } from '../../support/store.ts'

let store: TestStore
afterEach(() => store.stop())

const release = (receipt: string) =>
  store.authorize({ deviceId: store.shop.devices[LANES.station], protectionAction: 'deactivate_label', receipt })
const product = () => store.shop.products.toSorted((a, b) => a.price - b.price)[0]
const synced = () =>
  store.until('an empty outbox', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
const offline = async () => {
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
}
const online = async () => {
  store.network(true)
  await synced()
}
const raised = async (kind: string): Promise<Json[]> =>
  (await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId, kind }))).exceptions
const seen = async () => (await store.drive(store.shop.ok('fetchAgents', { storeId: store.shop.storeId }))).agents[0]

const file = (name: string) => join(store.dataDir, name)
const backUp = () => store.restart(() => copyFileSync(file('ledger.db'), file('backup.db')))
const putBack = () =>
  store.restart(() => {
    for (const suffix of ['-wal', '-shm']) rmSync(file(`ledger.db${suffix}`), { force: true })
    copyFileSync(file('backup.db'), file('ledger.db'))
  })

it('a restored ledger recovers: it needs the cloud for 11 minutes, learns used rights again and loses no row', async () => {
  store = await openStore()
  const [used, later] = [
    await store.buy([{ ean: product().ean, quantity: 1 }]),
    await store.buy([{ ean: product().ean, quantity: 1 }]),
  ]
  await synced()
  await backUp()
  await synced()
  await offline()
  expect(await release(used.receipt)).toMatchObject({ authorized: true, offline: true })
  await online()

  store.network(false)
  await putBack()
  // The agent writes a row before its first login. The cloud must not treat the row as a fork, and must receive it.
  const refused = await store.authorize({
    deviceId: store.shop.devices[LANES.station],
    protectionAction: 'deactivate_label',
    receipt: 'nonsense',
  })
  expect(refused.authorized).toBe(false)
  await online()
  expect(await raised('ledger_rollback')).toHaveLength(1)
  expect(await raised('agent_fork')).toEqual([])
  expect(store.agent.ledger.generation).toBe(2)
  expect(await seen()).toMatchObject({ state: 'active', generation: 2, ledgerSeq: store.agent.ledger.journal.head.seq })
  const { events } = await store.drive(
    store.shop.ok('fetchProtectionEvents', {
      storeId: store.shop.storeId,
      type: 'protection.authorization.denied',
      limit: 500,
    }),
  )
  expect(events.map((e: Json) => e.eventId)).toContain(refused.eventId)

  await offline()
  expect(await release(later.receipt)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })
  await store.world.advance(12 * 60_000)
  expect(await release(used.receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
  expect(await release(later.receipt)).toMatchObject({ authorized: true, offline: true })
  // The ledger has the same generation after a restart, and the cloud accepts it.
  await store.restart()
  await online()
  expect(store.agent.ledger.generation).toBe(2)
  expect(await raised('ledger_rollback')).toHaveLength(1)
  expect(await raised('double_redeem')).toEqual([])
})

it('a ledger restored twice within an hour counts as a fork that staff must resolve', async () => {
  store = await openStore()
  const deny = () =>
    store.authorize({
      deviceId: store.shop.devices[LANES.station],
      protectionAction: 'deactivate_label',
      receipt: 'nonsense',
    })
  await synced()
  for (const generation of [1, 2]) {
    expect(store.agent.ledger.generation).toBe(generation)
    await backUp()
    await synced()
    await offline()
    await deny()
    await online()
    await store.world.advance(5_000)
    await putBack()
    await store.until(
      'the exception',
      async () => (await raised(generation === 1 ? 'ledger_rollback' : 'agent_fork')).length === 1,
    )
    if (generation === 1) await synced()
  }
  expect(await raised('ledger_rollback')).toHaveLength(1)
})

it('a restored ledger needs the cloud until it has received the used rights, however long it is offline', async () => {
  store = await openStore()
  const [used, later] = [
    await store.buy([{ ean: product().ean, quantity: 1 }]),
    await store.buy([{ ean: product().ean, quantity: 1 }]),
  ]
  await synced()
  await backUp()
  await synced()
  expect(await release(used.receipt)).toMatchObject({ authorized: true })
  await synced()

  // The login succeeds, and the agent cannot fetch the documents.
  store.network(false)
  store.onFetch((url) => !url.endsWith('/fetchSignedDocuments'))
  await putBack()
  store.network(true)
  await store.until('a login', () => store.agent.ledger.generation === 2)
  store.network(false)
  await store.world.advance(12 * 60_000)
  for (const { receipt } of [used, later])
    expect(await release(receipt)).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
      offline: true,
    })
  await store.restart()
  expect(await release(used.receipt)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })

  // The answer to the next login has no `onlineOnlyUntil`.
  store.onFetch(() => true)
  await online()
  await offline()
  expect(await release(used.receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
  expect(await release(later.receipt)).toMatchObject({ authorized: true, offline: true })
})

it('a ledger trusted after a fork needs the cloud until it has received the rights that its clone used', async () => {
  store = await openStore()
  const [used, later] = [
    await store.buy([{ ean: product().ean, quantity: 1 }]),
    await store.buy([{ ean: product().ean, quantity: 1 }]),
  ]
  expect(await release(used.receipt)).toMatchObject({ authorized: true })
  await synced()
  const { agentId } = store.agent.identity
  await store.drive(
    store.shop.cloud.db.database.write((db) =>
      db.updateTable('agent').set({ fork_ms: 1 }).where('agent_id', '=', agentId).execute(),
    ),
  )
  await store.until('the fork at the agent', () => store.agent.status().ledgerDoubt === 'forked')

  // The login succeeds, and the agent cannot fetch the documents.
  store.network(false)
  await store.drive(store.shop.ok('resolveAgentFork', { agentId, decision: 'trust' }))
  store.onFetch((url) => !url.endsWith('/fetchSignedDocuments'))
  store.network(true)
  await store.until('a login', () => store.agent.ledger.generation === 2)
  store.network(false)
  await store.world.advance(12 * 60_000)
  expect(await release(later.receipt)).toMatchObject({
    authorized: false,
    reason: 'manual_assistance_required',
    offline: true,
  })

  store.onFetch(() => true)
  await online()
  await offline()
  expect(await release(used.receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: true })
  expect(await release(later.receipt)).toMatchObject({ authorized: true, offline: true })
})
