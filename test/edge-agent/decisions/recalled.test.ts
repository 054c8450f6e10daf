import { afterEach, describe, expect, it } from 'vitest'
import { toGtin14 } from '../../../policy/gs1/gtin.ts'
import { encodeSgtin, splitGtin14 } from '../../../policy/gs1/sgtin.ts'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { newEan } from '../../support/shop.ts'
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

it('stay, online and offline, if their SGTIN was registered before their product', async () => {
  store = await openStore()
  const ean = newEan()
  const epc = unregisteredTag(ean)
  await ok('registerProtectedItems', { items: [{ epc }] })
  await ok('bulkImportProducts', { products: [{ ean, name: 'Glas', price: 12.5, vat: 19, category: 'bekleidung' }] })
  const { receipt } = await store.buy([{ ean, quantity: 1, epcs: [epc] }])
  await store.until('the replica', () => store.agent.items.find('epc', epc)?.status === 'paid')
  expect(await recall({ ean })).toMatchObject({ items: 1, soldItems: 1 })
  await store.until('the recall', () => isStopped(epc))
  const answers = async () => [await detach({ epc, receipt }), await release(receipt), await leave({ receipt })]
  for (const answer of await answers()) expect(answer).toMatchObject(STOPPED)
  await offline()
  for (const answer of await answers()) expect(answer).toMatchObject({ ...STOPPED, offline: true })
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

/** A paid unit that was bought by its product code, so that its receipt names no tag. */
async function bought(line: Json = {}): Promise<{ receipt: string; transactionId: string }> {
  const { receipt, purchase } = await store.buy([{ ean: product().ean, quantity: 1, ...line }])
  return { receipt, transactionId: purchase.transactionId }
}
/** A tag of the product whose item is not registered. */
function unregisteredTag(ean: string = product().ean): string {
  const gtin14 = toGtin14(ean) ?? ''
  const parts = splitGtin14(gtin14, 7)
  const encoded = parts && encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...parts, serial: '4711' })
  if (!encoded?.ok) throw new Error(`no SGTIN for ${gtin14}`)
  return encoded.hex
}
/** Waits until the agent has the newest documents of the cloud. */
async function refreshed(): Promise<void> {
  await store.until('online', () => store.agent.link.isOnline)
  const row = await store.shop.cloud.db.database.reads
    .selectFrom('store')
    .select(['deny_seq', 'document_version'])
    .where('store_id', '=', store.shop.storeId)
    .executeTakeFirstOrThrow()
  await store.drive(store.agent.link.refreshDocuments())
  await store.until('the documents', () => {
    const { trust, items } = store.agent
    const { deny, policy } = trust.heldVersions()
    return deny?.[1] === row.deny_seq && policy?.[1] === row.document_version && !items.isBehind
  })
}
const knowsGtins = (count: number) =>
  store.until('the policy', () => (store.agent.trust.policy?.recalledGtins ?? []).length === count)

describe('goods that were bought by their product code', () => {
  it('stay, online and offline, with old and new receipts, also after a restart and against staff', async () => {
    store = await openStore({ broker: true })
    const [one, two, both] = [await bought(), await bought(), await bought()]
    const other = store.shop.products.find(({ ean }) => ean !== product().ean) as Json
    const good = await store.buy([{ ean: other.ean, quantity: 1 }])
    const { operatorId } = await ok('registerOperator', { name: 'Frau Petersen', pin: PIN })
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
    const before = store.world.clock.elapsed()
    const started = await recall()
    await knowsGtins(1)
    expect(store.world.clock.elapsed() - before).toBeLessThan(CONNECTED_MS)
    expect(await release(one.receipt)).toMatchObject({ ...STOPPED, offline: false })
    await store.until('the disk', () => !store.agent.trust.isBehind)
    await offline()
    await store.restart()
    const { body: session } = await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: PIN } })
    const headers = { 'x-untag-operator': session.session }
    const asStaff = { deviceId: device('station'), protectionAction: 'deactivate_label', receipt: both.receipt }
    for (const answer of [
      await release(one.receipt),
      await release(two.receipt),
      await leave({ receipt: two.receipt }),
      await detach({ epc: unregisteredTag(), receipt: two.receipt }),
      await store.authorize(asStaff, headers),
    ])
      expect(answer).toMatchObject({ ...STOPPED, offline: true })
    expect(await release(good.receipt)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
    await end(started)
    store.network(true)
    await knowsGtins(0)
    await store.until('the disk', () => !store.agent.trust.isBehind)
    await offline()
    expect(await release(two.receipt)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
  })

  it.each([{}, { lot: 'L-1' }])('raise an exception if an agent could not know the recall of %j', async (recalled) => {
    store = await openStore()
    const [one, two] = [await bought({ lot: 'L-1' }), await bought({ lot: 'L-1' })]
    await offline()
    await recall(recalled)
    store.world.sleep(10_000)
    expect(await release(one.receipt)).toMatchObject({ authorized: true, offline: true })
    store.network(true)
    await refreshed()
    await synced()
    const { exceptions } = await ok('fetchExceptions', { kind: 'released_on_hold' })
    expect(exceptions).toHaveLength(1)
    await offline()
    expect(await release(two.receipt)).toMatchObject({ ...STOPPED, offline: true })
  })

  it('leave while a recall names another product or store', async () => {
    store = await openStore()
    const { receipt } = await bought()
    const other = store.shop.products.find(({ ean }) => ean !== product().ean) as Json
    await recall({ storeIds: [store.shop.otherStoreId] })
    await recall({ ean: other.ean })
    await knowsGtins(1)
    await store.until('the disk', () => !store.agent.trust.isBehind)
    await offline()
    expect(await release(receipt)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
  })

  it.each<[recalled: Json, line: Json, isStopped: boolean]>([
    [{}, {}, true],
    [{}, { lot: 'L-1' }, true],
    [{ lot: 'L-1' }, {}, false],
    [{ lot: 'L-1' }, { lot: 'L-1' }, true],
    [{ lot: 'L-1' }, { lot: 'L-2' }, false],
    [{ lot: 'L-1', expiry: '2027-01-31' }, { lot: 'L-1' }, false],
    [{ lot: 'L-1', expiry: '2027-01-31' }, { lot: 'L-1', expiry: '2027-01-31' }, true],
    [{ expiry: '2027-01-31' }, { lot: 'L-2', expiry: '2027-01-31' }, true],
    [{ serial: 'S1' }, { serial: 'S2' }, false],
    [{ serial: 'S1' }, { serial: 'S1' }, true],
  ])('a recall of %j stops a unit of %j in cloud and agent, until it ends: %s', async (recalled, line, isStopped) => {
    store = await openStore()
    const [one, two, three] = [await bought(line), await bought(line), await bought(line)]
    const started = await recall(recalled)
    const answer = isStopped ? STOPPED : { authorized: true, outcome: 'confirmed' }
    await refreshed()
    expect(await release(one.receipt)).toMatchObject({ ...answer, offline: false })
    await offline()
    expect(await release(two.receipt)).toMatchObject({ ...answer, offline: true })
    store.network(true)
    await end(started)
    await refreshed()
    await offline()
    expect(await release(three.receipt)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
  })

  it('stop alone: the other units of their receipt are released, and those of two recalls until both end', async () => {
    store = await openStore()
    const other = store.shop.products.find(({ ean }) => ean !== product().ean) as Json
    const lines = [{ lot: 'L-1' }, { lot: 'L-2' }, { ean: other.ean }]
    const { receipt } = await store.buy(lines.map((line) => ({ ean: product().ean, quantity: 1, ...line })))
    const first = await recall({ lot: 'L-1' })
    const second = await recall()
    await refreshed()
    await offline()
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(await release(receipt)).toMatchObject(STOPPED)
    store.network(true)
    await end(second)
    await refreshed()
    await offline()
    await store.restart()
    expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
    expect(await release(receipt)).toMatchObject({ ...STOPPED, offline: true })
    store.network(true)
    await end(first)
    await refreshed()
    await offline()
    expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
  })

  it.each([{}, { lot: 'L-1' }])('stay on a receipt without names for %j, also against staff', async (recalled) => {
    store = await openStore()
    const { badge } = await ok('registerOperator', { name: 'Frau Petersen', pin: PIN })
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
    // Its purchase has too many units for names.
    const { receipt } = await bought({ quantity: 33, lot: 'L-1' })
    const started = await recall(recalled)
    await refreshed()
    await offline()
    const signIn = async () => (await store.local('/v1/operator', { method: 'POST', body: { badge } })).body.session
    const asStaff = async () =>
      store.authorize(
        { deviceId: device('station'), protectionAction: 'deactivate_label', receipt },
        { 'x-untag-operator': await signIn() },
      )
    expect(await asStaff()).toMatchObject({ ...STOPPED, offline: true })
    store.network(true)
    await end(started)
    await refreshed()
    await offline()
    expect(await asStaff()).toMatchObject({ authorized: true, offline: true })
  })

  it.each(['lot', 'product'] as const)(
    'leave when the recalls of their lot and product have ended, that of the %s first',
    async (first) => {
      store = await openStore()
      const { receipt } = await bought({ lot: 'L-1' })
      const started = { lot: await recall({ lot: 'L-1' }), product: await recall() }
      const { [first]: one, ...rest } = started
      await end(one)
      await refreshed()
      await offline()
      expect(await release(receipt)).toMatchObject({ ...STOPPED, offline: true })
      store.network(true)
      for (const each of Object.values(rest)) await end(each)
      await refreshed()
      await offline()
      expect(await release(receipt)).toMatchObject({ authorized: true, offline: true })
    },
  )

  it('stay for a token that was fetched before the recall', async () => {
    store = await openStore()
    for (const recalled of [{}, { lot: 'L-1' }]) {
      const { transactionId: purchaseId } = await bought({ lot: 'L-1' })
      const asked = { deviceId: device('station'), purchaseId, operatorId: 'op-1' }
      const { authorizationToken: token } = await store.drive(store.shop.ok('verifySecurityTagDeactivation', asked))
      const started = await recall(recalled)
      await refreshed()
      await offline()
      const used = { deviceId: device('station'), protectionAction: 'deactivate_label', token }
      expect(await store.authorize(used)).toMatchObject({ authorized: false, reason: 'token_revoked', offline: true })
      store.network(true)
      await store.until('online', () => store.agent.link.isOnline)
      await end(started)
    }
  })
})
