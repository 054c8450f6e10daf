import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Evidence, TillEvidence } from '../../../../policy/journal.ts'
import { RECEIPT_LIFE, signSaleReceipt } from '../../../../policy/receipts/receipt-token.ts'
import {
  saleTagHash,
  keptReturn,
  keptSale,
  saleKeyOf,
  type TillReturn,
  type TillSale,
} from '../../../../policy/till-sale.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('a sale that a till reported to an agent', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let till: TestAgent
  let other: TestAgent
  let stranger: TestAgent
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    till = await enrolTestAgent(shop)
    other = await enrolTestAgent(shop)
    stranger = await enrolTestAgent(shop, shop.otherStoreId)
    for (const [storeId, agents] of [
      [shop.storeId, [till.agentId]],
      [shop.otherStoreId, [stranger.agentId]],
    ]) {
      const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
      await shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales: { agents } } })
    }
  })
  afterAll(() => shop.stop())

  let number = 0
  const saleOf = (epc: string, fields: Json = {}) => ({
    saleId: `a${++number}`,
    tillId: 'till-3',
    occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
    lines: [{ ean: shop.products[0].ean, quantity: 1, priceUnit: 4_990, vat: 19 as const, epcs: [epc] }],
    ...fields,
  })
  const report = async (by: TestAgent, ...evidence: TillEvidence[]) =>
    expect((await by.report(evidence.map((each) => by.row({ evidence: each })))).body).toMatchObject({
      accepted: evidence.length,
    })
  const sold = (sale: ReturnType<typeof saleOf>): TillEvidence => ({
    kind: 'sale',
    sale: keptSale(shop.storeId, sale as TillSale),
    items: [0, 0],
  })
  const returned = (request: TillReturn, sale?: string): TillEvidence => ({
    kind: 'sale_return',
    return: keptReturn(shop.storeId, request),
    ...(sale !== undefined && { sale }),
  })
  const statusOf = async (epc: string) =>
    (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus
  const exceptions = async (of: string): Promise<Json[]> =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: of, limit: 200 })).exceptions
  const ago = (ms: number) => shop.cloud.platform.clock.wall() - ms
  const item = async () => (await shop.newItem(shop.products[0])).epc

  it('counts only from an agent that the policy names', async () => {
    const [good, bad] = [await item(), await item()]
    await report(till, sold(saleOf(good)))
    await report(other, sold(saleOf(bad)))
    expect([await statusOf(good), await statusOf(bad)]).toEqual(['paid', 'sellable'])
    expect((await exceptions('foreign_evidence')).some(({ detail }) => /tillSales.agents/.test(detail))).toBe(true)
  })

  it('counts from an agent that the policy ceased to name after it stored the sale, once', async () => {
    const former = await enrolTestAgent(shop)
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    const name = (agents: string[]) =>
      shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, tillSales: { agents } } })
    await name([...policy.tillSales.agents, former.agentId])
    const [before, unaware, later] = [await item(), await item(), await item()]
    const sale = saleOf(before)
    const soldMs = ago(0)
    await name(policy.tillSales.agents)
    const at = async (sent: Json, atMs: number) =>
      former.report([former.row({ evidence: sold(sent as ReturnType<typeof saleOf>), atMs })])
    await at(sale, soldMs)
    await at(sale, soldMs)
    await at(saleOf(unaware), ago(0))
    await shop.cloud.db.database.write((db) =>
      db
        .updateTable('agent')
        .set({ till_until_ms: ago(81 * 3_600_000) })
        .where('agent_id', '=', former.agentId)
        .execute(),
    )
    await at(saleOf(later), ago(0))
    expect([await statusOf(before), await statusOf(unaware), await statusOf(later)]).toEqual([
      'paid',
      'paid',
      'sellable',
    ])
    const { recorded, repeated } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })
    expect([recorded, repeated]).toEqual([0, 1])
  })

  it('counts from the agent that continues the ledger of a named one', async () => {
    const former = await enrolTestAgent(shop)
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    const agents = [...policy.tillSales.agents, former.agentId]
    await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, tillSales: { agents } } })
    const next = await enrolTestAgent(shop, shop.storeId, former)
    const epc = await item()
    await report(next, sold(saleOf(epc)))
    expect(await statusOf(epc)).toBe('paid')
    const after = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    expect(after.policy.tillSales.agents).toEqual([...agents, next.agentId])
  })

  it('is the same sale when the cloud gets it, too', async () => {
    const sale = saleOf(await item())
    await report(till, sold(sale))
    const { recorded, repeated } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })
    expect([recorded, repeated]).toEqual([0, 1])
    await report(till, sold(sale))
    expect(await exceptions('sale_conflict')).toEqual([])
  })

  it('that contradicts one of the cloud is an exception, and changes nothing', async () => {
    const [first, second] = [await item(), await item()]
    const sale = saleOf(first)
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })
    await report(till, sold({ ...saleOf(second), saleId: sale.saleId }))
    expect(await statusOf(second)).toBe('sellable')
    expect(await exceptions('sale_conflict')).toHaveLength(1)
  })

  it('has the rights of its purchase by the receipt that the agent signed', async () => {
    const epc = await item()
    const sale = saleOf(epc)
    const receiptOf = (by: TestAgent) => {
      const cti = Buffer.from(saleKeyOf(shop.storeId, sale), 'hex')
      const exp = Math.floor(shop.cloud.platform.clock.wall() / 1_000) + RECEIPT_LIFE
      return signSaleReceipt({ storeId: shop.storeId, exp, cti, riskClass: 0, policyVersion: 1 }, [], by.signer)
    }
    const code = receiptOf(till)
    const find = (text: string) => shop.call('getReceiptFromCode', { storeId: shop.storeId, code: text })
    expect((await find(code)).status).toBe(404)
    await report(till, sold(sale))
    const { token } = (await find(code)).body
    const page = await shop.cloud.get(`/api/v1/getReceiptFromToken?token=${code}`)
    expect(page.body.receiptUrl).toContain(token)
    const { purchaseId } = (await find(code)).body
    for (const receipt of [code, token, `HTTPS://SHOP.EXAMPLE/R/${code}`]) {
      const { purchases } = await shop.ok('fetchPurchaseHistory', { receipt })
      expect(purchases.map((p: Json) => p.transactionId)).toEqual([purchaseId])
      expect((await shop.ok('fetchPurchaseHistory', { storeId: shop.otherStoreId, receipt })).purchases).toEqual([])
    }
    const verdictOf = async (receiptToken: string) =>
      (
        await shop.ok('verifyProtectedItem', {
          deviceId: shop.devices.exit_gate,
          protectionAction: 'authorize_exit',
          epc,
          receiptToken,
        })
      ).reason
    for (const text of [code, token]) expect(await verdictOf(text)).toBeUndefined()
    for (const by of [other, stranger]) {
      expect((await find(receiptOf(by))).status).toBe(404)
      expect(await verdictOf(receiptOf(by))).toBe('token_invalid')
    }
  })

  it('comes back by its receipt or code at an agent whose row arrives before it, only in its own store', async () => {
    const epc = await item()
    const sale = saleOf(epc)
    const key = saleKeyOf(shop.storeId, sale)
    const back = (returnId: string) => ({ returnId, receipt: 'HTTPS://SHOP.EXAMPLE/R/2KCE3IQBE4CE' })
    await report(stranger, returned(back('foreign-receipt'), key))
    await report(till, returned(back('early-receipt'), key), sold(sale))
    expect(await statusOf(epc)).toBe('returned')
    const kept = await item()
    const other = saleOf(kept)
    await report(stranger, returned(back('foreign-early'), saleKeyOf(shop.storeId, other)))
    await report(till, sold(other))
    expect(await statusOf(kept)).toBe('paid')
  })

  it('sells what is left of corrected lines, by all names of a tag', async () => {
    const [again, other, held] = [await item(), await item(), await item()]
    const tagId = `HT-${other.slice(-6)}`
    const { storeId } = shop
    await shop.ok('registerProtectedItems', { storeId, items: [{ epc: other, tagId, ean: shop.products[0].ean }] })
    await shop.ok('updateItemStatus', { storeId, epc: held, itemStatus: 'exception_hold' })
    const line = (quantity: number, names: Json) => ({
      ean: shop.products[0].ean,
      quantity,
      priceUnit: 4_990,
      vat: 19 as const,
      ...names,
    })
    const corrected = (epc: string) => saleOf(epc, { lines: [1, -1, 1].map((n) => line(n, { epcs: [epc] })) })
    await report(till, sold(corrected(again)))
    await report(till, sold(saleOf(other, { lines: [line(1, { epcs: [other] }), line(-1, { tagIds: [tagId] })] })))
    expect([await statusOf(again), await statusOf(other)]).toEqual(['paid', 'sellable'])
    const [one, more] = [await item(), await item()]
    await shop.ok('registerProtectedItems', {
      storeId,
      items: [{ epc: more, tagId: `${tagId}M`, ean: shop.products[0].ean }],
    })
    await report(till, sold(saleOf(one, { lines: [line(1, { epcs: [one], tagIds: [`${tagId}M`] })] })))
    expect([await statusOf(one), await statusOf(more)]).toEqual(['paid', 'sellable'])
    const { results } = await shop.ok('recordSales', { storeId, sales: [corrected(held)] })
    expect(results[0].warnings.map(({ code }: Json) => code)).toEqual(['sale_of_held_item'])
  })

  it('comes back by an exchange that arrives before it', async () => {
    const [gone, taken] = [await item(), await item()]
    const sale = saleOf(gone)
    const ean = shop.products[0].ean
    const line = (quantity: number, epc: string) => ({ ean, quantity, priceUnit: 4_990, vat: 19 as const, epcs: [epc] })
    const exchange = sold(saleOf(taken, { lines: [line(1, taken), line(-1, gone)] }))
    forward(20_000)
    await till.report([till.row({ evidence: exchange })])
    await till.report([till.row({ evidence: sold(sale), atMs: ago(20_000) })])
    expect([await statusOf(gone), await statusOf(taken)]).toEqual(['returned', 'paid'])
  })

  it('is recorded by an exchange of goods for which ten returns wait', async () => {
    const [gone, taken] = [await item(), await item()]
    for (let n = 0; n < 10; n++) {
      const back = { returnId: `waits-${number}-${n}`, epcs: [gone] }
      await shop.ok('recordReturns', { storeId: shop.storeId, returns: [back] })
    }
    const line = (quantity: number, epc: string) => ({
      name: 'Hose',
      quantity,
      priceUnit: 4_990,
      vat: 19 as const,
      epcs: [epc],
    })
    const sales = [saleOf(taken, { lines: [line(1, taken), line(-1, gone)] })]
    const { recorded, errors } = await shop.ok('recordSales', { storeId: shop.storeId, sales })
    expect([recorded, errors, await statusOf(taken)]).toEqual([1, [], 'paid'])
  })

  it('takes back no goods without the right, and tells staff of those whose money untag took', async () => {
    const [own, paidInApp] = [await item(), await item()]
    await report(till, sold(saleOf(own)))
    const { storeId } = shop
    const { sessionId } = await shop.ok('checkIn', { storeId })
    const items = [{ ean: shop.products[0].ean, quantity: 1, epcs: [paidInApp] }]
    const { transactionId } = await shop.ok('startCheckout', { sessionId, items })
    await shop.ok('completeTestCheckout', { transactionId })
    const line = (epc: string) => ({ name: 'Hose', quantity: -1, priceUnit: 4_990, vat: 19 as const, epcs: [epc] })
    const back = sold(saleOf('', { lines: [line(own)] }))
    await report(till, { ...back, withoutReturns: true } as TillEvidence)
    const unclear = (await exceptions('return_unclear')).length
    await report(till, sold(saleOf('', { lines: [line(paidInApp)] })))
    expect([await statusOf(own), await statusOf(paidInApp)]).toEqual(['paid', 'returned'])
    expect(await exceptions('return_unclear')).toHaveLength(unclear + 1)
  })

  it('opens no barrier if it sells nothing', async () => {
    const line = (name: string, quantity: number, priceUnit: number) => ({
      name,
      quantity,
      priceUnit,
      vat: 19 as const,
    })
    for (const lines of [
      [line('Hose', -3, 4_990)],
      [line('Leergut', -6, 25)],
      [line('Milch', 1, 199), line('Milch', -1, 199)],
      [line('Rabatt', 1, -500)],
    ]) {
      const slip = saleOf('', { lines, receiptCodes: [`slip-code-${number}`] })
      const { results } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [slip] })
      expect(results[0].receiptToken).toBeUndefined()
      const { token: receiptToken } = await shop.ok('getReceiptFromCode', {
        storeId: shop.storeId,
        code: slip.receiptCodes[0],
      })
      const wanted = { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit', receiptToken }
      expect((await shop.ok('verifyProtectedItem', wanted)).authorized).not.toBe(true)
    }
  })

  it('is not voided by a program that may only end open sales', async () => {
    const [open, paid] = [await item(), await item()]
    const [first, second] = [saleOf(open), saleOf(paid)]
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [second] })
    const end = (sale: ReturnType<typeof saleOf>) =>
      ({ ...sold({ ...sale, state: 'void' } as typeof sale), withoutReturns: true }) as TillEvidence
    await report(till, sold({ ...second, state: 'open' } as typeof second), end(second))
    expect(await statusOf(paid)).toBe('paid')
    await report(till, sold({ ...first, state: 'open' } as typeof first), end(first), sold(first))
    expect(await statusOf(open)).toBe('cancelled')
  })

  it('of another store has no effect', async () => {
    const epc = await item()
    const sale = saleOf(epc)
    await report(till, sold(sale))
    // The same names mean a sale of the stranger's own store.
    await report(stranger, { kind: 'sale_void', saleId: sale.saleId, tillId: 'till-3' })
    await report(stranger, returned({ returnId: 'foreign', epcs: [epc] }))
    await report(stranger, sold(saleOf(epc)))
    expect(await statusOf(epc)).toBe('paid')
  })

  it('comes back by the agent, also before it arrives', async () => {
    const unclear = (await exceptions('return_unclear')).length
    const [sent, early] = [await item(), await item()]
    await report(till, sold(saleOf(sent)), returned({ returnId: 'r1', epcs: [sent] }))
    expect(await statusOf(sent)).toBe('returned')
    const sale = saleOf(early)
    await report(till, { kind: 'sale_void', saleId: sale.saleId, tillId: 'till-3' }, sold(sale))
    expect(await statusOf(early)).toBe('cancelled')
    // What does not fit is an exception, because the till has its answer.
    await report(till, returned({ returnId: 'r2', epcs: [sent], saleId: sale.saleId, tillId: 'till-3' }))
    expect(await exceptions('return_unclear')).toHaveLength(unclear + 1)
  })

  it('comes back in the same batch after its labels came off, and the purchase says so', async () => {
    const sale = saleOf(await item())
    const { results } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })
    const { purchaseId } = results[0]
    const redemptionId = `rdm-${sale.saleId}`
    const claim: Evidence = {
      kind: 'claim',
      redemptionId,
      nonce: saleKeyOf(shop.storeId, sale),
      source: 'receipt',
      rightClass: 'release',
      ordinals: [0],
      deviceId: shop.devices.exit_gate,
    }
    const rows = [
      till.row({ evidence: claim }),
      till.row({ evidence: { kind: 'outcome', redemptionId, outcome: 'confirmed' } }),
      till.row({
        evidence: returned({ returnId: `b-${sale.saleId}`, epcs: sale.lines[0]?.epcs ?? [] }),
      }),
    ]
    expect((await till.report(rows)).body).toMatchObject({ accepted: 3 })
    expect(await shop.ok('fetchPurchase', { transactionId: purchaseId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
  })

  it('that comes back in a way that cannot be booked is an exception, and its tag alarms', async () => {
    const epc = await item()
    await report(till, sold(saleOf(epc)))
    const lines = [{ lineId: 'nope', epcs: [epc] }]
    await report(till, returned({ returnId: 'r3', saleId: `a${number}`, tillId: 'till-3', lines }))
    expect(await statusOf(epc)).toBe('returned')
    expect((await exceptions('return_unclear')).some(({ detail }) => /nope|line/.test(detail))).toBe(true)
  })

  it('that comes back under the number of another sale can be sold again', async () => {
    const epc = await item()
    const older = saleOf(await item())
    await report(till, sold(older), sold(saleOf(epc)))
    const named = { saleId: older.saleId, tillId: 'till-3', epcs: [epc] }
    await report(till, returned({ returnId: 'other-number', ...named, resellable: true }))
    expect(await statusOf(epc)).toBe('sellable')
    await report(till, sold(saleOf(epc)))
    expect(await statusOf(epc)).toBe('paid')
  })

  it('takes returns before the sale, also if strangers name the same sale', async () => {
    const epc = await item()
    const sale = saleOf(epc)
    const key = saleKeyOf(shop.storeId, sale)
    for (let n = 0; n < 10; n++) await report(stranger, returned({ returnId: `f${n}-${key}`, saleId: 'x' }, key))
    const { saleId, tillId } = sale
    const returns = [{ returnId: `early-${saleId}`, saleId, tillId }]
    expect(await shop.ok('recordReturns', { storeId: shop.storeId, returns })).toMatchObject({
      recorded: 1,
      errors: [],
    })
    await report(till, sold(sale))
    expect(await statusOf(epc)).toBe('returned')
  })

  it('is as old as its first report, so that a return in between counts', async () => {
    const epc = await item()
    const sale = saleOf(epc)
    const rows = [
      till.row({ evidence: sold(sale), atMs: ago(400_000) }),
      till.row({ evidence: returned({ returnId: `between-${sale.saleId}`, epcs: [epc] }), atMs: ago(200_000) }),
    ]
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })
    expect((await till.report(rows)).body).toMatchObject({ accepted: 2 })
    expect(await statusOf(epc)).toBe('returned')
  })

  it('has no amounts that no till takes, so that no sum of many overflows', async () => {
    const lines = [{ name: 'x', quantity: 100_000, priceUnit: 100_000_000, vat: 19 }]
    const { errors } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [saleOf('', { lines })] })
    expect(errors).toMatchObject([{ field: 'lines' }])
  })

  it('comes back by its code, also if an agent that does not know it reports the return first', async () => {
    const unclear = (await exceptions('return_unclear')).length
    const epc = await item()
    const code = `code-${++number}-of-a-return`
    await report(till, returned({ returnId: `c${number}`, code }))
    await report(till, sold(saleOf(epc, { receiptCodes: [code] })))
    expect(await statusOf(epc)).toBe('returned')
    expect(await exceptions('return_unclear')).toHaveLength(unclear)
  })

  it('opens no barrier, and releases no label of its product, if its goods must stay', async () => {
    const [gate, station] = [shop.devices.exit_gate, shop.devices.pos_deactivator]
    const open = async (receiptToken: string, deviceId: string, protectionAction: string) =>
      (await shop.call('verifyProtectedItem', { deviceId, protectionAction, receiptToken })).body.authorized
    const epc = await item()
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'exception_hold' })
    const { results } = await shop.ok('recordSales', {
      storeId: shop.storeId,
      sales: [saleOf(epc), saleOf(await item())],
    })
    const [held, good] = results
    expect(held.warnings).toMatchObject([{ code: 'sale_of_held_item' }])
    expect(await open(held.receiptToken, gate, 'authorize_exit')).toBe(false)
    const release = { deviceId: station, receiptToken: held.receiptToken }
    expect((await shop.call('verifySecurityTagDeactivation', release)).body.deactivationAuthorized).toBe(false)
    expect(await open(good.receiptToken, gate, 'authorize_exit')).toBe(true)
  })

  it('warns of a recalled lot that the code of a line names, and opens no barrier', async () => {
    const [, , { ean }] = shop.products
    const { recallId } = await shop.ok('recallProducts', { ean, lot: 'L1', reason: 'Glas' })
    const code = `01${ean.padStart(14, '0')}10L1`
    const lines = [{ ean: code, name: 'Käse', quantity: 1, priceUnit: 500, vat: 7 }]
    const { results } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [saleOf('', { lines })] })
    expect(results[0].warnings).toMatchObject([{ code: 'sale_of_held_item' }])
    const exit = { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit' }
    const { body } = await shop.call('verifyProtectedItem', { ...exit, receiptToken: results[0].receiptToken })
    expect(body.authorized).toBe(false)
    await shop.ok('endRecall', { recallId })
  })

  it('comes back by its tag, also if the return arrives before the sale', async () => {
    const epc = await item()
    const sale = saleOf(epc)
    const sent = till.row({ evidence: sold(sale) })
    const { results } = await shop.ok('recordReturns', {
      storeId: shop.storeId,
      returns: [{ returnId: `early-${sale.saleId}`, epcs: [epc] }],
    })
    expect(results).toMatchObject([{ waiting: true, items: [{ tag: epc, itemStatus: 'sellable' }] }])
    expect((await till.report([sent])).body).toMatchObject({ accepted: 1 })
    expect(await statusOf(epc)).toBe('returned')
    // A sale after the return counts.
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'sellable' })
    // Not in the millisecond of the status: then the order is open, and the goods alarm.
    await till.report([till.row({ evidence: sold(saleOf(epc)), atMs: ago(-10) })])
    expect(await statusOf(epc)).toBe('paid')
  })

  it('comes back by its tags in one step, of whichever of many returns that arrived before it', async () => {
    const epcs = [await item(), await item(), await item()]
    const [one, two, three] = epcs
    const sale = {
      ...saleOf(''),
      lines: [{ ean: shop.products[0].ean, quantity: 3, priceUnit: 4_990, vat: 19 as const, epcs }],
    }
    const sent = till.row({ evidence: sold(sale) })
    const early = (name: string, ...tags: (string | undefined)[]) => ({
      returnId: `${sale.saleId}-${name}`,
      epcs: tags,
    })
    const { recorded } = await shop.ok('recordReturns', {
      storeId: shop.storeId,
      returns: [early('a', one, two), early('b', two, three)],
    })
    expect(recorded).toBe(2)
    expect((await till.report([sent])).body).toMatchObject({ accepted: 1 })
    expect(await Promise.all(epcs.map(statusOf))).toEqual(['returned', 'returned', 'returned'])
    // The second return of one piece waits for another sale of it.
    const unclear = (await exceptions('return_unclear')).filter(({ detail }) => detail.includes(`${sale.saleId}-`))
    expect(unclear).toHaveLength(0)
  })

  it('refuses no row of an agent: the eleventh return before a sale is an exception', async () => {
    const sale = saleOf(await item())
    await report(
      till,
      ...Array.from({ length: 11 }, (_, n) =>
        returned({ returnId: `w${n}-${sale.saleId}`, saleId: sale.saleId, tillId: 'till-3' }),
      ),
    )
    const unclear = (await exceptions('return_unclear')).filter(({ detail }) => /wait for this sale/.test(detail))
    expect(unclear).toHaveLength(1)
  })

  it('changes nothing of goods that came back since, and are on the shelf', async () => {
    const epc = await item()
    const late = till.row({ evidence: sold(saleOf(epc)), atMs: ago(60_000) })
    const sale = saleOf(epc)
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })
    await shop.ok('recordReturns', {
      storeId: shop.storeId,
      returns: [{ returnId: `back-${sale.saleId}`, saleId: sale.saleId, tillId: 'till-3', resellable: true }],
    })
    const before = await completed()
    expect((await till.report([late])).body).toMatchObject({ accepted: 1 })
    expect(await statusOf(epc)).toBe('sellable')
    expect((await exceptions('item_changed')).some(({ detail }) => String(detail).includes(epc))).toBe(true)
    expect((await completed()) - before).toBe(1)
  })

  it('counts although the cloud changed the item before, or the agent knew the change', async () => {
    const [before, known] = [await item(), await item()]
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc: before, itemStatus: 'exception_hold' })
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc: before, itemStatus: 'sellable' })
    const early = till.row({ evidence: sold(saleOf(before)) })
    // A clock that is behind does not matter if the agent names the change.
    const knowing = till.row({
      evidence: { ...sold(saleOf(known)), items: [0, 1_000_000] } as TillEvidence,
      atMs: ago(600_000),
    })
    expect((await till.report([early, knowing])).body).toMatchObject({ accepted: 2 })
    expect([await statusOf(before), await statusOf(known)]).toEqual(['paid', 'paid'])
  })

  it('that sells, takes back and sells the same goods counts each time, however late it arrives', async () => {
    const epc = await item()
    const atMs = Math.floor(ago(0))
    const rows = [
      till.row({ evidence: sold(saleOf(epc)), atMs }),
      till.row({
        evidence: returned({ returnId: `b${number}`, epcs: [epc], resellable: true }),
        atMs: atMs + 1,
      }),
      till.row({ evidence: sold(saleOf(epc)), atMs: atMs + 2 }),
    ]
    expect((await till.report(rows)).body).toMatchObject({ accepted: 3 })
    expect(await statusOf(epc)).toBe('paid')
    expect(await exceptions('item_changed')).toHaveLength(1)
  })

  it('of another product counts, because an agent knows no products, and is an exception', async () => {
    const { epc } = await shop.newItem(shop.products[1])
    await report(till, sold(saleOf(epc)))
    expect(await statusOf(epc)).toBe('paid')
    expect(await exceptions('sale_of_other_product')).toHaveLength(1)
    await report(till, returned({ returnId: `o${number}`, epcs: [epc] }))
    expect(await statusOf(epc)).toBe('returned')
  })

  it('stays if a return arrives that is older than it', async () => {
    const epc = await item()
    await report(till, sold(saleOf(epc)))
    const atMs = ago(600_000)
    const old = till.row({ evidence: returned({ returnId: `x${number}`, epcs: [epc] }), atMs })
    const { results } = await shop.ok('recordReturns', {
      storeId: shop.storeId,
      returns: [{ returnId: `y${number}`, epcs: [epc], resellable: true }],
    })
    expect(results[0].items[0].itemStatus).toBe('sellable')
    await shop.ok('recordSales', { storeId: shop.storeId, sales: [saleOf(epc)] })
    expect((await till.report([old])).body).toMatchObject({ accepted: 1 })
    expect(await statusOf(epc)).toBe('paid')
    const { purchases } = await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, limit: 1 })
    expect(purchases[0]).toMatchObject({ status: 'SUCCESS', refunded: 0 })
  })

  it('of goods that came back at an agent whose report is late stays, and the return counts for the sale before', async () => {
    for (const ending of ['return', 'void'] as const) {
      const epc = await item()
      const [first, second] = [saleOf(epc), saleOf(epc)]
      await report(till, sold(first))
      forward(3_000)
      const atMs = ago(2_000)
      const back = { returnId: `z${number}`, epcs: [epc], resellable: true }
      const again = { ...sold(second), resold: [saleTagHash({ kind: 'epc', id: epc, isValid: true })] } as TillEvidence
      expect((await till.report([till.row({ evidence: again, atMs: ago(1_000) })])).body).toMatchObject({
        accepted: 1,
      })
      expect(await statusOf(epc)).toBe('paid')
      const end: TillEvidence =
        ending === 'return' ? returned(back) : { kind: 'sale_void', saleId: first.saleId, tillId: 'till-3' }
      expect((await till.report([till.row({ evidence: end, atMs })])).body).toMatchObject({ accepted: 1 })
      expect(await statusOf(epc)).toBe('paid')
      const purchases = async (saleId: string) =>
        (await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, saleId })).purchases[0]
      expect(await purchases(first.saleId)).toMatchObject({ refunded: 49.9 })
      expect(await purchases(second.saleId)).toMatchObject({ status: 'SUCCESS', refunded: 0 })
      // The goods of the second sale come back, too.
      const last = till.row({ evidence: returned({ ...back, returnId: `w${number}` }) })
      expect((await till.report([last])).body).toMatchObject({ accepted: 1 })
      expect(await statusOf(epc)).toBe('sellable')
      expect(await purchases(second.saleId)).toMatchObject({ refunded: 49.9 })
    }
  })

  it('that was sold again, came back and was sold once more belongs to the newest sale, however late it arrives', async () => {
    const epc = await item()
    const [first, second, third] = [saleOf(epc), saleOf(epc), saleOf(epc)]
    await report(till, sold(first))
    forward(5_000)
    const at = (ms: number, evidence: TillEvidence) => till.report([till.row({ evidence, atMs: ago(5_000 - ms) })])
    await at(1_000, returned({ returnId: `q${number}`, epcs: [epc], resellable: true }))
    await at(4_000, sold(third))
    expect(await statusOf(epc)).toBe('paid')
    // The row of the second sale was on its way while the goods came back and were sold.
    await at(2_000, { ...sold(second), resold: [saleTagHash({ kind: 'epc', id: epc, isValid: true })] } as TillEvidence)
    await at(5_000, { kind: 'sale_void', saleId: second.saleId, tillId: 'till-3' })
    expect(await statusOf(epc)).toBe('paid')
    const { purchases } = await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, saleId: third.saleId })
    expect(purchases[0]).toMatchObject({ status: 'SUCCESS', refunded: 0 })
  })

  it('makes one purchase, however often it arrives', async () => {
    const sale = saleOf(await item())
    const before = await completed()
    await report(till, sold(sale))
    await report(till, sold(sale))
    expect((await completed()) - before).toBe(1)
  })
  const completed = async () => {
    const rows = shop.cloud.db.database.reads.selectFrom('purchase').select('purchase_id').where('till', 'is not', null)
    return (await rows.execute()).length
  }
})
