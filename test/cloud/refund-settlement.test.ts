import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { onEveryDatabase } from '../support/databases.ts'
import { openPaidStore, PRODUCT, type PaidStore } from '../support/paid-store.ts'
import { newEpc } from '../support/shop.ts'

/** What a refund takes back follows when the money has gone, and comes back when it has not. */
onEveryDatabase('refunds that are settled', (kind) => {
  let store: PaidStore
  let deviceId: string
  let programId: string
  beforeAll(async () => {
    store = await openPaidStore(kind, 'stripe')
    await store.cloud.db.database.write(async (db) => {
      await db.updateTable('store').set({ security_tag_mode: 'rfid' }).where('store_id', '=', store.storeId).execute()
      await db.updateTable('product').set({ tagged: 1 }).execute()
    })
    const { storeId } = store
    deviceId = (await store.ok('registerDevice', { storeId, deviceType: 'pos_deactivator', supportedTechnologies: ['uhf_rfid'], canReadUhfRfid: true, canDetachHardTag: true })).deviceId
    programId = (await store.ok('createLoyaltyProgram', { storeId, name: 'Punkte', type: 'points', pointsPerEuro: 1, earningMethods: ['scan_and_go'] })).programId
  })
  afterAll(() => store.stop())
  afterEach(() => {
    store.psp.release()
    Object.assign(store.psp.switches, { hang: false, hangAfterwards: false, status: undefined })
  })

  const itemStatus = async (epc: string) => (await store.ok('fetchProtectedItem', { storeId: store.storeId, epc })).itemStatus
  const isReleased = async (epc: string) => (await store.ok('verifyProtectedItem', { deviceId, protectionAction: 'detach_hard_tag', epc })).authorized
  const balanceOf = async (userId: string) => {
    const rows = await store.cloud.db.database.reads.selectFrom('loyalty_member').select('balance').where('program_id', '=', programId).where('user_id', '=', userId).execute()
    return rows[0]?.balance ?? 0
  }
  let shoppers = 0

  /** Buys two lines of which the first is tagged by this item. */
  async function bought() {
    const { storeId, psp } = store
    const userId = `shopper-${++shoppers}`
    const epc = newEpc()
    await store.ok('registerProtectedItems', { storeId, items: [{ epc, ean: PRODUCT.ean, protectionTechnology: 'uhf_rfid' }] })
    const { sessionId } = await store.ok('checkIn', { storeId, userId })
    const started = await store.ok('startCheckout', { sessionId, items: [{ ean: PRODUCT.ean, quantity: 1, epcs: [epc] }, { name: 'Tee', priceUnit: 1_070, quantity: 2, vat: 7 }] })
    const { transactionId } = started
    const session = await store.sessionOf(transactionId)
    const look = async () => ({ ...(await figures()), points: await balanceOf(userId), item: await itemStatus(epc) })
    const before = await figures()
    await psp.end(session, 'paid')
    const [shirt, tea] = [...started.items].sort((a: Json, b: Json) => b.priceUnit - a.priceUnit)
    return { transactionId: transactionId as string, session, epc, before, look, shirt: shirt.itemLineId as string, tea: tea.itemLineId as string }
  }

  /** What the store's days come to: reports and closings. */
  async function figures() {
    const { reads } = store.cloud.db.database
    const days = await reads.selectFrom('store_day').selectAll().where('store_id', '=', store.storeId).execute()
    const vat = await reads.selectFrom('store_day_vat').selectAll().where('store_id', '=', store.storeId).execute()
    const sum = (of: (row: (typeof days)[number]) => number) => days.reduce((total, row) => total + of(row), 0)
    const left = (rate: number, of: (row: (typeof vat)[number]) => number) => vat.filter((row) => row.rate === rate).reduce((total, row) => total + of(row), 0)
    return {
      checkouts: sum((row) => row.completed_checkouts),
      sessions: sum((row) => row.sessions_completed),
      revenue: sum((row) => row.revenue_cent),
      units: sum((row) => row.items_scanned),
      refunds: sum((row) => row.refunds),
      gross: [7, 19].map((rate) => left(rate, (row) => row.sales_cent - row.refund_cent)),
      tax: [7, 19].map((rate) => left(rate, (row) => row.sales_tax_cent - row.refund_tax_cent)),
    }
  }
  type Figures = Awaited<ReturnType<typeof figures>>
  const grown = (a: Figures, b: Figures) => ({
    checkouts: b.checkouts - a.checkouts,
    sessions: b.sessions - a.sessions,
    revenue: b.revenue - a.revenue,
    units: b.units - a.units,
    refunds: b.refunds - a.refunds,
    gross: b.gross.map((cent, i) => cent - (a.gross[i] ?? 0)),
    tax: b.tax.map((cent, i) => cent - (a.tax[i] ?? 0)),
  })
  const SOLD = { checkouts: 1, sessions: 1, revenue: 7_130, units: 3, refunds: 0, gross: [2_140, 4_990], tax: [140, 797] }
  const NOTHING = { checkouts: 0, sessions: 0, revenue: 0, units: 0, gross: [0, 0], tax: [0, 0] }

  it('count nothing and keep everything locked while they are under way, and all is as before when they are refused', async () => {
    const { transactionId, epc, before, look } = await bought()
    const sold = await look()
    expect(sold).toMatchObject({ points: 71, item: 'paid' })
    expect(grown(before, sold)).toEqual(SOLD)
    expect(await isReleased(epc)).toBe(true)
    store.psp.switches.status = 500
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({ status: 'CANCELLED', refundStatus: 'pending' })
    // Money and points stay; the item is locked.
    expect(await look()).toEqual({ ...sold, item: 'cancelled' })
    expect(await isReleased(epc)).toBe(false)
    expect((await store.ok('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId })).deactivationAuthorized).toBe(false)
    store.psp.switches.status = 403
    await store.wait('the refusal', async () => (await store.ok('fetchPurchase', { transactionId })).refundStatus === 'failed', 10_000)
    expect(await store.statusOf(transactionId)).toBe('SUCCESS')
    expect(await look()).toEqual(sold)
    expect(await isReleased(epc)).toBe(true)

    store.psp.switches.status = undefined
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({ status: 'CANCELLED', refundStatus: 'done' })
    const after = await look()
    expect(grown(before, after)).toEqual({ ...NOTHING, refunds: 1 })
    expect(after).toMatchObject({ points: 0, item: 'cancelled' })
    expect(await isReleased(epc)).toBe(false)
  })

  it('take the share of a part from the figures and the points, and the rest with the rest', async () => {
    const { transactionId, before, look, tea } = await bought()
    expect(await store.ok('refundPayment', { transactionId, amount: 7.13 })).toMatchObject({ refund: { status: 'done' } })
    const amount = await look()
    // Of both rates in proportion: 2.14 and 4.99.
    expect(grown(before, amount)).toEqual({ ...SOLD, revenue: 6_417, refunds: 1, gross: [1_926, 4_491], tax: [126, 717] })
    expect(amount.points).toBe(63)
    expect(await store.ok('refundPayment', { transactionId, itemLineIds: [tea] })).toMatchObject({ refund: { amount: 21.4, status: 'done' } })
    const line = await look()
    expect(grown(before, line)).toMatchObject({ checkouts: 1, revenue: 4_277, units: 1, refunds: 2, gross: [0, 4_277], tax: [0, 683] })
    expect(line).toMatchObject({ points: 42, item: 'paid' })
    await store.ok('refundPayment', { transactionId })
    const after = await look()
    expect(grown(before, after)).toEqual({ ...NOTHING, refunds: 3 })
    expect(after).toMatchObject({ points: 0, item: 'cancelled' })
  })

  it('leave figures and points alone while a part is not taken', async () => {
    const { transactionId, epc, look, shirt } = await bought()
    const sold = await look()
    store.psp.switches.status = 403
    expect(await store.ok('refundPayment', { transactionId, itemLineIds: [shirt] })).toMatchObject({ status: 'SUCCESS', refund: { status: 'failed' } })
    // The item came back all the same.
    expect(await look()).toEqual({ ...sold, item: 'returned' })
    store.psp.switches.status = undefined
    expect(await store.ok('refundPayment', { transactionId, itemLineIds: [shirt] })).toMatchObject({ refund: { status: 'done', amount: 49.9 } })
    expect(await look()).toMatchObject({ points: 21, revenue: sold.revenue - 4_990, item: 'returned' })
    expect(await isReleased(epc)).toBe(false)
  })

  it('are taken back when the bank sends the money back days later, once', async () => {
    const { transactionId, session, before, look, epc } = await bought()
    const sold = await look()
    await store.ok('refundPayment', { transactionId })
    expect((await look()).points).toBe(0)
    await store.platform.advance(60_000)
    const refund = store.psp.refunds.find((each) => each.sessionId === session)
    store.psp.switches.copies = 3
    expect(await store.psp.failRefund(refund?.id ?? '')).toEqual([200, 200, 200])
    store.psp.switches.copies = 1
    expect(await store.ok('fetchPurchase', { transactionId })).toMatchObject({ status: 'SUCCESS', refundStatus: 'failed' })
    expect(await look()).toEqual(sold)
    expect(await isReleased(epc)).toBe(true)
    expect((await store.exceptions('refund_failed')).filter((each) => each.purchase_id === transactionId)).toHaveLength(1)
    expect(await store.ok('markPurchaseCancelled', { transactionId })).toMatchObject({ status: 'CANCELLED', refundStatus: 'pending' })
    await store.wait('the second refund', async () => (await store.ok('fetchPurchase', { transactionId })).refundStatus === 'done')
    expect(grown(before, await look())).toEqual({ ...NOTHING, refunds: 1 })
  })

  it('do not bring back an item that staff have put on the shelf meanwhile', async () => {
    const { transactionId, epc } = await bought()
    store.psp.switches.status = 500
    await store.ok('refundPayment', { transactionId })
    const { operatorId } = await store.ok('registerOperator', { storeId: store.storeId, name: 'Frau Petersen' })
    await store.ok('updateItemStatus', { storeId: store.storeId, epc, itemStatus: 'sellable', operatorId })
    store.psp.switches.status = 403
    await store.wait('the refusal', async () => (await store.ok('fetchPurchase', { transactionId })).refundStatus === 'failed', 10_000)
    expect([await store.statusOf(transactionId), await itemStatus(epc)]).toEqual(['SUCCESS', 'sellable'])
  })
})
