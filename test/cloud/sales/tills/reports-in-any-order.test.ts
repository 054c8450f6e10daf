import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pruneSales } from '../../../../cloud/sales/tills/due-sales.ts'
import type { TillEvidence } from '../../../../policy/journal.ts'
import { keptReturn, keptSale, saleTagHash, type TillReturn, type TillSale } from '../../../../policy/till-sale.ts'
import type { Json } from '../../../support/cloud.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/**
 * Cases that an attacker found: voids, exchanges, named returns and copies by the server, in an order in which the cloud
 * first knows less than the agents did.
 */
const { platform, forward } = movablePlatform()
const DAY_MS = 86_400_000
let shop: Shop
let home: TestAgent
let other: TestAgent
beforeAll(async () => {
  shop = await openShop('sqlite', { platform })
  home = await enrolTestAgent(shop)
  other = await enrolTestAgent(shop)
  const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
  const tillSales = { ...policy.tillSales, agents: [home.agentId, other.agentId], salesPerHour: 100_000 }
  await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, tillSales } })
})
afterAll(() => shop.stop())

let number = 0
const ago = (minutes: number) => platform.clock.wall() - minutes * 60_000
/** A piece that has been in the store for hours, so that the agents knew it. */
async function piece(): Promise<string> {
  const { epc } = await shop.newItem(shop.products[0])
  await later(7_200_000)
  return epc as string
}
async function later(ms: number): Promise<void> {
  forward(ms)
  await home.login()
  await other.login()
}
const line = (priceUnit: number, epcs: string[], quantity = 1): Json => ({
  name: 'Jacke',
  quantity,
  priceUnit,
  vat: 19,
  ...(epcs.length > 0 && { epcs }),
})
/** A sale of these minutes ago. */
const sale = (minutes: number, ...lines: Json[]): Json => ({
  saleId: `r${++number}`,
  tillId: 'till-3',
  occurredAt: new Date(ago(minutes)).toISOString(),
  lines,
})
const exchange = (minutes: number, sold: string, back: string) =>
  sale(minutes, line(1_000, [sold]), line(1_000, [back], -1))
const sold = (each: Json, fields: Json = {}): TillEvidence => ({
  kind: 'sale',
  sale: keptSale(shop.storeId, each as TillSale),
  items: [0, 0],
  ...fields,
})
const voided = ({ saleId, tillId }: Json): TillEvidence => ({ kind: 'sale_void', saleId, tillId })
const requestOf = (fields: Json): Json => ({ returnId: `b${++number}`, tillId: 'till-3', resellable: true, ...fields })
const back = (request: Json): TillEvidence => ({
  kind: 'sale_return',
  return: keptReturn(shop.storeId, request as TillReturn),
})
const report = async (by: TestAgent, minutes: number, evidence: TillEvidence) =>
  expect((await by.report([by.row({ evidence, atMs: ago(minutes) })])).body).toMatchObject({ accepted: 1 })
const statusOf = async (epc: string) => (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus
const refundedOf = async ({ saleId }: Json): Promise<number> =>
  (await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, saleId })).purchases[0].refunded ?? 0
const prune = () => shop.cloud.db.database.write((db) => pruneSales(db, platform.clock.wall()))
/** The agent knew the items as they are. */
const knew = { items: [0, 1_000_000_000] }
const ret = (fields: Json) => shop.ok('recordReturns', { storeId: shop.storeId, returns: [requestOf(fields)] })
const unclear = async () =>
  (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: 'return_unclear', limit: 200 })).exceptions.length

describe('a piece', () => {
  it('that was voided and sold again comes back once, whichever agent reports first', async () => {
    for (const isReturnFirst of [true, false]) {
      const epc = await piece()
      const [first, again] = [sale(30, line(1_000, [epc])), sale(20, line(1_500, [epc]))]
      const returned = () => report(other, 5, back(requestOf({ epcs: [epc] })))
      if (isReturnFirst) await returned()
      await report(home, 30, sold(first))
      await report(home, 25, voided(first))
      await report(home, 20, sold(again))
      if (!isReturnFirst) await returned()
      expect([await statusOf(epc), await refundedOf(again)]).toEqual(['sellable', 15])
    }
  })

  it.each([true, false])(
    'that was voided, rung up again and comes back at another agent is for sale; its return arrives first: %s',
    async (isReturnFirst) => {
      const epc = await piece()
      const [first, again] = [sale(60, line(1_000, [epc])), sale(50, line(1_000, [epc]))]
      await report(home, 60, sold(first))
      await report(home, 55, voided(first))
      expect(await statusOf(epc)).toBe('cancelled')
      if (isReturnFirst) await report(other, 10, back(requestOf({ epcs: [epc] })))
      await report(home, 50, sold(again))
      if (!isReturnFirst) await report(other, 10, back(requestOf({ epcs: [epc] })))
      expect([await statusOf(epc), await refundedOf(again)]).toEqual(['sellable', 10])
    },
  )

  it.each([
    ['sale', 'exchange', 'return'],
    ['exchange', 'sale', 'return'],
    ['exchange', 'return', 'sale'],
    ['return', 'exchange', 'sale'],
  ])(
    'that came back with another sale is refunded once by the return of its whole sale: %s, %s, %s',
    async (...order) => {
      const [a, b, c] = [await piece(), await piece(), await piece()]
      const before = await unclear()
      const code = `code-${++number}`
      const first = { ...sale(60, line(1_000, [a]), line(1_500, [b])), receiptCodes: [code] }
      const [swap, whole] = [exchange(20, c, a), back(requestOf({ code }))]
      const steps: Record<string, () => Promise<void>> = {
        sale: () => report(home, 60, sold(first)),
        exchange: () => report(home, 20, sold(swap)),
        return: () => report(other, 10, whole),
      }
      for (const step of order) await steps[step]?.()
      expect([await statusOf(a), await statusOf(b), await statusOf(c)]).toEqual(['returned', 'sellable', 'paid'])
      expect([await refundedOf(first), (await unclear()) - before]).toEqual([15, 0])
    },
  )

  it('that came back at an agent that is offline, and whose next sale is voided, is not paid', async () => {
    const epc = await piece()
    const [first, again] = [sale(60, line(1_000, [epc])), sale(20, line(1_000, [epc]))]
    await report(home, 60, sold(first))
    await report(other, 20, sold(again, { resold: [saleTagHash({ kind: 'epc', id: epc, isValid: true })] }))
    expect(await statusOf(epc)).toBe('paid')
    await report(other, 10, voided(again))
    expect(await statusOf(epc)).toBe('cancelled')
    await report(home, 40, back(requestOf({ epcs: [epc] })))
    expect([await statusOf(epc), await refundedOf(first)]).toEqual(['cancelled', 10])
  })

  it('that is sold twice and comes back by its tag stays unsold when its first sale is voided', async () => {
    for (const isVoidOfFirst of [true, false]) {
      const epc = await piece()
      const sales = [sale(50, line(1_000, [epc])), sale(40, line(1_000, [epc]))]
      for (const [n, each] of sales.entries()) await report(home, 50 - n * 10, sold(each))
      await report(home, 30, back(requestOf({ epcs: [epc] })))
      const before = await statusOf(epc)
      await report(home, 20, voided(sales[isVoidOfFirst ? 0 : 1] ?? {}))
      expect([isVoidOfFirst, before, await statusOf(epc)]).toEqual([isVoidOfFirst, 'sellable', 'sellable'])
    }
  })

  it('whose return came before the void of its sale is refunded, in any order', async () => {
    const outcomes: unknown[] = []
    for (const isSaleFirst of [true, false]) {
      const [a, b] = [await piece(), await piece()]
      const first = sale(60, line(1_000, [a]), line(1_500, [b]))
      const before = await unclear()
      if (isSaleFirst) await report(home, 60, sold(first))
      await report(other, 30, back(requestOf({ saleId: first['saleId'], lines: [{ lineId: '1', quantity: 1 }] })))
      await report(other, 20, voided(first))
      if (!isSaleFirst) await report(home, 60, sold(first))
      outcomes.push([await statusOf(a), await statusOf(b), await refundedOf(first), (await unclear()) - before])
    }
    expect(outcomes[1]).toEqual(outcomes[0])
    expect(outcomes[0]).toEqual(['sellable', 'cancelled', 25, 0])
  })

  it('is booked by the return that names its sale before a return by its tag', async () => {
    const epc = await piece()
    const [first, again] = [sale(30, line(1_000, [epc])), sale(20, line(1_500, [epc]))]
    await report(other, 25, back(requestOf({ saleId: first['saleId'], resellable: false })))
    await report(other, 5, back(requestOf({ epcs: [epc] })))
    await report(home, 30, sold(first))
    await report(home, 20, sold(again))
    expect([await statusOf(epc), await refundedOf(first), await refundedOf(again)]).toEqual(['sellable', 10, 15])
  })

  it('that came back with another sale alarms, although its void was known before its next sale', async () => {
    const [epc, another] = [await piece(), await piece()]
    const first = sale(40, line(1_000, [epc]))
    await report(home, 40, sold(first))
    await report(home, 35, voided(first))
    await report(other, 10, sold(exchange(10, another, epc)))
    await report(home, 30, sold(sale(30, line(4_000, [epc]))))
    expect(['cancelled', 'returned']).toContain(await statusOf(epc))
  })

  it('that came back with another sale and was sold again stays paid if the server sends the day first', async () => {
    const [epc, another] = [await piece(), await piece()]
    const day = [sale(40, line(1_000, [epc])), exchange(30, another, epc), sale(10, line(4_000, [epc]))]
    for (const each of day) await shop.ok('recordSales', { storeId: shop.storeId, sales: [each] })
    expect(await statusOf(epc)).toBe('paid')
    for (const [i, each] of day.entries()) await report(other, [40, 30, 10][i] ?? 0, sold(each))
    expect(await statusOf(epc)).toBe('paid')
  })

  it('of which the server sends a return first is paid by the sale after it', async () => {
    const epc = await piece()
    const request = requestOf({ epcs: [epc], resellable: false })
    await report(home, 40, sold(sale(40, line(1_000, [epc]))))
    await shop.ok('recordReturns', { storeId: shop.storeId, returns: [request] })
    await report(other, 20, sold(sale(20, line(4_000, [epc]))))
    await report(home, 30, back(request))
    expect(await statusOf(epc)).toBe('paid')
  })

  it('is not sold again by a copy of its sale that a till sends after it came back', async () => {
    const epc = await piece()
    const copied = sale(30, line(1_000, [epc]))
    await report(home, 20, back(requestOf({ epcs: [epc] })))
    await report(home, 10, sold(copied, { announcedMs: ago(30) }))
    expect(await statusOf(epc)).toBe('sellable')
    await report(other, 30, sold(copied))
    expect([await statusOf(epc), await refundedOf(copied)]).toEqual(['sellable', 10])
  })

  it('has an exception if its return is booked on a sale that ended otherwise', async () => {
    const before = await unclear()
    const [epc, another] = [await piece(), await piece()]
    await report(home, 40, sold(sale(40, line(1_000, [epc]))))
    await report(other, 5, back(requestOf({ epcs: [epc] })))
    await report(home, 30, sold(exchange(30, another, epc)))
    await report(home, 20, sold(sale(20, line(4_000, [epc]))))
    expect([await statusOf(epc), (await unclear()) > before]).toEqual(['sellable', true])
  })
})

describe('a return', () => {
  it('takes back the tags that it names, although it names a sale that is not here, or is old', async () => {
    const [fresh, epc] = [await piece(), await piece()]
    await report(home, 10, sold(sale(10, line(1_000, [fresh]))))
    await report(home, 5, back(requestOf({ saleId: 'mistyped', epcs: [fresh] })))
    expect(await statusOf(fresh)).toBe('sellable')
    const old = sale(0, line(1_000, [epc]))
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [old] })
    await later(91 * DAY_MS)
    await shop.cloud.db.database.write((db) => pruneSales(db, platform.clock.wall()))
    const request = requestOf({ saleId: old['saleId'], epcs: [epc] })
    expect(await shop.ok('recordReturns', { storeId: shop.storeId, returns: [request] })).toMatchObject({
      results: [{ amountCent: 1_000, items: [{ itemStatus: 'sellable' }] }],
    })
  })

  it('that is refused leaves nothing, so that its repetition is refused, too', async () => {
    const epc = await piece()
    const requests = Array.from({ length: 11 }, () => requestOf({ epcs: [epc] }))
    const send = (request: Json | undefined) => shop.ok('recordReturns', { storeId: shop.storeId, returns: [request] })
    for (const request of requests.slice(0, 10)) expect(await send(request)).toMatchObject({ recorded: 1 })
    for (const refused of [requests[10], requests[10]])
      expect(await send(refused)).toMatchObject({ errors: [{ code: 'too_many_waiting_returns' }] })
  })

  it('may name a line several times, and a part of weighed goods of whole kilograms', async () => {
    const [one, two] = [await piece(), await piece()]
    const of = sale(0, line(1_000, [one, two], 2), { name: 'Äpfel', quantity: 2, priceUnit: 300, vat: 7 })
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
    const lines = [
      { lineId: '1', epcs: [one] },
      { lineId: '1', epcs: [two] },
      { lineId: '2', quantity: 0.5 },
    ]
    const request = requestOf({ saleId: of['saleId'], lines })
    expect(await shop.ok('recordReturns', { storeId: shop.storeId, returns: [request] })).toMatchObject({
      errors: [],
      results: [{ amountCent: 2_150 }],
    })
  })

  it('may name a tag that was doubtful at the sale', async () => {
    const of = sale(0, line(1_000, ['3034257BF7194E4000FFFFFF']))
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
    const request = requestOf({ saleId: of['saleId'], epcs: ['3034257BF7194E4000FFFFFF'] })
    expect(await shop.ok('recordReturns', { storeId: shop.storeId, returns: [request] })).toMatchObject({
      results: [{ amountCent: 1_000 }],
    })
  })
})

describe('a number of a sale', () => {
  it('may be used again after 90 days, and the goods of before are no longer named by it', async () => {
    const first = sale(0, line(1_000, []))
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [first] })
    await later(91 * DAY_MS)
    await shop.cloud.db.database.write((db) => pruneSales(db, platform.clock.wall()))
    const again = { ...sale(0, line(2_000, [])), saleId: first['saleId'] }
    await report(home, 0, sold(again))
    const { purchases } = await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, limit: 2 })
    expect(purchases.map(({ total }: Json) => total)).toContain(20)
    expect(await shop.ok('recordReturns', { storeId: shop.storeId, returns: [requestOf({ saleId: first['saleId'] })] })) //
      .toMatchObject({ results: [{ amountCent: 2_000 }] })
  })

  it('is not taken over by a copy of a sale that the cloud forgot early, because its agent was away for months', async () => {
    const late = sale(0, line(1_000, []))
    await later(91 * DAY_MS)
    await report(home, 91 * 1_440, sold(late))
    await prune()
    const copy = () => shop.ok('recordSales', { storeId: shop.storeId, sales: [late] })
    expect(await copy()).toMatchObject({ recorded: 0, repeated: 1, errors: [] })
    await later(89 * DAY_MS)
    await prune()
    expect(await copy()).toMatchObject({ recorded: 0, repeated: 1, errors: [] })
  })

  it('is free again 90 days after the sale, although an agent without network reported that sale days later', async () => {
    const first = sale(0, line(1_000, []))
    await later(3 * DAY_MS)
    await report(home, 3 * 1_440, sold(first))
    await later(87 * DAY_MS + 3_600_000)
    await prune()
    await report(home, 0, sold({ ...sale(0, line(2_000, [])), saleId: first['saleId'] }))
    const { purchases } = await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, saleId: first['saleId'] })
    expect(purchases).toMatchObject([{ total: 20 }])
  })

  it.each([true, false])(
    'is free of a void of 90 days ago that booked no sale: of an open sale: %s',
    async (isOpen) => {
      const epc = await piece()
      const of = sale(0, line(1_000, [epc]))
      const { saleId, tillId } = of
      const name = { storeId: shop.storeId, saleId, tillId }
      const sell = (each: Json) => shop.ok('recordSales', { storeId: shop.storeId, sales: [each] })
      if (isOpen) await sell({ ...of, state: 'open' })
      await shop.ok('voidSale', name)
      await later(91 * DAY_MS)
      const again = { ...of, occurredAt: new Date(ago(0)).toISOString() }
      expect((await sell(again)).results[0].warnings).toEqual([])
      expect(await statusOf(epc)).toBe('paid')
    },
  )

  it('has the void of its new sale that comes before that sale', async () => {
    const epc = await piece()
    const of = sale(0, line(1_000, [epc]))
    await report(home, 0, voided(of))
    await later(91 * DAY_MS)
    await report(home, 0, voided(of))
    await later(60_000)
    await report(home, 2, sold({ ...of, occurredAt: new Date(ago(2)).toISOString() }))
    expect(await statusOf(epc)).toBe('cancelled')
  })

  it.each(['by tag', 'by purchaseId', 'at an agent', 'with another sale'])(
    'that its till used again does not keep goods of the first sale paid that come back %s',
    async (how) => {
      const epc = await piece()
      const first = sale(0, line(3_300, [epc]))
      const { results } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [first] })
      await later(91 * DAY_MS)
      await prune()
      await report(home, 0, sold({ ...sale(0, line(2_000, [])), saleId: first['saleId'] }))
      const { purchaseId } = results[0]
      const request = requestOf(how === 'by purchaseId' ? { purchaseId } : { epcs: [epc] })
      if (how === 'at an agent') await report(home, 0, back(request))
      else if (how === 'with another sale')
        await shop.ok('recordSales', {
          storeId: shop.storeId,
          sales: [sale(0, line(5_000, []), line(3_300, [epc], -1))],
        })
      else await shop.ok('recordReturns', { storeId: shop.storeId, returns: [request] })
      expect(await statusOf(epc)).toBe(how === 'with another sale' ? 'returned' : 'sellable')
      // A sale that takes goods back has credited their money itself.
      const refunded = how === 'with another sale' ? {} : { refunded: 33 }
      expect(await shop.ok('fetchPurchase', { purchaseId })).toMatchObject({ total: 33, ...refunded })
    },
  )

  it.each(['receipt', 'code'])(
    'that its till used again does not book a return by the %s of the first sale on the second',
    async (how) => {
      const receiptCodes = ['first-sale-8F2K-4711']
      const first = { ...sale(0, line(3_300, [])), receiptCodes }
      const { results } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [first] })
      const { purchaseId, receiptToken } = results[0]
      await later(91 * DAY_MS)
      const second = { ...sale(0, line(2_000, [])), saleId: first['saleId'] }
      const { results: again } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [second] })
      const request = requestOf(how === 'receipt' ? { receipt: receiptToken } : { code: receiptCodes[0] })
      const answer = await shop.ok('recordReturns', { storeId: shop.storeId, returns: [request] })
      if (how === 'receipt') expect(answer).toMatchObject({ results: [{ purchaseId, amountCent: 3_300 }] })
      else expect(answer).toMatchObject({ recorded: 0, errors: [{ code: 'not_found', field: 'code' }] })
      expect((await shop.ok('fetchPurchase', { purchaseId: again[0].purchaseId })).refunded).toBe(0)
      const own = requestOf({ receipt: again[0].receiptToken })
      expect(await shop.ok('recordReturns', { storeId: shop.storeId, returns: [own] })).toMatchObject({
        results: [{ purchaseId: again[0].purchaseId, amountCent: 2_000 }],
      })
    },
  )

  it('that two agents use: a void by the second does not void the sale of the first', async () => {
    const [epc, another] = [await piece(), await piece()]
    const first = sale(30, line(1_000, [epc]))
    await report(home, 30, sold(first))
    await report(other, 29, sold({ ...first, lines: [line(4_000, [another])] }))
    await report(other, 20, voided(first))
    expect(await statusOf(epc)).toBe('paid')
    const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: 'sale_conflict' })
    expect(exceptions[0].detail).toContain('4000 cents')
  })
})

/** An agent without a battery clock that starts offline counts from the last time that it knew (ADR trusted-time). */
describe('goods that come back at an agent whose clock stands', () => {
  it.each([
    ['the cloud', 60],
    ['another agent', 60],
    ['the same agent, before it was off', 60],
    ['the cloud', 3 * 1_440],
    ['another agent', 3 * 1_440],
  ])('after they were sold at %s alarm, %s minutes behind', async (where, behind) => {
    for (const named of [false, true]) {
      const epc = await piece()
      const of = sale(30, line(1_000, [epc]))
      if (where === 'the cloud') await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
      else await report(where === 'another agent' ? other : home, 30, sold(of))
      expect(await statusOf(epc)).toBe('paid')
      const request = requestOf({ ...(named && { saleId: of['saleId'] }), epcs: [epc] })
      await report(home, behind, { ...back(request), untimed: true } as TillEvidence)
      expect.soft(await statusOf(epc), named ? 'by sale' : 'by tag').toBe('sellable')
    }
  })
})

describe('a sale of an agent whose clock stands since 91 days', () => {
  const minutes = 91 * 1_440
  it('is repeated when the till sends it to the cloud, too', async () => {
    const of = sale(0, line(1_000, []))
    await report(home, minutes, sold(of))
    await prune()
    const { repeated, errors } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
    expect([repeated, errors]).toEqual([1, []])
  })
  it('is no conflict when the till repeats it at another agent', async () => {
    const of = sale(0, line(1_000, []))
    await report(home, minutes, sold(of))
    await prune()
    const conflicts = async () =>
      (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: 'sale_conflict' })).exceptions
    const before = await conflicts()
    await report(other, 0, sold(of))
    expect(await conflicts()).toEqual(before)
  })
  it.each(['cloud', 'same agent', 'other agent'])('is void when the till voids it at the %s', async (where) => {
    const epc = await piece()
    const of = sale(0, line(1_000, [epc]))
    await report(home, minutes, sold(of, knew))
    expect(await statusOf(epc)).toBe('paid')
    await prune()
    if (where === 'cloud') await shop.ok('voidSale', { storeId: shop.storeId, saleId: of['saleId'], tillId: 'till-3' })
    else await report(where === 'same agent' ? home : other, where === 'same agent' ? minutes : 0, voided(of))
    expect(['cancelled', 'exception_hold']).toContain(await statusOf(epc))
  })
})

describe('a sale of a revoked till', () => {
  it.each([true, false])(
    'is for staff if an agent stored it before the revocation and a later copy came first; it was revoked before it: %s',
    async (isRevokedFirst) => {
      const epc = await piece()
      const { storeId } = shop
      const of = { ...sale(5, line(1_000, [epc])), tillId: `revoked-${++number}` }
      const revoke = () =>
        shop.ok('revokeTill', { storeId, tillId: of.tillId, sinceAt: new Date(ago(3)).toISOString() })
      if (isRevokedFirst) await revoke()
      await shop.ok('recordSales', { storeId, sales: [of] })
      if (!isRevokedFirst) await revoke()
      for (const minutes of [2, 5, 5]) await report(home, minutes, sold(of))
      const { exceptions } = await shop.ok('fetchExceptions', { storeId, kind: 'sale_of_revoked_till', limit: 200 })
      const own = exceptions.filter(({ detail }: Json) => detail.includes(`sale ${of['saleId']} is on hold`))
      expect(own).toMatchObject([{ times: 1 }])
    },
  )

  it('is no news for staff if it gave its rights', async () => {
    const of = { ...sale(5, line(1_000, [await piece()])), tillId: `revoked-${++number}` }
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
    await later(60_000)
    await shop.ok('revokeTill', { storeId: shop.storeId, tillId: of.tillId })
    await report(home, 5, sold(of))
    const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: 'sale_of_revoked_till' })
    expect(exceptions.filter(({ detail }: Json) => detail.includes(of['saleId']))).toEqual([])
  })
})

describe('goods that came back as not resellable', () => {
  it.each([1, 30, 70, 600])(
    'and go on sale by a second return are paid when an agent sells them %s s later',
    async (seconds) => {
      const epc = await piece()
      const first = sale(30, line(1_000, [epc]))
      await shop.ok('recordSales', { storeId: shop.storeId, sales: [first] })
      await ret({ epcs: [epc], resellable: false })
      expect(await statusOf(epc)).toBe('returned')
      await ret({ epcs: [epc], resellable: true })
      expect(await statusOf(epc)).toBe('sellable')
      forward(seconds * 1_000)
      const again = sale(0, line(1_500, [epc]))
      await report(home, 0, sold(again, knew))
      expect([await statusOf(epc), await refundedOf(first), await refundedOf(again)]).toEqual(['paid', 10, 0])
    },
  )
  it.each([1, 30])(
    'twice by mistake (two tills report the same return) are paid when an agent sells them %s s later',
    async (seconds) => {
      const epc = await piece()
      const first = sale(30, line(1_000, [epc]))
      await shop.ok('recordSales', { storeId: shop.storeId, sales: [first] })
      await ret({ epcs: [epc], resellable: true })
      await ret({ epcs: [epc], resellable: true })
      forward(seconds * 1_000)
      const again = sale(0, line(1_500, [epc]))
      await report(home, 0, sold(again, knew))
      expect([await statusOf(epc), await refundedOf(first), await refundedOf(again)]).toEqual(['paid', 10, 0])
    },
  )
})

describe('goods whose sale an agent stored with a clock that was ahead', () => {
  it.each([
    ['at that agent', 60, true],
    ['in the cloud', 60, false],
    ['at that agent', 60 * 24 * 40, true],
    ['at that agent, in the same batch', 60, true],
  ])('come back %s (%s minutes)', async (where, minutes, isAtAgent) => {
    const epc = await piece()
    const first = sale(0, line(1_000, [epc]))
    if (where.endsWith('batch')) {
      // The clock was set right before the return, and both rows arrive after it.
      const rows = [
        home.row({ evidence: sold(first, knew), atMs: ago(-minutes) }),
        home.row({ evidence: back(requestOf({ epcs: [epc] })), atMs: ago(1) }),
      ]
      expect((await home.report(rows)).body).toMatchObject({ accepted: 2 })
    } else {
      await report(home, -minutes, sold(first, knew))
      await later(600_000)
      if (isAtAgent) await report(home, 0, back(requestOf({ epcs: [epc] })))
      else await ret({ epcs: [epc] })
    }
    expect([await statusOf(epc), await refundedOf(first)]).toEqual(['sellable', 10])
    const again = sale(0, line(1_500, [epc]))
    await later(600_000)
    await report(home, 0, sold(again, knew))
    expect([await statusOf(epc), await refundedOf(again)]).toEqual(['paid', 0])
  })
})

describe('what waits for its sale', () => {
  it('outlasts 90 days by the clock of an agent that was off for longer', async () => {
    const epc = await piece()
    const of = sale(0, line(1_000, [epc]))
    await report(home, 100 * 1_440, voided(of))
    await prune()
    await report(other, 0, sold(of, knew))
    expect(await statusOf(epc)).toBe('cancelled')
  })
})

describe('an old sale', () => {
  it('that a till sends again after its number is free is not booked twice', async () => {
    const of = sale(0, line(1_000, []))
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
    forward(98 * DAY_MS)
    await prune()
    const { errors } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
    expect(errors).toMatchObject([{ code: 'sale_conflict' }])
    const next = { ...of, occurredAt: new Date(platform.clock.wall()).toISOString() }
    expect(await shop.ok('recordSales', { storeId: shop.storeId, sales: [next] })).toMatchObject({ recorded: 1 })
  })
})

describe('a tag that comes back with another sale', () => {
  it('is doubted if it is of another store, or unknown', async () => {
    const epc = newEpc()
    const items = [{ epc, ean: shop.products[0].ean }]
    await shop.ok('registerProtectedItems', { storeId: shop.otherStoreId, items })
    for (const tag of [epc, '30395DFA8340A000000ABCDE']) {
      const of = exchange(0, await piece(), tag)
      const { results } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [of] })
      expect(results[0].warnings).toMatchObject([{ code: 'sale_tag_unknown', tag }])
    }
  })
})

describe('goods of a return at an agent that cannot be booked', () => {
  it('alarm if another return has its number', async () => {
    const [a, b] = [await piece(), await piece()]
    const [first, second] = [sale(30, line(1_000, [a])), sale(30, line(1_000, [b]))]
    await report(home, 30, sold(first, knew))
    await report(other, 30, sold(second, knew))
    const of = ({ saleId }: Json) => back({ returnId: 'same', saleId, tillId: 'till-3', resellable: true })
    await report(home, 5, of(first))
    await report(other, 5, of(second))
    expect([await statusOf(a), await statusOf(b)]).toEqual(['sellable', 'sellable'])
  })

  it.each([{ lineId: 'nope' }, { lineId: '1', quantity: 5 }])('alarm if the line does not fit: %o', async (named) => {
    const [a, b] = [await piece(), await piece()]
    const of = sale(30, line(1_000, [a, b], 2))
    await report(home, 30, sold(of, knew))
    await report(home, 5, back(requestOf({ saleId: of['saleId'], lines: [named] })))
    expect([await statusOf(a), await statusOf(b)]).toEqual(['sellable', 'sellable'])
  })

  it('stay paid if they were sold again', async () => {
    const epc = await piece()
    const [first, again] = [sale(30, line(1_000, [epc])), sale(10, line(1_500, [epc]))]
    await report(home, 30, sold(first, knew))
    await report(home, 20, back(requestOf({ saleId: first['saleId'] })))
    await report(home, 10, sold(again, knew))
    await report(home, 5, back(requestOf({ saleId: first['saleId'] })))
    expect(await statusOf(epc)).toBe('paid')
  })
})

describe('the stock after goods were sold, voided, sold again and came back', () => {
  it.each([
    ['in this order', 'returned', true, -1],
    ['in this order', 'sellable', true, 0],
    ['void and return first', 'returned', false, -1],
    ['void and return first', 'sellable', false, 0],
  ])('is right if the rows arrive %s, for goods that are %s', async (_order, becomes, isInOrder, difference) => {
    const [product] = shop.products
    const { storeId } = shop
    const stockOf = async (): Promise<number> =>
      (await shop.ok('fetchStock', { storeId })).stock.find((each: Json) => each.productId === product.productId)
        .quantity
    await shop.ok('setStock', { storeId, productId: product.productId, quantity: 100 })
    const epc = await piece()
    const ofProduct = { ...line(1_000, [epc]), ean: product.ean }
    const [first, second] = [sale(50, ofProduct), sale(40, ofProduct)]
    const end = () => report(home, 45, voided(first))
    const comeBack = () => report(home, 10, back(requestOf({ epcs: [epc], resellable: becomes === 'sellable' })))
    if (!isInOrder) {
      await end()
      await comeBack()
    }
    await report(other, 50, sold(first))
    if (isInOrder) await end()
    await report(other, 40, sold(second))
    if (isInOrder) await comeBack()
    expect([(await stockOf()) - 100, await refundedOf(first), await refundedOf(second)]).toEqual([difference, 10, 10])
  })
})
