import { afterAll, beforeAll, expect, it } from 'vitest'
import type { TillEvidence } from '../../../../policy/journal.ts'
import { saleTagHash, keptReturn, keptSale, type TillReturn, type TillSale } from '../../../../policy/till-sale.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

/** Goods that tills sold and took back, in stories whose reports reach the cloud late. */
onEveryDatabase('goods of late reports', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let seller: TestAgent
  let taker: TestAgent
  let epc = ''
  let story = 0
  /** Minutes before the reports. */
  const AGO = 60
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
    seller = await enrolTestAgent(shop)
    taker = await enrolTestAgent(shop)
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
    const tillSales = { ...policy.tillSales, agents: [seller.agentId, taker.agentId] }
    await shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, tillSales } })
  })
  afterAll(() => shop.stop())

  /** A new piece, for sale since long ago. */
  async function newPiece(): Promise<void> {
    story++
    epc = (await shop.newItem(shop.products[0])).epc
    await later()
  }
  async function later(): Promise<void> {
    forward(AGO * 60_000)
    await seller.login()
    await taker.login()
  }
  const ago = (minutes: number) => platform.clock.wall() - minutes * 60_000
  async function report(agent: TestAgent, minutes: number, evidence: TillEvidence): Promise<void> {
    expect((await agent.report([agent.row({ evidence, atMs: ago(minutes) })])).body).toMatchObject({ accepted: 1 })
  }
  const saleOf = (name: string, minutes: number, epcs = [epc]): TillSale => ({
    saleId: `${name}-${story}`,
    tillId: 'till-1',
    occurredAt: new Date(ago(minutes)).toISOString(),
    lines: [{ ean: shop.products[0].ean, quantity: 1, priceUnit: 4_990, vat: 19, ...(epcs.length > 0 && { epcs }) }],
  })
  const sell = (name: string, minutes: number, fields: Json = {}, agent = seller) =>
    report(agent, minutes, {
      kind: 'sale',
      sale: keptSale(shop.storeId, saleOf(name, minutes)),
      items: [0, 0],
      ...fields,
    } as TillEvidence)
  const giveBack = (name: string, minutes: number, fields: Json = { epcs: [epc] }) =>
    report(taker, minutes, {
      kind: 'sale_return',
      return: keptReturn(shop.storeId, { returnId: `${name}-${story}`, resellable: true, ...fields } as TillReturn),
    })
  const takeBackInCloud = (name: string) =>
    shop.ok('recordReturns', {
      storeId: shop.storeId,
      returns: [{ returnId: `${name}-${story}`, epcs: [epc], resellable: true }],
    })
  const move = (itemStatus: string) =>
    shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus, reason: 'counted' })
  const status = async () => (await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).itemStatus
  async function refunded(name: string): Promise<number> {
    const saleId = `${name}-${story}`
    return (await shop.ok('fetchPurchaseHistory', { storeId: shop.storeId, saleId })).purchases[0].refunded
  }
  async function allItems(): Promise<[number, number]> {
    const { seq } = await shop.cloud.db.database.reads
      .selectFrom('item_head')
      .select('seq')
      .where('store_id', '=', shop.storeId)
      .executeTakeFirstOrThrow()
    return [0, Number(seq)]
  }

  it('come back with each of their sales, though both returns arrive first', async () => {
    await newPiece()
    await giveBack('r1', 8)
    await giveBack('r2', 4)
    await sell('s1', 9)
    await sell('s2', 6, { resold: [saleTagHash({ kind: 'epc', id: epc, isValid: true })] })
    expect([await status(), await refunded('s1'), await refunded('s2')]).toEqual(['sellable', 49.9, 49.9])
    expect((await shop.ok('fetchExceptions', { storeId: shop.storeId })).exceptions).toEqual([])
  })

  it('come back although their seller knew all items, and not the return', async () => {
    await newPiece()
    const items = await allItems()
    await giveBack('r', 5)
    await sell('s', 9, { items })
    expect([await status(), await refunded('s')]).toEqual(['sellable', 49.9])
    await newPiece()
    await takeBackInCloud('r')
    await sell('s', 9, { items: await allItems() })
    expect([await status(), await refunded('s')]).toEqual(['sellable', 49.9])
  })

  it('are an exception if only the clock of a till says that they came back after their sale', async () => {
    await newPiece()
    await takeBackInCloud('r')
    forward(20 * 60_000)
    // The till, whose clock is an hour late, sells them now.
    const sale = saleOf('s', 60)
    const { results } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [sale] })
    expect(results[0].warnings).toMatchObject([{ code: 'item_changed' }])
    const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId })
    const [found] = exceptions
    expect(exceptions).toMatchObject([{ kind: 'item_changed', state: 'open' }])
    await shop.ok('acknowledgeException', { exceptionId: found.exceptionId, note: 'looked' })
  })

  it('come back by the number of their sale, though a later sale arrives first', async () => {
    await newPiece()
    await giveBack('r1', 8, { saleId: `s1-${story}`, tillId: 'till-1' })
    await sell('s2', 6)
    await sell('s1', 9, {}, taker)
    expect(await status()).toBe('paid')
    await giveBack('r2', 4)
    expect([await status(), await refunded('s1'), await refunded('s2')]).toEqual(['sellable', 49.9, 49.9])
  })

  it('come back twice, though they were not put on sale in between', async () => {
    await newPiece()
    await sell('s1', 9)
    await giveBack('r1', 8, { epcs: [epc], resellable: false })
    await giveBack('r2', 4, { epcs: [epc], resellable: false })
    await sell('s2', 6, { resold: [saleTagHash({ kind: 'epc', id: epc, isValid: true })] })
    expect([await status(), await refunded('s2')]).toEqual(['returned', 49.9])
  })

  it('alarm if they come back after staff made them paid', async () => {
    await newPiece()
    await move('paid')
    await takeBackInCloud('r')
    expect(await status()).toBe('sellable')
    await newPiece()
    await sell('s', 9)
    await move('exception_hold')
    await move('paid')
    await takeBackInCloud('r')
    expect([await status(), await refunded('s')]).toEqual(['sellable', 49.9])
  })

  it('stay paid if they were bought in untag after a return that is late', async () => {
    await newPiece()
    await sell('s', 40)
    await move('returned')
    await move('sellable')
    await shop.buy([{ ean: shop.products[0].ean, quantity: 1, epcs: [epc] }])
    await giveBack('r', 30)
    expect([await status(), await refunded('s')]).toEqual(['paid', 49.9])
  })

  it('come back by their tag after their receipt released it', async () => {
    await newPiece()
    const { results } = await shop.ok('recordSales', { storeId: shop.storeId, sales: [saleOf('s', 0, [])] })
    const deviceId = shop.devices.self_checkout_detacher
    const { authorizationToken } = await shop.ok('verifyProtectedItem', {
      deviceId,
      protectionAction: 'detach_hard_tag',
      epc,
      receiptToken: results[0].receiptToken,
    })
    await shop.ok('redeemProtectionAuthorization', {
      authorizationToken,
      deviceId,
      redemptionId: `red-${story}`,
      outcome: 'confirmed',
    })
    await takeBackInCloud('r')
    expect([await status(), await refunded('s')]).toEqual(['sellable', 49.9])
  })

  it('belong to their sale again if the exchange that took them back is voided, in any order', async () => {
    const exchange = (): TillSale => ({
      saleId: `x-${story}`,
      tillId: 'till-1',
      occurredAt: new Date(ago(7)).toISOString(),
      lines: [
        { name: 'Jacke', quantity: 1, priceUnit: 9_990, vat: 19 },
        { name: 'Hemd', quantity: -1, priceUnit: 4_990, vat: 19, epcs: [epc] },
      ],
    })
    const take = () =>
      report(seller, 7, { kind: 'sale', sale: keptSale(shop.storeId, exchange()), items: [0, 0] } as TillEvidence)
    const voidIt = () => report(seller, 5, { kind: 'sale_void', saleId: `x-${story}`, tillId: 'till-1' })
    await newPiece()
    await sell('s', 9)
    await take()
    expect(await status()).toBe('returned')
    await voidIt()
    expect([await status(), await refunded('s')]).toEqual(['paid', 0])
    await giveBack('r', 4)
    expect([await status(), await refunded('s')]).toEqual(['sellable', 49.9])
    await newPiece()
    await take()
    await voidIt()
    await sell('s', 9, {}, taker)
    expect([await status(), await refunded('s')]).toEqual(['paid', 0])
  })

  it('are paid if their sale was voided and rung up again, in any order and by any way', async () => {
    const voidOf = (name: string, minutes: number) =>
      report(seller, minutes, { kind: 'sale_void', saleId: `${name}-${story}`, tillId: 'till-1' })
    await newPiece()
    await sell('s1', 9)
    await voidOf('s1', 8)
    await sell('s2', 7)
    expect(await status()).toBe('paid')
    await newPiece()
    await sell('s1', 9)
    await sell('s2', 7)
    await voidOf('s1', 8)
    expect(await status()).toBe('paid')
    await newPiece()
    const { results } = await shop.ok('recordSales', {
      storeId: shop.storeId,
      sales: [saleOf('s1', 0), saleOf('s2', 0)],
    })
    await shop.ok('markPurchaseCancelled', { purchaseId: results[0].purchaseId })
    expect(await status()).toBe('paid')
  })
})
