import { afterEach, beforeEach, expect, it } from 'vitest'
import { hashSecret, newSecret } from '../../../../edge-agent/identity/identity.ts'
import { encodeSgtin, splitGtin14 } from '../../../../policy/gs1/sgtin.ts'
import type { Json } from '../../../support/cloud.ts'
import { fakeReader } from '../../../support/fake-reader.ts'
import { openStore, type TestStore } from '../../../support/store.ts'

/** Tags that pass a gate for pieces that a till sold without naming their tags (`tillSales.passByProduct`). */
let store: TestStore
let reader: ReturnType<typeof fakeReader>
let credential = ''
beforeEach(async () => {
  reader = fakeReader()
  store = await openStore({ reader: { device: reader.device, antennas: { inside: [1], outside: [3] } } })
  credential = newSecret('pair', store.world.random)
  const rights = ['sales', 'returns'] as const
  store.agent.ledger.pairings.addProgram(hashSecret(credential), 'till', store.world.clock.wall(), rights)
  await setPolicy({})
})
afterEach(() => store.stop())

async function setPolicy(changed: Json, tillSales: Json = {}): Promise<void> {
  const { storeId } = store.shop
  const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
  const wanted = { agents: [store.identity.agentId], passByProduct: 15, ...tillSales }
  const next = { ...policy, ...changed, tillSales: wanted }
  await store.drive(store.shop.ok('updateProtectionPolicy', { storeId, policy: next }))
  const known = () => store.agent.trust.policy?.policy as Json | undefined
  const isKnown = ([name, value]: [string, unknown]) => JSON.stringify(known()?.[name]) === JSON.stringify(value)
  await store.until('the policy', () => {
    const { agents, passByProduct } = known()?.tillSales ?? {}
    return (
      Object.entries(changed).every(isKnown) && passByProduct === wanted.passByProduct && agents[0] === wanted.agents[0]
    )
  })
}

let serial = 0
/** Registers a tag whose EPC names the product. */
async function newTag(product: Json = store.shop.products[0], fields: Json = {}): Promise<string> {
  const parts = splitGtin14(`0${product.ean}`, 7)
  const encoded = parts && encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...parts, serial: String(++serial) })
  if (!encoded?.ok) throw new Error(`no SGTIN for ${product.ean}`)
  await store.drive(store.shop.newItem(product, { epc: encoded.hex, ...fields }))
  await store.until('the item', () => store.agent.items.find('epc', encoded.hex) !== undefined)
  return encoded.hex
}

const seen = new Set<string>()
/** Carries a tag out. Returns true if the gate is silent. */
async function passes(epc: string): Promise<boolean> {
  const gate = store.shop.devices.exit_gate
  // A gate counts a tag again if it was away for a minute.
  if (seen.has(epc)) await store.world.advance(61_000)
  seen.add(epc)
  const counts = () => ({ passed: 0, alarms: 0, ...store.agent.gates.counts().get(gate) })
  const before = counts()
  const see = (antenna: number) =>
    store.agent.gates.onReads(gate, 'gate-scanner', [
      { tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() },
    ])
  see(1)
  for (let i = 0; i < 3; i++) {
    await store.world.advance(260)
    see(3)
  }
  await store.world.advance(400)
  const after = counts()
  expect(after.passed + after.alarms).toBe(before.passed + before.alarms + 1)
  return after.alarms === before.alarms
}

async function post(path: string, body: Json): Promise<Json> {
  const answer = await store.local(path, { method: 'POST', body, headers: { authorization: `Bearer ${credential}` } })
  expect(answer.status).toBe(200)
  return answer.body
}

let number = 0
const sale = (fields: Json = {}, line: Json = {}): Json => ({
  saleId: `p${++number}`,
  tillId: 'till-1',
  occurredAt: new Date(store.world.clock.wall()).toISOString(),
  lines: [{ ean: store.shop.products[0].ean, quantity: 1, priceUnit: 990, vat: 19, ...line }],
  ...fields,
})
const sell = (fields?: Json, line?: Json) => post('/v1/sales', sale(fields, line))
const statusInCloud = async (epc: string) =>
  (await store.drive(store.shop.ok('fetchProtectedItem', { storeId: store.shop.storeId, epc }))).itemStatus

/** Reports to the cloud what the agent has sent before, and waits until the agent knows it. */
async function inCloud(operation: string, request: Json): Promise<void> {
  await store.until('the sale', () => store.agent.ledger.journal.waiting === 0)
  const known = store.agent.trust.lastRevocationSeq
  await store.drive(store.shop.ok(operation, { storeId: store.shop.storeId, ...request }))
  await store.until('the report', () => store.agent.trust.lastRevocationSeq > known)
}

it('let one tag of the product pass for each piece, also offline and after a restart', async () => {
  const [a, b, c, d] = [await newTag(), await newTag(), await newTag(), await newTag()]
  expect(await passes(a)).toBe(false)
  store.network(false)
  await sell({}, { quantity: 2 })
  expect([await passes(b), await passes(b)]).toEqual([true, true])
  await store.restart()
  expect([await passes(c), await passes(d)]).toEqual([true, false])
  expect(store.agent.items.find('epc', b)?.status).toBe('paid')
  store.network(true)
  await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
  expect([await statusInCloud(b), await statusInCloud(c), await statusInCloud(d)]).toEqual(['paid', 'paid', 'sellable'])
})

it('are none by default: a code that a till printed opens the gate for no tag of the product', async () => {
  await setPolicy({}, { passByProduct: 0 })
  const [a, b] = [await newTag(), await newTag()]
  const receiptCodes = ['2026112000004711']
  const sales = [sale({ receiptCodes }, { quantity: 3 })]
  await store.drive(store.shop.ok('recordSales', { storeId: store.shop.storeId, sales }))
  const deviceId = store.shop.devices.exit_gate
  const { body } = await store.local('/v1/scan', { method: 'POST', body: { deviceId, text: receiptCodes[0] } })
  expect(body).toMatchObject({ answer: { authorized: true } })
  expect([await passes(a), await passes(b)]).toEqual([false, false])
})

it('are used at the first read, before the disk has the use', async () => {
  const [a, b] = [await newTag(), await newTag()]
  await sell()
  const see = (antenna: number) =>
    reader.see([a, b].map((epc) => ({ tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() })))
  see(1)
  for (let i = 0; i < 3; i++) {
    await store.world.advance(260)
    see(3)
  }
  await store.world.advance(400)
  expect(store.agent.gates.counts().get(store.shop.devices.exit_gate)).toMatchObject({ passed: 1, alarms: 1 })
})

it('end after the minutes of the policy, and count only while it says so', async () => {
  const [a, b] = [await newTag(), await newTag()]
  await setPolicy({}, { passByProduct: 1 })
  await sell()
  await store.world.advance(60_000)
  expect(await passes(a)).toBe(false)
  await sell()
  await setPolicy({}, { passByProduct: 0 })
  expect(await passes(b)).toBe(false)
})

it('pass beside many sales of another till that are void', async () => {
  await setPolicy({}, { salesPerHour: 1_000, valuePerHour: 100_000 })
  const a = await newTag()
  for (let n = 0; n < 101; n++) {
    const gone = sale({ tillId: 'till-2' })
    await post('/v1/sales', gone)
    await post('/v1/sales/void', { saleId: gone.saleId, tillId: 'till-2' })
  }
  await store.world.advance(1_000)
  await sell()
  expect(await passes(a)).toBe(true)
})

it('are not those whose tags the till named, nor pieces of other products', async () => {
  const [a, b] = [await newTag(), await newTag()]
  await sell({}, { epcs: [a] })
  expect([await passes(b), await passes(a)]).toEqual([false, true])
  await sell({}, { ean: store.shop.products[1].ean })
  expect(await passes(b)).toBe(false)
})

it.each<[string, (sold: Json) => Promise<unknown>]>([
  ['is void', (sold) => post('/v1/sales/void', { saleId: sold.saleId, tillId: 'till-1' })],
  ['is void in the cloud', (sold) => inCloud('voidSale', { saleId: sold.saleId, tillId: 'till-1' })],
  [
    'is of a revoked till',
    async () => {
      const { storeId } = store.shop
      await store.drive(store.shop.ok('revokeTill', { storeId, tillId: 'till-1' }))
      await store.until('the revocation', () => store.agent.trust.policy?.revokedTills?.length === 1)
    },
  ],
])('end when their sale %s', async (_, end) => {
  const [a, b] = [await newTag(), await newTag()]
  const sold = sale({}, { quantity: 3 })
  await post('/v1/sales', sold)
  expect(await passes(a)).toBe(true)
  await end(sold)
  expect(await passes(b)).toBe(false)
})

/** Returns, and whether the tag that passed alarms afterwards: the cloud does not know which piece of a line came back. */
const RETURNS: [string, boolean, (sold: Json, epc: string) => Json][] = [
  ['as a whole', true, ({ saleId, tillId }) => ({ saleId, tillId })],
  ['in part', false, ({ saleId, tillId }) => ({ saleId, tillId, lines: [{ lineId: '1', quantity: 1 }] })],
  ['by a tag that passed', true, (_, epc) => ({ epcs: [epc] })],
]
const PLACES: [string, (request: Json) => Promise<unknown>][] = [
  ['the agent', (request) => post('/v1/returns', request)],
  ['the cloud', (request) => inCloud('recordReturns', { returns: [request] })],
]
it.each(PLACES.flatMap(([place, report]) => RETURNS.map((each) => [place, ...each, report] as const)))(
  'end when goods of their sale come back at %s %s',
  async (_place, _how, isBack, name, report) => {
    const [a, b] = [await newTag(), await newTag()]
    const sold = sale({}, { quantity: 3 })
    await post('/v1/sales', sold)
    expect(await passes(a)).toBe(true)
    await report({ returnId: `r${number}`, resellable: true, ...name(sold, a) })
    expect(await passes(b)).toBe(false)
    await store.until('the return', () => store.agent.ledger.journal.waiting === 0)
    expect(await passes(a)).toBe(!isBack)
  },
)

it('never let goods pass that are on hold or recalled', async () => {
  const { storeId } = store.shop
  const held = await newTag()
  await store.drive(store.shop.ok('updateItemStatus', { storeId, epc: held, itemStatus: 'exception_hold' }))
  await store.until('the hold', () => store.agent.items.find('epc', held)?.status === 'exception_hold')
  const [recalled, unknown] = [await newTag(store.shop.products[1]), 'E28000000000000000000001']
  await store.drive(store.shop.ok('recallProducts', { ean: store.shop.products[1].ean, reason: 'glass' }))
  await store.until('the recall', () => store.agent.items.find('epc', recalled)?.recalled === true)
  await sell({}, { quantity: 5 })
  await sell({}, { quantity: 5, ean: store.shop.products[1].ean })
  expect([await passes(held), await passes(recalled), await passes(unknown)]).toEqual([false, false, false])
})

it.each<[string, () => Json]>([
  ['price', () => ({ requiresManualOverrideAboveValue: 1 })],
  ['brand', () => ({ requiresStaffForBrand: [store.shop.products[0].brand] })],
  ['category', () => ({ allowedActionsByCategory: { '*': { authorize_exit: [] } } })],
])('never let goods pass that need staff because of their %s', async (_, rule) => {
  const tag = await newTag(store.shop.products[0], { brand: store.shop.products[0].brand })
  await sell()
  await setPolicy(rule())
  expect(await passes(tag)).toBe(false)
})

it('are not used by an agent that the policy does not name', async () => {
  const tag = await newTag()
  await sell()
  await setPolicy({}, { agents: ['agt_other'] })
  expect(await passes(tag)).toBe(false)
})

it('give no rights beyond the limits of the till', async () => {
  await setPolicy({}, { salesPerHour: 0 })
  const tag = await newTag()
  await sell()
  expect(await passes(tag)).toBe(false)
})
