import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { checkDigit } from '../../../policy/gs1/gtin.ts'
import { newId } from '../../../policy/ids.ts'
import { receiptCodeHash } from '../../../policy/till-sale.ts'
import { hashSecret, newSecret } from '../../../edge-agent/identity/identity.ts'
import type { Json } from '../../support/cloud.ts'
import { addAgent, announceTills } from '../../support/second-agent.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/** Codes that a till prints on its receipts open a barrier once (ADR till-sales). */
let store: TestStore
let credential = ''
beforeEach(async () => {
  store = await openStore()
  const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId }))
  await store.drive(
    store.shop.ok('updateProtectionPolicy', {
      storeId: store.shop.storeId,
      policy: { ...policy, tillSales: { agents: [store.identity.agentId], salesPerHour: 30 } },
    }),
  )
  await store.until('the policy', () => store.agent.trust.policy?.policy.tillSales.agents.length === 1)
})
afterEach(() => store.stop())

const OPEN = { authorized: true, outcome: 'confirmed' }
const USED = { authorized: false, reason: 'already_redeemed' }
const eanOf = (digits: string) => `${digits}${checkDigit(digits)}`
const code = () => `C-${newId('x', store.world)}`

async function offline(isOffline = true): Promise<void> {
  store.network(!isOffline)
  await store.until('the network', () => store.agent.link.isOnline !== isOffline)
}

let number = 0
function sale(receiptCodes: string[], fields: Json = {}): Json {
  return {
    saleId: `c${++number}`,
    tillId: 'till-1',
    occurredAt: new Date(store.world.clock.wall()).toISOString(),
    receiptCodes,
    lines: [{ name: 'Milch', quantity: 1, priceUnit: 199, vat: 7 }],
    ...fields,
  }
}

async function post(path: string, body: Json): Promise<Json> {
  const answer = await store.local(path, { method: 'POST', body, headers: { authorization: `Bearer ${credential}` } })
  expect(answer.status).toBe(200)
  return answer.body
}

/** What the gate's scanner shows for a text. */
async function scan(text: string, deviceId = store.shop.devices.exit_gate): Promise<Json> {
  const { body } = await store.local('/v1/scan', { method: 'POST', body: { deviceId, text } })
  return body.kind === 'decision' ? body.answer : body
}

it.each([false, true])('opens once for a sale at this agent, offline %s', async (isOffline) => {
  pair()
  if (isOffline) await offline()
  const text = code()
  await post('/v1/sales', sale([text, code()]))
  expect(await scan(text)).toMatchObject(OPEN)
  expect(await scan(text)).toMatchObject(USED)
  await offline(false)
  await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
  expect(await scan(text)).toMatchObject(USED)
  expect(
    await store.authorize({ deviceId: store.shop.devices.exit_gate, protectionAction: 'authorize_exit', scan: text }),
  ).toMatchObject(USED)
  const { exceptions } = await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId }))
  expect(exceptions.map(({ kind }: Json) => kind)).toEqual([])
})

it('is kept as a hash, in the journal and in the cloud, also by returns', async () => {
  pair()
  const [text, early] = [code(), code()]
  await post('/v1/sales', sale([text]))
  await post('/v1/returns', { returnId: 'known', code: text })
  const sold = sale([early])
  await post('/v1/returns', { returnId: 'waits', saleId: sold.saleId, tillId: 'till-1' })
  await post('/v1/sales', sold)
  await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
  const { results } = await store.drive(
    store.shop.ok('recordReturns', { storeId: store.shop.storeId, returns: [{ returnId: 'cloud', code: early }] }),
  )
  expect(results).toHaveLength(0)
  const { database } = store.shop.cloud.db
  const kept = [
    ...(await database.reads.selectFrom('journal_row').selectAll().execute()),
    ...(await database.reads.selectFrom('till_return').selectAll().execute()),
    ...(await database.reads.selectFrom('till_sale').selectAll().execute()),
    ...(await database.reads.selectFrom('receipt_code').selectAll().execute()),
  ]
  expect(kept.length).toBeGreaterThan(5)
  for (const secret of [text, early]) {
    expect(JSON.stringify(kept)).not.toContain(secret)
    for (const file of readdirSync(store.dataDir).filter((name) => name.startsWith('ledger.db')))
      expect(readFileSync(join(store.dataDir, file)).includes(secret)).toBe(false)
  }
})

it('opens online for a sale that the till sent to the cloud', async () => {
  const text = code()
  await store.drive(store.shop.ok('recordSales', { storeId: store.shop.storeId, sales: [sale([text])] }))
  expect(await scan(text)).toMatchObject(OPEN)
  expect(await scan(text)).toMatchObject(USED)
})

it('needs staff for a code that another till printed on a sale that the cloud does not have yet', async () => {
  pair()
  const text = code()
  await store.drive(store.shop.ok('recordSales', { storeId: store.shop.storeId, sales: [sale([text])] }))
  await post('/v1/sales', sale([text], { tillId: 'till-2' }))
  expect(store.agent.ledger.journal.waiting).toBe(1)
  expect(await scan(text)).toMatchObject({ why: 'needs_staff' })
})

it('releases without the cloud only the tags that its sale names, each once', async () => {
  pair()
  const epcs: string[] = []
  for (let n = 0; n < 3; n++) epcs.push((await store.drive(store.shop.newItem(store.shop.products[0]))).epc)
  const [own = '', unpaid = '', others = ''] = epcs
  await store.until('the items', () => epcs.every((epc) => store.agent.items.find('epc', epc) !== undefined))
  await offline()
  const [text, voided] = [code(), code()]
  const named = (epc: string) => ({ lines: [{ name: 'Jacke', quantity: 1, priceUnit: 990, vat: 19, epcs: [epc] }] })
  await post('/v1/sales', sale([text], named(own)))
  const second = sale([voided], named(others))
  await post('/v1/sales', second)
  const release = (epc: string, of: string) =>
    store.authorize({
      deviceId: store.shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      scan: of,
      epc,
    })
  expect((await release(unpaid, text)).authorized).toBe(false)
  expect((await release(others, text)).authorized).toBe(false)
  expect(await release(own, text)).toMatchObject(OPEN)
  expect((await release(own, text)).authorized).toBe(false)
  // The barrier has a right of its own.
  expect(await scan(text)).toMatchObject(OPEN)
  await post('/v1/sales/void', { saleId: second.saleId, tillId: 'till-1' })
  expect((await release(others, voided)).authorized).toBe(false)
  await offline(false)
  await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
  const { exceptions } = await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId }))
  expect(exceptions.map(({ kind }: Json) => kind)).toEqual([])
  expect((await release(own, text)).authorized).toBe(false)
})

it.each([false, true])('opens once by the receipt that the agent signed, offline %s', async (isOffline) => {
  pair()
  if (isOffline) await offline()
  const text = code()
  const sold = sale([text])
  const { receiptToken } = await post('/v1/sales', sold)
  expect((await post('/v1/sales', sold)).receiptToken).toBe(receiptToken)
  expect(await scan(receiptToken.replace(/.$/, (last: string) => (last === 'A' ? 'B' : 'A')))).toMatchObject({
    reason: 'token_invalid',
  })
  expect(await scan(receiptToken)).toMatchObject(OPEN)
  for (const again of [receiptToken, text, `HTTPS://SHOP.EXAMPLE/R/${receiptToken}`])
    expect(await scan(again)).toMatchObject(USED)
  const late = sale([])
  const second = await post('/v1/sales', late)
  await post('/v1/sales/void', { saleId: late.saleId, tillId: 'till-1' })
  expect((await scan(second.receiptToken)).authorized).toBe(false)
  expect((await post('/v1/sales', late)).receiptToken).toBeUndefined()
  await offline(false)
  await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
  expect(await scan(receiptToken)).toMatchObject(USED)
  const { exceptions } = await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId }))
  expect(exceptions.map(({ kind }: Json) => kind)).toEqual([])
})

it('opens by its signed receipt also at an agent that heard nothing of the sale, unless a product is recalled', async () => {
  pair()
  const wanted = { storeId: store.shop.storeId, deviceType: 'exit_gate' }
  const { deviceId: gate } = await store.drive(store.shop.ok('registerDevice', wanted))
  const other = await addAgent(store, [gate])
  const cut = async (isCut = true) => {
    other.network(!isCut)
    await store.until('the network', () => other.agent.link.isOnline !== isCut)
  }
  try {
    await store.until('the policy', () => other.agent.trust.policy?.policy.tillSales.agents.length === 1)
    await offline()
    await cut()
    const [plain, recalled] = store.shop.products
    const lines = (ean: string) => ({ lines: [{ ean, quantity: 1, priceUnit: 990, vat: 19 }] })
    const [good, bad] = [
      await post('/v1/sales', sale([], lines(plain.ean))),
      await post('/v1/sales', sale([], lines(recalled.ean))),
    ]
    const leave = (receipt: string) => other.authorize({ deviceId: gate, action: 'authorize_exit', receipt })
    expect(await leave(good.receiptToken)).toMatchObject({ authorized: true })
    expect(await leave(good.receiptToken)).toMatchObject(USED)
    const recall = { ean: recalled.ean, reason: 'Metall' }
    await store.drive(store.shop.ok('recallProducts', recall))
    await cut(false)
    await store.until('the recall', () => (other.agent.trust.policy?.recalledGtins ?? []).length > 0)
    await cut()
    expect(await leave(bad.receiptToken)).toMatchObject({ authorized: false, reason: 'recalled' })
  } finally {
    await other.stop()
  }
})

it('opens nothing, also at another agent, for a sale that was recorded since its till is revoked', async () => {
  pair()
  const wanted = { storeId: store.shop.storeId, deviceType: 'exit_gate' }
  const { deviceId: gate } = await store.drive(store.shop.ok('registerDevice', wanted))
  const other = await addAgent(store, [gate])
  try {
    await store.until('the policy', () => other.agent.trust.policy?.policy.tillSales.agents.length === 1)
    await offline()
    const sell = async (tillId: string) => {
      const text = code()
      const { receiptToken } = await post('/v1/sales', sale([text], { tillId }))
      return { text, receiptToken }
    }
    const before = await sell('till-3')
    await store.world.sleep(5_000)
    const sinceAt = new Date(store.world.clock.wall()).toISOString()
    await store.world.sleep(5_000)
    const [stolen, honest] = [await sell('till-3'), await sell('till-2')]
    await announceTills(store, store.agent, other.agent)
    await store.drive(store.shop.ok('revokeTill', { storeId: store.shop.storeId, tillId: 'till-3', sinceAt }))
    await store.until('the revocation', () => other.agent.trust.policy?.revokedTills !== undefined)
    const exit = { deviceId: gate, action: 'authorize_exit' } as const
    const byCode = async (text: string) => {
      const found = await store.drive(other.agent.lanes.saleOfCode(gate, text, true))
      if (found.kind !== 'sale') throw new Error(found.kind)
      return other.authorize({ ...exit, sale: found.sale })
    }
    const refused = { authorized: false, reason: 'token_revoked' }
    expect(await other.authorize({ ...exit, receipt: stolen.receiptToken })).toMatchObject(refused)
    expect(await byCode(stolen.text)).toMatchObject(refused)
    expect(await other.authorize({ ...exit, receipt: honest.receiptToken })).toMatchObject({ authorized: true })
    expect(await byCode(before.text)).toMatchObject({ authorized: true })
  } finally {
    await other.stop()
  }
})

it('opens nothing for a signed receipt with a recalled product among many, or whose goods came back', async () => {
  pair()
  const [plain, recalled] = store.shop.products
  const { epc } = await store.drive(store.shop.newItem(plain))
  await store.drive(store.shop.newItem(plain, { tagId: 'HT-4711' }))
  await store.until('the tag', () => store.agent.items.find('tagId', 'HT-4711') !== undefined)
  await store.until('the item', () => store.agent.items.find('epc', epc) !== undefined)
  await store.drive(store.shop.ok('recallProducts', { ean: recalled.ean, reason: 'Metall' }))
  await store.until('the recall', () => (store.agent.trust.policy?.recalledGtins ?? []).length > 0)
  await offline()
  const line = (ean: string) => ({ ean, quantity: 1, priceUnit: 990, vat: 19 })
  const others = Array.from({ length: 40 }, (_, n) => line(eanOf(`40055500${String(n).padStart(4, '0')}`)))
  const many = await post('/v1/sales', sale([], { lines: others }))
  const bad = await post('/v1/sales', sale([], { lines: [...others, line(recalled.ean)] }))
  expect(await scan(bad.receiptToken)).toMatchObject({ authorized: false, reason: 'recalled' })
  expect(await scan(many.receiptToken)).toMatchObject(OPEN)
  const gtin = recalled.ean.padStart(14, '0')
  for (const ean of [
    `01${gtin}10L1`,
    `(01)${gtin}(10)L1`,
    `https://id.gs1.org/01/${gtin}/10/L1`,
    ` ${recalled.ean} `,
  ]) {
    const { receiptToken, warnings } = await post('/v1/sales', sale([], { lines: [line(ean)] }))
    expect(warnings.map((warning: Json) => warning.code)).toEqual(['sale_of_held_item'])
    expect(await scan(receiptToken)).toMatchObject({ authorized: false, reason: 'recalled' })
  }
  const byId = { productId: recalled.productId, quantity: 1, priceUnit: 990, vat: 19 }
  const unclear = await post('/v1/sales', sale([], { lines: [byId] }))
  expect(await scan(unclear.receiptToken)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
  // A line that was corrected and scanned again.
  const heldLines = [1, -1, 1].map((quantity) => ({ name: 'Jacke', quantity, priceUnit: 990, vat: 19, epcs: [epc] }))
  const again = await post('/v1/sales', sale([], { lines: heldLines }))
  expect(again).toMatchObject({
    warnings: [],
    items: expect.arrayContaining([{ lineId: '3', tag: epc, itemStatus: 'paid' }]),
  })
  await post('/v1/returns', { returnId: 'again', epcs: [epc], resellable: true })
  const both = { name: 'Jacke', quantity: 1, priceUnit: 990, vat: 19, epcs: [epc], tagIds: ['HT-4711'] }
  const { warnings } = await post('/v1/sales', sale([], { lines: [both] }))
  expect(warnings).toMatchObject([{ code: 'sale_of_more_items', tag: 'HT-4711' }])
  const empties = [{ name: 'Leergut', quantity: -6, priceUnit: 25, vat: 19 }]
  const slip = await post('/v1/sales', sale(['code-of-empties'], { lines: empties }))
  expect(slip.receiptToken).toBeUndefined()
  expect((await scan('code-of-empties')).authorized).not.toBe(true)
  // An earlier state of a sale arrives late: its goods get no receipt.
  const paid = sale([], { lines: [line(plain.ean), line(recalled.ean)] })
  await post('/v1/sales', paid)
  const late = await post('/v1/sales', { ...paid, state: 'open', lines: [line(plain.ean)] })
  expect(late.receiptToken).toBeUndefined()
  const named = { lines: [{ name: 'Jacke', quantity: 1, priceUnit: 990, vat: 19, epcs: [epc] }] }
  const back = await post('/v1/sales', sale([], named))
  await post('/v1/returns', { returnId: 'tag', epcs: [epc] })
  expect((await scan(back.receiptToken)).authorized).toBe(false)
})

it('opens nothing after a void, a return of the whole sale, or for a sale beyond the limits', async () => {
  pair()
  await offline()
  const [gone, back, part, over] = [code(), code(), code(), code()]
  const sold = [sale([gone]), sale([back]), sale([part])]
  for (const each of sold) await post('/v1/sales', each)
  await post('/v1/sales/void', { saleId: sold[0].saleId, tillId: 'till-1' })
  await post('/v1/returns', { returnId: 'r1', saleId: sold[1].saleId, tillId: 'till-1' })
  await post('/v1/returns', { returnId: 'r2', saleId: sold[2].saleId, tillId: 'till-1', lines: [{ lineId: '1' }] })
  for (let n = 0; n < 30; n++) await post('/v1/sales', sale([]))
  await post('/v1/sales', sale([over]))
  for (const text of [gone, back]) expect(await scan(text)).toMatchObject({ reason: 'token_revoked' })
  expect(await scan(over)).toMatchObject({ why: 'needs_connection' })
  await offline(false)
  await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
  for (const text of [gone, back, over]) expect((await scan(text)).authorized).toBe(false)
})

it('opens nothing for goods that are recalled or on hold, also where only the code tells them', async () => {
  pair()
  const [plain, tagged] = store.shop.products
  const { epc } = await store.drive(store.shop.newItem(tagged))
  await store.until('the item', () => store.agent.items.find('epc', epc) !== undefined)
  const line = { quantity: 1, priceUnit: 990, vat: 19 }
  const [byEan, byTag] = [code(), code()]
  await post('/v1/sales', sale([byEan], { lines: [{ ean: plain.ean, ...line }] }))
  await post('/v1/sales', sale([byTag], { lines: [{ name: 'Jacke', ...line, epcs: [epc] }] }))
  const { storeId } = store.shop
  await store.drive(store.shop.ok('recallProducts', { ean: plain.ean, reason: 'Bruch' }))
  await store.drive(store.shop.ok('updateItemStatus', { storeId, epc, itemStatus: 'exception_hold' }))
  await store.until('the recall', () => store.agent.trust.policy?.recalledGtins?.length === 1)
  await store.until('the hold', () => store.agent.items.find('epc', epc)?.status === 'exception_hold')
  await offline()
  expect(await scan(byEan)).toMatchObject({ authorized: false, reason: 'recalled' })
  expect(await scan(byTag)).toMatchObject({ authorized: false, reason: 'item_not_paid' })
  const later = code()
  const answer = await post('/v1/sales', sale([later], { lines: [{ ean: plain.ean, ...line }] }))
  expect(answer.warnings).toMatchObject([{ code: 'sale_of_held_item', lineId: '1' }])
  expect(await scan(later)).toMatchObject({ reason: 'recalled' })
})

it('opens nothing for recalled goods with the label of a scale, a lot, or a product id', async () => {
  pair()
  const ean = '2810270000000'
  await store.drive(
    store.shop.ok('bulkImportProducts', {
      storeId: store.shop.storeId,
      products: [{ ean, name: 'Hack', price: 9.9, vat: 7 }],
    }),
  )
  const [, ofLot] = store.shop.products
  await store.drive(store.shop.ok('recallProducts', { ean, reason: 'Keime' }))
  await store.drive(store.shop.ok('recallProducts', { ean: ofLot.ean, lot: 'L1', reason: 'Glas' }))
  await store.until('the recalls', () => store.agent.trust.policy?.recalledLots !== undefined)
  expect(store.agent.trust.policy?.recalledGtins).toEqual([ean.padStart(14, '0')])
  await offline()
  const ways: [Json, Json][] = [
    [{ ean: '2810275005024' }, { reason: 'recalled' }],
    [{ ean: `01${ofLot.ean.padStart(14, '0')}10L1` }, { reason: 'recalled' }],
    [{ ean: `01${ofLot.ean.padStart(14, '0')}10L2` }, OPEN],
    [{ ean: store.shop.products[0].ean, productId: store.shop.products[2].productId }, { authorized: false }],
  ]
  for (const [named, expected] of ways) {
    const text = code()
    const lines = [{ ...named, quantity: 1, priceUnit: 500, vat: 7 }]
    const { receiptToken, warnings } = await post('/v1/sales', sale([text], { lines }))
    expect(warnings.length).toBe(expected['reason'] === undefined ? 0 : 1)
    expect([named, await scan(text)]).toMatchObject([named, expected])
    if (expected !== OPEN) expect([named, await scan(receiptToken)]).toMatchObject([named, expected])
  }
})

it('opens nothing for lines that were cancelled under another name of their product', async () => {
  pair()
  const { ean, productId } = store.shop.products[0]
  const line = (named: Json, quantity: number, priceUnit = 990) => ({ ...named, quantity, priceUnit, vat: 19 })
  const cancelled = [
    [line({ ean }, 1), line({ ean: ean.padStart(14, '0') }, -1)],
    [line({ ean }, 1), line({ productId }, -1)],
    [line({ ean }, 1), line({ name: 'Storno' }, -1)],
    [line({ ean }, 1), line({ name: 'Storno' }, 1, -990)],
    [line({ ean: `01${ean.padStart(14, '0')}10L1` }, 1), line({ ean }, -1)],
  ]
  for (const lines of cancelled) {
    const text = code()
    expect((await post('/v1/sales', sale([text], { lines }))).receiptToken).toBeUndefined()
    expect((await scan(text)).authorized).not.toBe(true)
  }
  // An exchange of goods, also for dearer ones, and a discount.
  const kept = [
    [line({ ean }, 1), line({ ean: store.shop.products[1].ean }, -1, 2_000)],
    [line({ ean }, 1), line({ name: 'Rabatt' }, 1, -500)],
  ]
  for (const lines of kept) {
    const text = code()
    expect((await post('/v1/sales', sale([text], { lines }))).receiptToken).toBeDefined()
    expect(await scan(text)).toMatchObject(OPEN)
  }
})

it('covers no goods that came back by their tags, nor does a receipt that the cloud signed before', async () => {
  pair()
  const { storeId, products, devices } = store.shop
  const epcs: string[] = []
  for (let n = 0; n < 3; n++) epcs.push((await store.drive(store.shop.newItem(products[0]))).epc)
  const [one = '', other = '', local = ''] = epcs
  const line = (...named: string[]) => [
    { ean: products[0].ean, quantity: named.length, priceUnit: 990, vat: 19, epcs: named },
  ]
  const bought = sale([], { lines: line(one, other) })
  const { results } = await store.drive(store.shop.ok('recordSales', { storeId, sales: [bought] }))
  await store.until('the items', () => store.agent.items.find('epc', other)?.status === 'paid')
  await offline()
  const text = code()
  await post('/v1/sales', sale([text], { lines: line(local) }))
  await post('/v1/returns', { returnId: 'local', epcs: [local], resellable: true })
  expect(await scan(text)).toMatchObject({ reason: 'token_revoked' })
  const show = (epc?: string) =>
    store.authorize({
      deviceId: epc === undefined ? devices.exit_gate : devices.self_checkout_detacher,
      protectionAction: epc === undefined ? 'authorize_exit' : 'detach_hard_tag',
      receipt: results[0].receiptToken,
      ...(epc !== undefined && { epc }),
    })
  await post('/v1/returns', { returnId: 'one', epcs: [one], resellable: true })
  expect((await show(one)).authorized).toBe(false)
  expect(await show(other)).toMatchObject(OPEN)
  await post('/v1/returns', { returnId: 'other', epcs: [other], resellable: true })
  expect((await show()).authorized).toBe(false)
})

it('follows the rules for the tagged goods of its sale', async () => {
  pair()
  const { storeId, products } = store.shop
  const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
  const rules = policy.allowedActionsByCategory
  const { category } = await store.drive(store.shop.ok('fetchProduct', { storeId, ean: products[0].ean }))
  const staffOnly = { ...rules['*'], authorize_exit: ['staff_assisted'] }
  const allowedActionsByCategory = { ...rules, [category.toLowerCase()]: staffOnly }
  await store.drive(
    store.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, allowedActionsByCategory } }),
  )
  const { epc } = await store.drive(store.shop.newItem(products[0]))
  await store.until('the item', () => store.agent.items.find('epc', epc) !== undefined)
  await store.until('the rule', () =>
    JSON.stringify(store.agent.trust.policy?.policy.allowedActionsByCategory).includes(category.toLowerCase()),
  )
  await offline()
  const [tagged, milk] = [code(), code()]
  await post(
    '/v1/sales',
    sale([tagged], { lines: [{ name: 'Jacke', quantity: 1, priceUnit: 990, vat: 19, epcs: [epc] }] }),
  )
  await post('/v1/sales', sale([milk]))
  expect(await scan(tagged)).toMatchObject({ authorized: false, reason: 'workflow_not_allowed' })
  expect(await scan(milk)).toMatchObject(OPEN)
})

it('ends when all goods came back, however the return names them', async () => {
  pair()
  await offline()
  const two = [
    { name: 'Milch', quantity: 2, priceUnit: 199, vat: 7 },
    { name: 'Brot', quantity: 1, priceUnit: 299, vat: 7 },
  ]
  const byCode = code()
  await post('/v1/sales', sale([byCode]))
  expect(await post('/v1/returns', { returnId: 'by-code', code: byCode })).toMatchObject({ waiting: false })
  expect(await scan(byCode)).toMatchObject({ reason: 'token_revoked' })
  const byLines = code()
  const sold = sale([byLines], { lines: two })
  await post('/v1/sales', sold)
  const part = { saleId: sold.saleId, tillId: 'till-1' }
  await post('/v1/returns', { returnId: 'part', ...part, lines: [{ lineId: '1', quantity: 1 }] })
  await post('/v1/returns', { returnId: 'more', ...part, lines: [{ lineId: '2' }] })
  // A pint is left.
  const third = sale([code()], { lines: two })
  await post('/v1/sales', third)
  expect(await scan(third.receiptCodes[0])).toMatchObject(OPEN)
  await post('/v1/returns', { returnId: 'last', code: byLines, lines: [{ lineId: '1' }] })
  expect(await scan(byLines)).toMatchObject({ reason: 'token_revoked' })
  expect(await post('/v1/returns', { returnId: 'unknown', code: code() })).toMatchObject({ waiting: true, items: [] })
  const refused = await store.local('/v1/returns', {
    method: 'POST',
    body: { returnId: 'cloud', purchaseId: newId('pur', store.world) },
    headers: { authorization: `Bearer ${credential}` },
  })
  expect(refused).toMatchObject({ status: 400, body: { details: [{ path: 'purchaseId' }] } })
})

it('calls staff for a code that two sales printed, and after ten wrong ones', async () => {
  pair()
  const text = code()
  await post('/v1/sales', sale([text]))
  await post('/v1/sales', sale([text]))
  for (const isOffline of [true, false]) {
    await offline(isOffline)
    await store.until('the report', () => isOffline || store.agent.ledger.journal.waiting === 0)
    expect(await scan(text)).toMatchObject({ kind: 'not_understood', why: 'needs_staff' })
  }
  const good = code()
  await post('/v1/sales', sale([good]))
  // Invented devices have no tries.
  expect(await scan(good, 'dev_invented')).toMatchObject({ kind: 'not_understood', why: 'needs_staff' })
  for (let n = 0; n < 8; n++) expect(await scan(code())).toMatchObject({ why: 'unknown_code' })
  expect(await scan(good)).toMatchObject({ why: 'needs_staff' })
  await store.world.advance(600_000)
  expect(await scan(good)).toMatchObject(OPEN)
})

it('expires after a day, and needs a policy that names the agent', async () => {
  pair()
  await offline()
  const text = code()
  await post('/v1/sales', sale([text]))
  const { till } = store.agent.ledger
  const hash = receiptCodeHash(store.shop.storeId, text)
  const nowS = Math.floor(store.world.clock.wall() / 1_000)
  expect([till.salesWithCode(hash, nowS), till.salesWithCode(hash, nowS + 86_400)]).toMatchObject([[{}], []])
  await offline(false)
  const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId }))
  const tillSales = { ...policy.tillSales, agents: [] }
  await store.drive(
    store.shop.ok('updateProtectionPolicy', { storeId: store.shop.storeId, policy: { ...policy, tillSales } }),
  )
  await store.until('the policy', () => store.agent.trust.policy?.policy.tillSales.agents.length === 0)
  await offline()
  expect(await scan(text)).toMatchObject({ why: 'needs_connection' })
})

function pair(): void {
  credential = newSecret('pair', store.world.random)
  store.agent.ledger.pairings.addProgram(hashSecret(credential), 'till 1', store.world.clock.wall(), [
    'sales',
    'returns',
  ])
}
