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

const statusOf = (epc: string) => store.agent.items.find('epc', epc)?.status
const voided = ({ saleId }: { saleId: string }) => post('/v1/sales/void', { saleId, tillId: 'till-1' })

it('makes goods paid again that came back with a sale that is void, unless something happened to them since', async () => {
  const [a, b, c, d] = [await newTag(), await newTag(), await newTag(), await newTag()]
  await sell([shirt({ epcs: [a] }), shirt({ epcs: [b] })])
  await offline()
  const exchange = await sell([shirt({ quantity: -1, epcs: [a] }), shirt({ epcs: [c] })])
  expect([statusOf(a), statusOf(c)]).toEqual(['returned', 'paid'])
  expect((await voided(exchange)).items).toEqual([
    { tag: c, itemStatus: 'cancelled' },
    { tag: a, itemStatus: 'paid' },
  ])
  expect([statusOf(a), statusOf(c)]).toEqual(['paid', 'cancelled'])
  const another = await sell([shirt({ quantity: -1, epcs: [b] }), shirt({ epcs: [d] })])
  await post('/v1/returns', { returnId: 'again', epcs: [b], resellable: true })
  await voided(another)
  expect([statusOf(b), statusOf(d)]).toEqual(['sellable', 'cancelled'])
  await online()
  expect([await ofCloud(a), await ofCloud(b)]).toEqual(['paid', 'sellable'])
})

it('takes back a line without tags of a sale that has tags in another line', async () => {
  const a = await newTag()
  await offline()
  const sold = await sell([shirt({ epcs: [a] }), MILK])
  expect((await bringBack(sold, { lineId: '2' })).items).toEqual([])
  expect(statusOf(a)).toBe('paid')
})

it('refuses what cannot come back, as the cloud does', async () => {
  const refused = async (body: Json) => {
    const headers = { authorization: `Bearer ${credential}` }
    const answer = await store.local('/v1/returns', {
      method: 'POST',
      body: { returnId: `x${++number}`, tillId: 'till-1', ...body },
      headers,
    })
    return [answer.status, answer.body.code]
  }
  await offline()
  const [one, two] = [await sell([{ ...MILK, quantity: 2 }]), await sell([MILK])]
  const { saleId } = one
  expect(await refused({ saleId, lines: [{ lineId: '7' }] })).toEqual([400, 'invalid-argument'])
  expect(await refused({ saleId, lines: [{ lineId: '1', quantity: 3 }] })).toEqual([400, 'invalid-argument'])
  await bringBack(one, { lineId: '1', quantity: 2 })
  expect(await refused({ saleId })).toEqual([409, 'already_refunded'])
  expect(await refused({ saleId, lines: [{ lineId: '1' }] })).toEqual([400, 'invalid-argument'])
  await voided(two)
  expect(await refused({ saleId: two.saleId })).toEqual([409, 'purchase_not_refundable'])
})

async function online(): Promise<void> {
  store.network(true)
  await store.until('an empty outbox', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
}
const api = (operation: string, body: Json): Promise<Json> =>
  store.drive(store.shop.ok(operation, { storeId: store.shop.storeId, ...body }))
const ofCloud = async (epc: string) => (await api('fetchProtectedItem', { epc })).itemStatus
const saleOf = (lines: Json[], saleId = `g${++number}`): Json => ({
  saleId,
  tillId: 'till-1',
  occurredAt: new Date(store.world.clock.wall()).toISOString(),
  lines,
})

it('keeps goods that came back with a sale that the cloud cannot book, because another one has its number', async () => {
  const [a, c] = [await newTag(), await newTag()]
  await sell([shirt({ epcs: [a] })])
  await online()
  await offline()
  const exchange = saleOf([shirt({ quantity: -1, epcs: [a] }), shirt({ epcs: [c] })])
  await api('recordSales', { sales: [{ ...exchange, lines: [MILK] }] })
  await post('/v1/sales', exchange)
  await online()
  await store.world.advance(60_000)
  expect([await ofCloud(a), statusOf(a)]).toEqual(['returned', 'returned'])
})

it('leaves goods of the next sale alone when their former one becomes void or comes back whole', async () => {
  const [a, b] = [await newTag(), await newTag()]
  const [one, two] = [await sell([shirt({ epcs: [a] }), MILK]), await sell([shirt({ epcs: [b] }), MILK])]
  await online()
  await store.until('contained', () => statusOf(a) === 'paid' && statusOf(b) === 'paid')
  const back = (epc: string) => ({ returnId: `r${++number}`, epcs: [epc], resellable: true })
  await api('recordReturns', { returns: [back(a), back(b)] })
  await store.until('both back', () => statusOf(a) === 'sellable' && statusOf(b) === 'sellable')
  await api('recordSales', { sales: [saleOf([shirt({ epcs: [a] }), shirt({ epcs: [b] })])] })
  await store.until('both sold', () => statusOf(a) === 'paid' && statusOf(b) === 'paid')
  await offline()
  expect((await voided(one)).items).toEqual([])
  const { saleId } = two
  expect((await post('/v1/returns', { returnId: `r${++number}`, saleId, tillId: 'till-1' })).items).toEqual([])
  expect([statusOf(a), statusOf(b)]).toEqual(['paid', 'paid'])
})

it('applies a return of goods without tags that came before their sale to those goods only', async () => {
  const a = await newTag()
  await offline()
  const sale = saleOf([shirt({ epcs: [a] }), MILK])
  await bringBack({ saleId: sale['saleId'] }, { lineId: '2' })
  await post('/v1/sales', sale)
  expect(statusOf(a)).toBe('paid')
})

it('takes no tagged goods back for a line without tags that the cloud cannot take back again', async () => {
  const a = await newTag()
  const sale = saleOf([shirt({ epcs: [a] }), MILK])
  await api('recordSales', { sales: [sale] })
  await store.until('sold', () => statusOf(a) === 'paid')
  await bringBack({ saleId: sale['saleId'] }, { lineId: '2' })
  await bringBack({ saleId: sale['saleId'] }, { lineId: '2' })
  await online()
  await store.world.advance(60_000)
  expect([await ofCloud(a), statusOf(a)]).toEqual(['paid', 'paid'])
})

it('keeps goods back that came back twice within a minute', async () => {
  const a = await newTag()
  for (const _ of [1, 2]) {
    await sell([shirt({ epcs: [a] })])
    await store.world.advance(5_000)
    await post('/v1/returns', { returnId: `r${++number}`, epcs: [a], resellable: true })
    await store.world.advance(5_000)
  }
  await online()
  await store.world.advance(60_000)
  expect([await ofCloud(a), statusOf(a)]).toEqual(['sellable', 'sellable'])
})
