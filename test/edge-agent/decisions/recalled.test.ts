import { afterEach, expect, it } from 'vitest'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/** Time within which a recall reaches a connected agent, ms. */
const CONNECTED_MS = 5_000
const PIN = '471108'
const STOPPED = { authorized: false, reason: 'recalled' }

let store: TestStore
afterEach(() => store.stop())
const { device, detach, leave, release, offline, synced, product } = atLanes(() => store)

const ok = (operation: string, body: Json): Promise<Json> =>
  store.drive(store.shop.ok(operation, { storeId: store.shop.storeId, ...body }))
const recall = (fields: Json = {}): Promise<Json> =>
  store.drive(store.shop.ok('recallProducts', { ean: product().ean, reason: 'Splitter', ...fields }))
const end = ({ recallId }: Json) => store.drive(store.shop.ok('endRecall', { recallId }))
const isStopped = (epc: string) => store.agent.items.find('epc', epc)?.recalled === true

/** A paid item with its tag. */
async function sold(fields: Json = {}): Promise<{ epc: string; receipt: string }> {
  const { epc } = await store.drive(store.shop.newItem(product(), fields))
  const { receipt } = await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
  await store.until('the replica', () => store.agent.items.find('epc', epc)?.status === 'paid')
  return { epc, receipt }
}

it('reaches a connected agent within 5 s, and its end, too', async () => {
  store = await openStore({ broker: true })
  const [bad, good] = [await sold({ lot: 'L-1' }), await sold({ lot: 'L-2' })]
  const took = async (what: string, isDone: () => boolean) => {
    const before = store.world.clock.elapsed()
    await store.until(what, isDone)
    return store.world.clock.elapsed() - before
  }
  const started = await recall({ lot: 'L-1' })
  expect(await took('the recall', () => isStopped(bad.epc))).toBeLessThan(CONNECTED_MS)
  expect(isStopped(good.epc)).toBe(false)
  for (const answer of [await detach(bad), await release(bad.receipt), await leave({ epc: bad.epc })])
    expect(answer).toMatchObject(STOPPED)
  await end(started)
  expect(await took('the end', () => !isStopped(bad.epc))).toBeLessThan(CONNECTED_MS)
  expect(await detach(bad)).toMatchObject({ authorized: true, outcome: 'confirmed' })
})

it('holds offline and after a restart, also against staff, until the agent learns of its end', async () => {
  store = await openStore()
  const [bad, good] = [await sold({ lot: 'L-1' }), await sold({ lot: 'L-2' })]
  const { operatorId } = await ok('registerOperator', { name: 'Frau Petersen', pin: PIN })
  await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
  const started = await recall({ lot: 'L-1' })
  expect(started).toMatchObject({ items: 1, soldItems: 1 })
  await store.until('the recall', () => isStopped(bad.epc))
  await store.until('the disk', () => !store.agent.trust.isBehind)
  await offline()
  await store.restart()
  store.world.sleep(3_600_000)
  const { body: session } = await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: PIN } })
  const headers = { 'x-untag-operator': session.session }
  const asStaff = { deviceId: device('station'), protectionAction: 'deactivate_label', receipt: bad.receipt }
  for (const answer of [
    await detach(bad),
    await detach({ epc: bad.epc }),
    await detach({ epc: bad.epc, receipt: good.receipt }),
    await release(bad.receipt),
    await leave(bad),
    await leave({ receipt: bad.receipt }),
    await store.authorize(asStaff, headers),
  ])
    expect(answer).toMatchObject({ ...STOPPED, offline: true })
  expect(await detach(good)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
  await end(started)
  expect(await detach(bad)).toMatchObject({ ...STOPPED, offline: true })
  store.network(true)
  await store.until('the end', () => !isStopped(bad.epc))
  expect(store.agent.items.find('epc', bad.epc)?.status).toBe('paid')
  expect(await detach(bad)).toMatchObject({ authorized: true, outcome: 'confirmed' })
  const { exceptions } = await ok('fetchExceptions', { kind: 'released_on_hold' })
  expect(exceptions).toEqual([])
})

it('is learnt by an offline agent at its next contact; what it released before is an exception', async () => {
  store = await openStore()
  const [one, two] = [await sold(), await sold()]
  await offline()
  await recall()
  store.world.sleep(10_000)
  expect(await detach(one)).toMatchObject({ authorized: true, offline: true })
  store.network(true)
  const before = store.world.clock.elapsed()
  await store.until('the contact', () => store.agent.link.isOnline)
  await store.until('the recall', () => isStopped(two.epc))
  expect(store.world.clock.elapsed() - before).toBeLessThan(60_000)
  await offline()
  expect(await detach(two)).toMatchObject({ ...STOPPED, offline: true })
  store.network(true)
  await synced()
  const { exceptions } = await ok('fetchExceptions', { kind: 'released_on_hold' })
  expect(exceptions).toHaveLength(1)
})

it('sounds the siren for a paid item that leaves, also with stale statuses, and calls staff', async () => {
  store = await openStore()
  const { epc } = await sold()
  await recall()
  await store.until('the recall', () => isStopped(epc))
  expect(await leave({ epc })).toMatchObject({ ...STOPPED, itemStatus: 'exception_hold' })
  await store.until('the siren', () => store.boards.gate.log.some((c) => c.coil === 1 && c.on))
  await synced()
  const { requests } = await ok('fetchAssistanceRequests', {})
  expect(requests).toMatchObject([{ reason: 'exception_hold' }])
  await offline()
  await store.world.advance(120_000)
  const sirens = () => store.boards.gate.log.filter((c) => c.coil === 1 && c.on).length
  const before = sirens()
  expect(await leave({ epc })).toMatchObject({ ...STOPPED, offline: true })
  await store.until('the siren', () => sirens() > before)
})
