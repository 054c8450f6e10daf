import { afterEach, beforeEach, expect, it } from 'vitest'
import { hashSecret, newSecret } from '../../../edge-agent/identity/identity.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/** The pad of a till: a detacher that releases only what its till sold (ADR till-sales). */
let store: TestStore
let credential = ''
beforeEach(async () => {
  store = await openStore()
  const { storeId, devices } = store.shop
  const { policy } = await call('fetchProtectionPolicy', { storeId })
  const tillSales = { agents: [store.identity.agentId] }
  await call('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } })
  await call('updateDevice', {
    deviceId: devices.self_checkout_detacher,
    workflowType: 'pos_integrated',
    tillId: 'till-1',
  })
  await store.until('the policy', () => {
    const facts = store.agent.trust.policy
    const pad = facts?.devices.find(({ deviceId }) => deviceId === devices.self_checkout_detacher)
    return pad?.tillId === 'till-1' && facts?.policy.tillSales.agents.length === 1
  })
  credential = newSecret('pair', store.world.random)
  const rights = ['sales', 'returns'] as const
  store.agent.ledger.pairings.addProgram(hashSecret(credential), 'till', store.world.clock.wall(), rights)
})
afterEach(() => store.stop())

const call = (operation: string, body: Json): Promise<Json> => store.drive(store.shop.ok(operation, body))
const place = (epc: string, more: Json = {}) =>
  store.authorize({
    deviceId: store.shop.devices.self_checkout_detacher,
    protectionAction: 'detach_hard_tag',
    epc,
    ...more,
  })
async function newItem(): Promise<string> {
  const { epc } = await store.drive(store.shop.newItem(store.shop.products[0]))
  await store.until('the item', () => store.agent.items.find('epc', epc) !== undefined)
  return epc
}

let number = 0
function sale(epcs: string[], fields: Json = {}): Json {
  const { ean } = store.shop.products[0]
  return {
    saleId: `p${++number}`,
    tillId: 'till-1',
    occurredAt: new Date(store.world.clock.wall()).toISOString(),
    lines: [{ ean, quantity: 1, priceUnit: 2_990, vat: 19, ...(epcs.length > 0 && { epcs }) }],
    ...fields,
  }
}
async function sell(body: Json): Promise<void> {
  const headers = { authorization: `Bearer ${credential}` }
  expect((await store.local('/v1/sales', { method: 'POST', body, headers })).status).toBe(200)
}
async function offline(isOffline = true): Promise<void> {
  store.network(!isOffline)
  await store.until('the network', () => store.agent.link.isOnline !== isOffline)
}

const RELEASED = { authorized: true, outcome: 'confirmed' }

it.each([false, true])('releases at once what its till has just sold, once, offline %s', async (isOffline) => {
  const epc = await newItem()
  if (isOffline) await offline()
  await sell(sale([epc]))
  expect(await place(epc)).toMatchObject(RELEASED)
  expect((await place(epc)).authorized).toBe(false)
  await offline(false)
  await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
  expect((await place(epc)).authorized).toBe(false)
  const { exceptions } = await call('fetchExceptions', { storeId: store.shop.storeId })
  expect(exceptions).toEqual([])
})

it.each([false, true])(
  'refuses what another till sold, what nobody sold, and what came back, offline %s',
  async (isOffline) => {
    const [other, unsold, back] = [await newItem(), await newItem(), await newItem()]
    if (isOffline) await offline()
    await sell(sale([other], { tillId: 'till-2' }))
    const returned = sale([back])
    await sell(returned)
    const headers = { authorization: `Bearer ${credential}` }
    await store.local('/v1/returns', { method: 'POST', body: { returnId: `r${number}`, epcs: [back] }, headers })
    if (!isOffline) await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
    for (const epc of [other, unsold, back]) expect((await place(epc)).authorized, epc).toBe(false)
    expect(store.pulses('detacher')).toBe(0)
  },
)

it.each([
  [false, true],
  [true, true],
  [true, false],
])('releases once more what came back and was sold again: offline first %s, then %s', async (first, then) => {
  const headers = { authorization: `Bearer ${credential}` }
  const epc = await newItem()
  if (first) await offline()
  await sell(sale([epc]))
  expect(await place(epc)).toMatchObject(RELEASED)
  await store.world.advance(120_000)
  if (first !== then) {
    await offline(then)
    await store.until('the report', () => store.agent.ledger.journal.waiting === 0 || then)
  }
  const body = { returnId: `r${number}`, epcs: [epc], resellable: true }
  await store.local('/v1/returns', { method: 'POST', body, headers })
  expect((await place(epc)).authorized).toBe(false)
  await store.world.advance(120_000)
  await sell(sale([epc]))
  expect(await place(epc)).toMatchObject(RELEASED)
  expect((await place(epc)).authorized).toBe(false)
})

it('releases by an own receipt only goods of its till, also if these are paid elsewhere', async () => {
  const { storeId } = store.shop
  const [own, sold, byHand, unpaid] = [await newItem(), await newItem(), await newItem(), await newItem()]
  const { results } = await call('recordSales', { storeId, sales: [sale([own])] })
  await call('recordSales', { storeId, sales: [sale([sold], { tillId: 'till-2' })] })
  await call('updateItemStatus', { storeId, epc: byHand, itemStatus: 'paid' })
  const receipt = results[0].receiptToken
  expect(await place(own, { receipt })).toMatchObject(RELEASED)
  for (const epc of [sold, byHand, unpaid])
    expect(await place(epc, { receipt })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
  expect(store.pulses('detacher')).toBe(1)
})

it('releases offline neither by a receipt nor for an operator what another till or the app sold', async () => {
  const { storeId, products } = store.shop
  const { operatorId } = await call('registerOperator', { storeId, name: 'Frau Petersen', pin: '471108' })
  await store.until('the operator', () => store.agent.trust.policy?.operators.length === 1)
  const [sold, bought, own] = [await newItem(), await newItem(), await newItem()]
  const { results } = await call('recordSales', { storeId, sales: [sale([sold], { tillId: 'till-2' })] })
  const { receipt } = await store.buy([{ ean: products[0].ean, quantity: 1, epcs: [bought] }])
  const paid = (epc: string) => store.agent.items.find('epc', epc)?.status === 'paid'
  await store.until('the items', () => paid(sold) && paid(bought))
  const signIn = await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: '471108' } })
  await offline()
  for (const [epc, text] of [
    [sold, results[0].receiptToken],
    [bought, receipt],
  ])
    expect(await place(epc, { receipt: text })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
  const pad = { deviceId: store.shop.devices.self_checkout_detacher, protectionAction: 'detach_hard_tag' }
  const byStaff = await store.authorize({ ...pad, epc: sold }, { 'x-untag-operator': signIn.body.session })
  expect(byStaff).toMatchObject({ authorized: false, reason: 'item_not_paid' })
  await sell(sale([own]))
  expect(await place(own)).toMatchObject(RELEASED)
})

it('matches a tag to a sale of its till that named no tag, for each piece once', async () => {
  const { storeId } = store.shop
  const [first, second] = [await newItem(), await newItem()]
  await call('recordSales', { storeId, sales: [sale([], { tillId: 'till-2' })] })
  expect(await place(first)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
  await call('recordSales', { storeId, sales: [sale([])] })
  expect(await place(first)).toMatchObject(RELEASED)
  expect(await place(second)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
  expect((await call('fetchProtectedItem', { storeId, epc: first })).itemStatus).toBe('paid')
})

it('refuses the receipt of another till, and of a purchase that untag sold', async () => {
  const { storeId } = store.shop
  const { results } = await call('recordSales', { storeId, sales: [sale([], { tillId: 'till-2' })] })
  const { receipt } = await store.buy([{ ean: store.shop.products[0].ean, quantity: 1 }])
  const epc = await newItem()
  for (const text of [results[0].receiptToken, receipt])
    expect(await place(epc, { receipt: text })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
})
