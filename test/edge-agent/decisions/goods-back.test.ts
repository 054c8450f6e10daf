import { afterEach, beforeEach, expect, it } from 'vitest'
import { newId } from '../../../policy/ids.ts'
import { hashSecret, newSecret } from '../../../edge-agent/identity/identity.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/** When all goods of a sale came back, at an agent without the cloud: then its code opens nothing (ADR till-sales). */
let store: TestStore
let credential = ''
beforeEach(async () => {
  store = await openStore()
  const { storeId } = store.shop
  const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
  const tillSales = { agents: [store.identity.agentId] }
  await store.drive(store.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } }))
  await store.until('the policy', () => store.agent.trust.policy?.policy.tillSales.agents.length === 1)
  credential = newSecret('pair', store.world.random)
  const rights = ['sales', 'returns'] as const
  store.agent.ledger.pairings.addProgram(hashSecret(credential), 'till', store.world.clock.wall(), rights)
})
afterEach(() => store.stop())

const OPEN = { authorized: true, outcome: 'confirmed' }
const OVER = { authorized: false, reason: 'token_revoked' }
const UID = '04AABBCCDD1144'

async function offline(): Promise<void> {
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
}

async function post(path: string, body: Json): Promise<Json> {
  const answer = await store.local(path, { method: 'POST', body, headers: { authorization: `Bearer ${credential}` } })
  expect(answer.status).toBe(200)
  return answer.body
}

let number = 0
/** Sells these lines. Returns the number of the sale and the code on its receipt. */
async function sell(lines: Json[]): Promise<{ saleId: string; code: string }> {
  const sold = { saleId: `g${++number}`, code: `C-${newId('x', store.world)}` }
  const occurredAt = new Date(store.world.clock.wall()).toISOString()
  const receiptCodes = [sold.code]
  await post('/v1/sales', { saleId: sold.saleId, tillId: 'till-1', occurredAt, receiptCodes, lines })
  return sold
}
const bringBack = ({ saleId }: { saleId: string }, line: Json) =>
  post('/v1/returns', { returnId: `r${++number}`, saleId, tillId: 'till-1', lines: [line] })

async function leave({ code }: { code: string }): Promise<Json> {
  const deviceId = store.shop.devices.exit_gate
  const { body } = await store.local('/v1/scan', { method: 'POST', body: { deviceId, text: code } })
  return body.kind === 'decision' ? body.answer : body
}

async function newTag(fields: Json = {}): Promise<string> {
  const { epc } = await store.drive(store.shop.newItem(store.shop.products[0], fields))
  await store.until('the item', () => store.agent.items.find('epc', epc) !== undefined)
  return epc
}
const shirt = (fields: Json = {}): Json => ({
  ean: store.shop.products[0].ean,
  quantity: 1,
  priceUnit: 990,
  vat: 19,
  ...fields,
})
const MILK = { name: 'Milch', quantity: 1, priceUnit: 99, vat: 7 }

it('leaves the code of a sale open, which a line without tags cancels in part', async () => {
  const [a, b] = [await newTag(), await newTag()]
  await offline()
  const one = await sell([shirt({ epcs: [a] }), shirt(), shirt({ quantity: -1 })])
  expect(await leave(one)).toMatchObject(OPEN)
  // The shirt was cancelled, and the milk is left.
  const other = await sell([shirt({ epcs: [b] }), shirt({ quantity: -1 }), MILK])
  expect(await leave(other)).toMatchObject(OPEN)
})

it('calls staff for the code of a sale while goods without tags are left, and ends it with the last of them', async () => {
  const a = await newTag()
  await offline()
  const [first, second] = [await sell([shirt({ epcs: [a] }), MILK]), await sell([shirt(), MILK])]
  await post('/v1/returns', { returnId: 'tag', epcs: [a] })
  // The agent does not know whether the shopper leaves with the milk or the shirt.
  expect(await leave(first)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
  await bringBack(first, { lineId: '2' })
  expect(await leave(first)).toMatchObject(OVER)
  await bringBack(second, { lineId: '1' })
  await bringBack(second, { lineId: '2' })
  expect(await leave(second)).toMatchObject(OVER)
})

it('knows a cancelled piece by another name of its tag', async () => {
  const a = await newTag({ tagUid: UID })
  await offline()
  const sold = await sell([shirt({ epcs: [a] }), shirt({ quantity: -1, tagUids: [UID] }), MILK])
  await bringBack(sold, { lineId: '3', quantity: 1 })
  expect(await leave(sold)).toMatchObject(OVER)
})

it.each([
  [0.8, [0.5, 0.3]],
  [0.8, [0.8]],
  [1.2, [0.4, 0.4, 0.4]],
])('ends the code of %s kg that came back as %s', async (quantity, parts) => {
  await offline()
  const sold = await sell([{ name: 'Fisch', quantity, priceUnit: 2_000, vat: 7 }])
  for (const part of parts) await bringBack(sold, { lineId: '1', quantity: part })
  expect(await leave(sold)).toMatchObject(OVER)
})
