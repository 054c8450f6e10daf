import { expect, it } from 'vitest'
import { saleKeyOf } from '../../../policy/till-sale.ts'
import type { Json } from '../../support/cloud.ts'
import { lanStore, type LanAgent } from '../../support/lan-store.ts'
import { lanTills } from '../../support/lan-tills.ts'
import { until } from '../../support/receiver.ts'

/** Sales that one agent announces and another one also takes, or whose goods come back there: cases of attackers. */
const s = lanStore()
const { openTills, post, sale, statusAt, becomes } = lanTills(s)
const LIMITS = { valuePerHour: 1_000_000, salesPerHour: 1_000 }
const keyOf = ({ saleId }: Json) => saleKeyOf(s.shop.storeId, { saleId })

/** A valid EAN-13. */
function ean(number: number): string {
  const base = String(400_000_000_000 + number)
  const sum = [...base].reduce((all, digit, i) => all + Number(digit) * (i % 2 === 0 ? 1 : 3), 0)
  return base + String((10 - (sum % 10)) % 10)
}

it('a sale of 500 products and 2,000 tags does not stop the notices after it', async () => {
  const [epc = ''] = await openTills(1, undefined, LIMITS)
  const lines = Array.from({ length: 500 }, (_, i) => ({
    ean: ean(i),
    quantity: 4,
    priceUnit: 100,
    vat: 19,
    tagIds: [0, 1, 2, 3].map((n) => `G${i}-${n}`),
  }))
  await post(s.home, 'sales', { ...sale(), tillId: 'till-1', lines })
  await post(s.home, 'sales', sale(epc))
  await becomes(s.other, epc, 'paid')
})

it('a change that no receiver takes does not stop the changes after it', async () => {
  const [epc = ''] = await openTills(1)
  const { commits, till } = s.home.agent.ledger
  commits.now(() => till.saveTag(`T${'x'.repeat(300)}`, 'paid', s.platform.clock.wall(), 1))
  await post(s.home, 'sales', sale(epc))
  await becomes(s.other, epc, 'paid')
})

it('another sale with the number of an announced one is refused, and a repetition is not', async () => {
  const [a = '', b = ''] = await openTills(2)
  const first = sale(a)
  await post(s.home, 'sales', first)
  await becomes(s.other, a, 'paid')
  expect(await post(s.other, 'sales', { ...sale(b), saleId: first['saleId'] })).toMatchObject({ code: 'sale_conflict' })
  expect(await post(s.other, 'sales', first)).toMatchObject({ warnings: [], items: [{ tag: a, itemStatus: 'paid' }] })
})

it('the return of the only tag at another agent does not end the receipt of goods without tags', async () => {
  const [epc = ''] = await openTills(1)
  const sold = sale(epc)
  sold['lines'].push({ name: 'Socken', ean: ean(1), quantity: 3, priceUnit: 500, vat: 19 })
  await post(s.home, 'sales', sold)
  await becomes(s.other, epc, 'paid')
  await post(s.other, 'returns', { returnId: 'part', epcs: [epc] })
  await becomes(s.home, epc, 'returned')
  for (const node of [s.home, s.other]) expect(node.agent.ledger.claims.isDenied(keyOf(sold))).toBe(false)
  // The agent that knows the lines tells when nothing is left.
  await post(s.home, 'returns', { returnId: 'rest', saleId: sold['saleId'], lines: [{ lineId: '2' }] })
  await until('the end', async () => s.other.agent.ledger.claims.isDenied(keyOf(sold)))
})

it('an agent tells the end of its sale whose last goods come back at another one', async () => {
  const [a = '', b = ''] = await openTills(2)
  const sold = sale(a, b)
  await post(s.home, 'sales', sold)
  await becomes(s.other, b, 'paid')
  for (const epc of [a, b]) await post(s.other, 'returns', { returnId: epc, epcs: [epc] })
  for (const node of [s.home, s.other])
    await until('the end', async () => node.agent.ledger.claims.isDenied(keyOf(sold)))
})

it('a sale that is repeated where only a part of its notice came sells the tags of which nothing is known', async () => {
  const [came = '', back = '', rest = ''] = await openTills(3)
  const sold = sale(came, back, rest)
  s.onLan = () => 'cut'
  await post(s.home, 'sales', sold)
  const { till } = s.home.agent.ledger
  const iss = s.home.agent.identity.agentId
  const said = till
    .changesAfter(0)
    .tags.filter(({ name }) => [`S${keyOf(sold)}`, `E${came}`, `E${back}`].includes(name))
  const there = s.other.agent.ledger
  there.commits.now(() => {
    for (const tag of said) there.till.receiveTag(tag, iss, s.platform.clock.wall(), () => true)
  })
  await post(s.other, 'returns', { returnId: 'back', epcs: [back], resellable: true })
  // The sale is announced again, with its place in the items.
  there.commits.now(() => {
    for (const tag of said)
      there.till.receiveTag({ ...tag, ver: 1_000_000 }, iss, s.platform.clock.wall() + 1_000, () => true)
  })
  expect(await post(s.other, 'sales', sold)).toMatchObject({ warnings: [] })
  expect([came, back, rest].map((epc) => statusAt(s.other, epc))).toEqual(['paid', 'sellable', 'paid'])
})

it('a return that is repeated at another agent takes nothing back of the next sale', async () => {
  const [epc = ''] = await openTills(1)
  await post(s.home, 'sales', sale(epc))
  await becomes(s.other, epc, 'paid')
  const back = { returnId: 'again', epcs: [epc], resellable: true }
  await post(s.other, 'returns', back)
  await becomes(s.home, epc, 'sellable')
  await post(s.home, 'sales', sale(epc))
  await becomes(s.other, epc, 'paid')
  expect(await post(s.home, 'returns', back)).toMatchObject({ items: [{ tag: epc, itemStatus: 'paid' }] })
  expect(await post(s.home, 'returns', { ...back, resellable: false })).toMatchObject({ code: 'sale_conflict' })
  expect([s.home, s.other].map((node) => statusAt(node, epc))).toEqual(['paid', 'paid'])
})

it('a return at the same place of the items as a sale may be the later one, so its goods alarm', async () => {
  const [epc = ''] = await openTills(1)
  await post(s.other, 'sales', sale(epc))
  const { till, commits } = s.other.agent.ledger
  const [epoch, ver] = s.other.agent.items.position()
  const rank = (till.tag(`E${epc}`)?.rank ?? 0) + 1
  const back = { name: `E${epc}`, status: 'sellable' as const, rank, epoch, ver, sale: null }
  const receive = (place: number) =>
    commits.now(() => till.receiveTag({ ...back, ver: place }, s.home.agent.identity.agentId, 1, () => true))
  expect([receive(ver - 1), statusAt(s.other, epc)]).toEqual([false, 'paid'])
  expect(receive(ver)).toBe(false)
  commits.now(() => till.receiveTag({ ...back, rank: rank + 7 }, s.home.agent.identity.agentId, 1, () => true))
  expect(statusAt(s.other, epc)).toBe('sellable')
})

it('a sale that was voided in the cloud makes no tags paid when it is sent again to an agent', async () => {
  const [epc = ''] = await openTills(1)
  s.isUp = true
  const { storeId } = s.shop
  const sold = sale(epc)
  await s.shop.ok('recordSales', { storeId, sales: [sold] })
  await s.shop.ok('voidSale', { storeId, saleId: sold['saleId'] })
  await until('the void', async () => {
    await s.home.agent.link.poll()
    return s.home.agent.ledger.claims.isDenied(keyOf(sold)) && statusAt(s.home, epc) === 'cancelled'
  })
  await s.cutCloud()
  expect(await post(s.home, 'sales', sold)).toMatchObject({ warnings: [{ code: 'sale_is_void' }] })
  expect(statusAt(s.home, epc)).toBe('cancelled')
})

it('an agent reports the void of another agent with the sale that it voids', async () => {
  const [epc = ''] = await openTills(1)
  const sold = sale(epc)
  await post(s.home, 'sales', sold)
  await becomes(s.other, epc, 'paid')
  await post(s.home, 'sales/void', { saleId: sold['saleId'] })
  await becomes(s.other, epc, 'cancelled')
  expect(await post(s.other, 'sales', sold)).toMatchObject({ warnings: [{ code: 'sale_is_void' }] })
  const kinds = s.other.agent.ledger.journal.unsent(100).rows.map((row) => row.body.evidence?.kind)
  expect(kinds.slice(-2)).toEqual(['sale', 'sale_void'])
})

it.each(['comes back', 'is voided'])(
  'the pad releases a tag again after it %s at another agent and is sold again',
  async (how) => {
    const { storeId } = s.shop
    const { deviceId } = await s.shop.ok('registerDevice', { storeId, deviceType: 'self_checkout_detacher' })
    const tillId = `pad-${how.length}`
    await s.shop.ok('updateDevice', { deviceId, workflowType: 'pos_integrated', tillId })
    const seller = await s.addAgent(deviceId)
    const [epc = ''] = await openTills(1)
    const release = async () =>
      (await seller.agent.lanes.request({ deviceId, action: 'detach_hard_tag', identifiers: { epc } })).authorized
    const first = { ...sale(epc), tillId }
    await post(seller, 'sales', first)
    expect(await release()).toBe(true)
    await becomes(s.home, epc, 'paid')
    if (how === 'comes back') await post(s.home, 'returns', { returnId: how, epcs: [epc], resellable: true })
    else await post(s.home, 'sales/void', { saleId: first.saleId, tillId })
    await becomes(seller, epc, how === 'comes back' ? 'sellable' : 'cancelled')
    expect(await release()).toBe(false)
    await post(seller, 'sales', { ...sale(epc), tillId })
    expect(await release()).toBe(true)
  },
)

/** Two agents with a pad of one till, the one with the lower id first. */
async function twoPads(tillId: string) {
  const { storeId } = s.shop
  const pads: { node: LanAgent; deviceId: string }[] = []
  for (let i = 0; i < 2; i++) {
    const { deviceId } = await s.shop.ok('registerDevice', { storeId, deviceType: 'self_checkout_detacher' })
    await s.shop.ok('updateDevice', { deviceId, workflowType: 'pos_integrated', tillId })
    pads.push({ node: await s.addAgent(deviceId), deviceId })
  }
  const ids = (pad: (typeof pads)[number]) => pad.node.agent.identity.agentId
  return pads.sort((a, b) => (ids(a) < ids(b) ? -1 : 1)) as [(typeof pads)[number], (typeof pads)[number]]
}
const release = async ({ node, deviceId }: { node: LanAgent; deviceId: string }, epc: string) =>
  (await node.agent.lanes.request({ deviceId, action: 'detach_hard_tag', identifiers: { epc } })).authorized

it('two agents that recorded one sale release its label once, after they have heard of each other', async () => {
  const [low, high] = await twoPads('twice')
  const [epc = ''] = await openTills(1)
  const sold = { ...sale(epc), tillId: 'twice' }
  s.onLan = () => 'cut'
  for (const { node } of [low, high]) await post(node, 'sales', sold)
  s.onLan = () => 'pass'
  for (const { node } of [low, high]) node.agent.tillNotices.send()
  const key = saleKeyOf(s.shop.storeId, { saleId: sold.saleId, tillId: 'twice' })
  await until('the other one', async () => high.node.agent.ledger.till.recorderOf(key) !== undefined)
  expect([await release(high, epc), await release(low, epc)]).toEqual([false, true])
})

it('the pad releases a sale that the till repeated at its agent, and the pad of the other agent no more', async () => {
  const [low, high] = await twoPads('failed-over')
  const [epc = ''] = await openTills(1)
  const sold = { ...sale(epc), tillId: 'failed-over' }
  await post(high.node, 'sales', sold)
  await becomes(low.node, epc, 'paid')
  expect(await release(low, epc)).toBe(false)
  await post(low.node, 'sales', sold)
  const key = saleKeyOf(s.shop.storeId, { saleId: sold.saleId, tillId: 'failed-over' })
  await until('the other one', async () => high.node.agent.ledger.till.recorderOf(key) !== undefined)
  expect([await release(high, epc), await release(low, epc)]).toEqual([false, true])
})

it('a code that an agent announced counts when its sale is recorded here, although that agent is not named any more', async () => {
  await openTills(0)
  const { till, commits } = s.other.agent.ledger
  const sold = sale()
  const code = `C-${keyOf(sold)}`
  const lines = [{ name: 'Milch', quantity: 1, priceUnit: 99, vat: 7, ean: ean(7) }]
  await post(s.home, 'sales', { ...sold, lines, receiptCodes: [code] })
  const [known] = s.home.agent.ledger.till.changesAfter(0).codes.slice(-1)
  await until('the code there', async () => known !== undefined && till.salesWithCode(known.code, 0).length === 1)
  commits.now(() => till.receiveCodes(known ? [known] : [], 'another'))
  const senderOf = () => till.salesWithCode(known?.code ?? '', 0).map(({ sender }) => sender)
  expect(senderOf()).toEqual([s.home.agent.identity.agentId])
  commits.now(() => known && till.saveCode(known))
  expect(senderOf()).toEqual([''])
})
