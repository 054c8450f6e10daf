import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Db } from '../../../../cloud/platform/persistence/database.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openPaidStore, PRODUCT, type PaidStore } from '../../../support/paid-store.ts'
import { newEpc } from '../../../support/shop.ts'

type Step =
  | { do: 'lines'; line: 'shirt' | 'tea'; quantity?: 1 | undefined }
  | { do: 'amount'; cent: number }
  | { do: 'cancel'; by: 'refundPayment' | 'markPurchaseCancelled' }
  | { do: 'part and cancel at once'; cent: number }
  | { do: 'provider'; is: 'up' | 'down' | 'refusing' | 'silent' }
  | { do: 'wait'; minutes: number }
  | { do: 'bank returns'; nth: number }

const cent = fc.integer({ min: 1, max: 5_000 })
const step = fc.oneof<fc.WeightedArbitrary<Step>[]>(
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('lines' as const),
      line: fc.constantFrom('shirt', 'tea'),
      quantity: fc.constantFrom(1, undefined),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('amount' as const), cent }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('cancel' as const),
      by: fc.constantFrom('refundPayment', 'markPurchaseCancelled'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('part and cancel at once' as const), cent }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('provider' as const),
      is: fc.constantFrom('up', 'down', 'refusing', 'silent'),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('wait' as const), minutes: fc.constantFrom(1, 10, 900) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('bank returns' as const), nth: fc.nat(3) }) },
)

/** Figures and points must change when a refund completes, and change back if it fails later. */
inFullSizeOnEveryDatabase('refunds that are settled', (kind) => {
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
    deviceId = (
      await store.ok('registerDevice', {
        storeId,
        deviceType: 'pos_deactivator',
        supportedTechnologies: ['uhf_rfid'],
        canReadUhfRfid: true,
        canDetachHardTag: true,
      })
    ).deviceId
    programId = (
      await store.ok('createLoyaltyProgram', {
        storeId,
        name: 'Punkte',
        type: 'points',
        pointsPerEuro: 1,
        earningMethods: ['scan_and_go'],
      })
    ).programId
  })
  afterAll(() => store.stop())
  afterEach(() => {
    store.psp.release()
    Object.assign(store.psp.switches, { hang: false, hangAfterwards: false, status: undefined })
  })

  const itemStatus = async (epc: string) =>
    (await store.ok('fetchProtectedItem', { storeId: store.storeId, epc })).itemStatus
  const isReleased = async (epc: string) =>
    (await store.ok('verifyProtectedItem', { deviceId, protectionAction: 'detach_hard_tag', epc })).authorized
  const balanceOf = async (userId: string) => {
    const rows = await store.cloud.db.database.reads
      .selectFrom('loyalty_member')
      .select('balance')
      .where('program_id', '=', programId)
      .where('user_id', '=', userId)
      .execute()
    return rows[0]?.balance ?? 0
  }
  let shoppers = 0

  /** Buys two lines. The first has a tagged item. */
  async function bought() {
    const { storeId, psp } = store
    const userId = `shopper-${++shoppers}`
    const epc = newEpc()
    await store.ok('registerProtectedItems', {
      storeId,
      items: [{ epc, ean: PRODUCT.ean, protectionTechnology: 'uhf_rfid' }],
    })
    const { sessionId } = await store.ok('checkIn', { storeId, userId })
    const started = await store.ok('startCheckout', {
      sessionId,
      items: [
        { ean: PRODUCT.ean, quantity: 1, epcs: [epc] },
        { name: 'Tee', priceUnit: 1_070, quantity: 2, vat: 7 },
      ],
    })
    const { transactionId } = started
    const session = await store.sessionOf(transactionId)
    const readState = async () => ({
      ...(await figures()),
      points: await balanceOf(userId),
      item: await itemStatus(epc),
    })
    const before = await figures()
    await psp.end(session, 'paid')
    const [shirt, tea] = [...started.items].sort((a: Json, b: Json) => b.priceUnit - a.priceUnit)
    return {
      transactionId: transactionId as string,
      session,
      epc,
      before,
      readState,
      shirt: shirt.itemLineId as string,
      tea: tea.itemLineId as string,
    }
  }

  /** Sums the reports and closings over all days of the store. */
  async function figures(reads: Db = store.cloud.db.database.reads) {
    const days = await reads.selectFrom('store_day').selectAll().where('store_id', '=', store.storeId).execute()
    const vat = await reads.selectFrom('store_day_vat').selectAll().where('store_id', '=', store.storeId).execute()
    const sum = (of: (row: (typeof days)[number]) => number) => days.reduce((total, row) => total + of(row), 0)
    const left = (rate: number, of: (row: (typeof vat)[number]) => number) =>
      vat.filter((row) => row.rate === rate).reduce((total, row) => total + of(row), 0)
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
  const increase = (a: Figures, b: Figures) => ({
    checkouts: b.checkouts - a.checkouts,
    sessions: b.sessions - a.sessions,
    revenue: b.revenue - a.revenue,
    units: b.units - a.units,
    refunds: b.refunds - a.refunds,
    gross: b.gross.map((cent, i) => cent - (a.gross[i] ?? 0)),
    tax: b.tax.map((cent, i) => cent - (a.tax[i] ?? 0)),
  })
  const SOLD = {
    checkouts: 1,
    sessions: 1,
    revenue: 7_130,
    units: 3,
    refunds: 0,
    gross: [2_140, 4_990],
    tax: [140, 797],
  }
  const NOTHING = { checkouts: 0, sessions: 0, revenue: 0, units: 0, gross: [0, 0], tax: [0, 0] }

  it('only lock the item while they are pending, and unlock it after a rejection', async () => {
    const { transactionId, epc, before, readState } = await bought()
    const sold = await readState()
    expect(sold).toMatchObject({ points: 71, item: 'paid' })
    expect(increase(before, sold)).toEqual(SOLD)
    expect(await isReleased(epc)).toBe(true)
    store.psp.switches.status = 500
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'pending',
    })
    // Figures and points are unchanged; the item is locked.
    expect(await readState()).toEqual({ ...sold, item: 'cancelled' })
    expect(await isReleased(epc)).toBe(false)
    expect(
      (await store.ok('verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId })).deactivationAuthorized,
    ).toBe(false)
    store.psp.switches.status = 403
    await store.wait(
      'the refusal',
      async () => (await store.ok('fetchPurchase', { transactionId })).refundStatus === 'failed',
      10_000,
    )
    expect(await store.statusOf(transactionId)).toBe('SUCCESS')
    expect(await readState()).toEqual(sold)
    expect(await isReleased(epc)).toBe(true)

    store.psp.switches.status = undefined
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
    })
    const after = await readState()
    expect(increase(before, after)).toEqual({ ...NOTHING, refunds: 1 })
    expect(after).toMatchObject({ points: 0, item: 'cancelled' })
    expect(await isReleased(epc)).toBe(false)
  })

  it('subtract the share of a partial refund from figures and points, and later the rest', async () => {
    const { transactionId, before, readState, tea } = await bought()
    expect(await store.ok('refundPayment', { transactionId, amount: 7.13 })).toMatchObject({
      refund: { status: 'done' },
    })
    const amount = await readState()
    // The refund reduces both VAT rates in proportion: by 2.14 and 4.99 EUR.
    expect(increase(before, amount)).toEqual({
      ...SOLD,
      revenue: 6_417,
      refunds: 1,
      gross: [1_926, 4_491],
      tax: [126, 717],
    })
    expect(amount.points).toBe(63)
    expect(await store.ok('refundPayment', { transactionId, lines: [{ itemLineId: tea }] })).toMatchObject({
      refund: { amount: 21.4, status: 'done' },
    })
    const line = await readState()
    expect(increase(before, line)).toMatchObject({
      checkouts: 1,
      revenue: 4_277,
      units: 1,
      refunds: 2,
      gross: [0, 4_277],
      tax: [0, 683],
    })
    expect(line).toMatchObject({ points: 42, item: 'paid' })
    await store.ok('refundPayment', { transactionId })
    const after = await readState()
    expect(increase(before, after)).toEqual({ ...NOTHING, refunds: 3 })
    expect(after).toMatchObject({ points: 0, item: 'cancelled' })
  })

  it('change figures and points only after the provider accepts a partial refund', async () => {
    const { transactionId, epc, readState, shirt } = await bought()
    const sold = await readState()
    store.psp.switches.status = 403
    expect(await store.ok('refundPayment', { transactionId, lines: [{ itemLineId: shirt }] })).toMatchObject({
      status: 'SUCCESS',
      refund: { status: 'failed' },
    })
    // The provider rejected the refund, but the item was returned.
    expect(await readState()).toEqual({ ...sold, item: 'returned' })
    store.psp.switches.status = undefined
    expect(await store.ok('refundPayment', { transactionId, lines: [{ itemLineId: shirt }] })).toMatchObject({
      refund: { status: 'done', amount: 49.9 },
    })
    expect(await readState()).toMatchObject({ points: 21, revenue: sold.revenue - 4_990, item: 'returned' })
    expect(await isReleased(epc)).toBe(false)
  })

  it('are reversed once if the bank returns the money days later', async () => {
    const { transactionId, session, before, readState, epc } = await bought()
    const sold = await readState()
    await store.ok('refundPayment', { transactionId })
    expect((await readState()).points).toBe(0)
    await store.platform.advance(60_000)
    const refund = store.psp.refunds.find((each) => each.sessionId === session)
    store.psp.switches.copies = 3
    expect(await store.psp.failRefund(refund?.id ?? '')).toEqual([200, 200, 200])
    store.psp.switches.copies = 1
    expect(await store.ok('fetchPurchase', { transactionId })).toMatchObject({
      status: 'SUCCESS',
      refundStatus: 'failed',
    })
    expect(await readState()).toEqual(sold)
    expect(await isReleased(epc)).toBe(true)
    expect((await store.exceptions('refund_failed')).filter((each) => each.purchase_id === transactionId)).toHaveLength(
      1,
    )
    expect(await store.ok('markPurchaseCancelled', { transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'pending',
    })
    await store.wait(
      'the second refund',
      async () => (await store.ok('fetchPurchase', { transactionId })).refundStatus === 'done',
    )
    expect(increase(before, await readState())).toEqual({ ...NOTHING, refunds: 1 })
  })

  const refundedCent = (session: string) =>
    store.psp.refunds
      .filter((each) => each.sessionId === session && each.status === 'done')
      .reduce((sum, each) => sum + each.amountCent, 0)
  const bankReturns = (session: string, amountCent: number) =>
    store.psp.failRefund(
      store.psp.refunds.find(
        (each) => each.sessionId === session && each.amountCent === amountCent && each.status === 'done',
      )?.id ?? '',
    )
  const rowsOf = (transactionId: string) =>
    store.cloud.db.database.reads
      .selectFrom('refund')
      .selectAll()
      .where('purchase_id', '=', transactionId)
      .orderBy('refund_id')
      .execute()
  const status = async (transactionId: string) => {
    const purchase = await store.ok('fetchPurchase', { transactionId })
    return [purchase.status, purchase.refundStatus]
  }
  /** The refund of the shirt completes, the rest is cancelled, and then the bank returns the money of the shirt. */
  async function cancelledWithoutShirt() {
    const purchase = await bought()
    const { transactionId, session, shirt } = purchase
    await store.ok('refundPayment', { transactionId, lines: [{ itemLineId: shirt }] })
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
      refund: { amount: 21.4 },
    })
    await bankReturns(session, 4_990)
    return purchase
  }

  it.each(['refundPayment', 'markPurchaseCancelled'])(
    'a part that the bank returns after the cancellation is missing until %s is repeated',
    async (operation) => {
      const { transactionId, session, before, readState, epc } = await cancelledWithoutShirt()
      // The shopper received the money of the cancellation, so the goods stay returned.
      expect(await status(transactionId)).toEqual(['CANCELLED', 'failed'])
      expect(increase(before, await readState())).toMatchObject({
        checkouts: 0,
        sessions: 0,
        revenue: 4_990,
        gross: [0, 4_990],
        tax: [0, 797],
        refunds: 1,
      })
      expect([(await readState()).points, await isReleased(epc)]).toEqual([49, false])
      expect(
        (await store.exceptions('refund_failed')).filter((each) => each.purchase_id === transactionId),
      ).toHaveLength(1)
      expect(await store.ok(operation, { transactionId })).toMatchObject({
        status: 'CANCELLED',
        refundStatus: operation === 'refundPayment' ? 'done' : 'pending',
      })
      await store.wait('the missing amount', async () => (await status(transactionId))[1] === 'done')
      expect(refundedCent(session)).toBe(7_130)
      const after = await readState()
      expect(increase(before, after)).toEqual({ ...NOTHING, refunds: 2 })
      expect(after.points).toBe(0)
      expect(await store.call('refundPayment', { transactionId })).toMatchObject({
        status: 409,
        body: { reason: 'already_refunded' },
      })
      expect(await store.call('markPurchaseCancelled', { transactionId })).toMatchObject({
        status: 409,
        body: { reason: 'purchase_not_cancellable' },
      })
    },
  )

  it('a missing amount is still missing after a rejection, and is paid once after a lost response', async () => {
    const { transactionId, session, before, readState } = await cancelledWithoutShirt()
    store.psp.switches.status = 403
    for (let n = 0; n < 2; n++)
      expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
        status: 'CANCELLED',
        refundStatus: 'failed',
        refund: { amount: 49.9, status: 'failed' },
      })
    Object.assign(store.psp.switches, { status: undefined, hangAfterwards: true })
    let isAnswered = false
    const pending = store.ok('refundPayment', { transactionId }).finally(() => (isAnswered = true))
    await store.wait('an answer', () => isAnswered)
    expect(await pending).toMatchObject({ refundStatus: 'pending', refund: { status: 'pending' } })
    store.psp.release()
    store.psp.switches.hangAfterwards = false
    await store.wait('the next try', async () => (await status(transactionId))[1] === 'done', 10_000)
    expect(refundedCent(session)).toBe(7_130)
    expect(increase(before, await readState())).toEqual({ ...NOTHING, refunds: 2 })
  })

  it('a cancelled purchase is restored if the bank returns all refunds in any order, and one call refunds it again', async () => {
    for (const order of [
      [4_990, 2_140],
      [2_140, 4_990],
    ]) {
      const { transactionId, session, before, readState, shirt } = await bought()
      await store.ok('refundPayment', { transactionId, lines: [{ itemLineId: shirt }] })
      await store.ok('refundPayment', { transactionId })
      for (const cent of order) await bankReturns(session, cent)
      expect(await status(transactionId)).toEqual(['SUCCESS', 'failed'])
      expect(increase(before, await readState())).toEqual(SOLD)
      expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
        status: 'CANCELLED',
        refundStatus: 'done',
        refund: { amount: 71.3 },
      })
      expect([refundedCent(session), increase(before, await readState())]).toEqual([7_130, { ...NOTHING, refunds: 1 }])
    }
  })

  it('one call repeats several partial refunds that failed after the cancellation', async () => {
    const { transactionId, session, before, readState, shirt } = await bought()
    await store.ok('refundPayment', { transactionId, lines: [{ itemLineId: shirt }] })
    await store.ok('refundPayment', { transactionId, amount: 10 })
    await store.ok('refundPayment', { transactionId })
    for (const cent of [4_990, 1_000]) await bankReturns(session, cent)
    expect(await status(transactionId)).toEqual(['CANCELLED', 'failed'])
    expect(increase(before, await readState())).toMatchObject({ checkouts: 0, revenue: 5_990, refunds: 1 })
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
      refundStatus: 'done',
      refund: { amount: 59.9 },
    })
    expect([refundedCent(session), increase(before, await readState())]).toEqual([7_130, { ...NOTHING, refunds: 2 }])
  })

  it('a purchase is cancelled once when pending partial refunds of its whole amount complete', async () => {
    const { transactionId, session, before, readState, shirt, tea } = await bought()
    const sold = await readState()
    store.psp.switches.status = 500
    expect(
      await store.ok('refundPayment', { transactionId, lines: [{ itemLineId: shirt }, { itemLineId: tea }] }),
    ).toMatchObject({
      refund: { status: 'pending' },
    })
    // The provider has not paid anything yet.
    expect(await store.ok('markPurchaseCancelled', { transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'pending',
    })
    await store.platform.advance(20_000)
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
      refundStatus: 'pending',
      refund: { amount: 71.3, status: 'pending' },
    })
    expect(await readState()).toEqual({ ...sold, item: 'returned' })
    store.psp.switches.status = undefined
    await store.wait('the refund', async () => (await status(transactionId))[1] === 'done', 10_000)
    expect(refundedCent(session)).toBe(7_130)
    expect(increase(before, await readState())).toMatchObject(NOTHING)
    await store.platform.advance(20_000)
    const after = await readState()
    expect(increase(before, after)).toMatchObject(NOTHING)
    expect(after.points).toBe(0)
    expect(await store.call('refundPayment', { transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'already_refunded' },
    })
  })

  it('a cancellation is undone if its only refund was a partial one that failed, and can be repeated', async () => {
    const { transactionId, session, before, readState, epc } = await bought()
    const sold = await readState()
    store.psp.switches.status = 500
    await store.ok('refundPayment', { transactionId, amount: 71.3 })
    expect(await store.ok('markPurchaseCancelled', { transactionId })).toMatchObject({ refundStatus: 'pending' })
    store.psp.switches.status = 403
    await store.wait(
      'the refusal',
      async () => (await rowsOf(transactionId)).every((row) => row.state === 'failed'),
      10_000,
    )
    // The customer received no money and keeps the goods.
    expect(await status(transactionId)).toEqual(['SUCCESS', 'failed'])
    expect(await readState()).toEqual(sold)
    expect(await isReleased(epc)).toBe(true)
    store.psp.switches.status = undefined
    // The result of the first attempt is unknown, so the refund is sent again with its own id.
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
      status: 'CANCELLED',
      refund: { amount: 71.3, status: 'done' },
    })
    await store.wait('the end', async () => (await status(transactionId))[1] === 'done')
    // Nothing was left to refund for the cancellation itself.
    expect([refundedCent(session), increase(before, await readState())]).toEqual([7_130, { ...NOTHING, refunds: 1 }])
  })

  it('a cancellation waits for a pending partial refund, and lacks its amount if it fails', async () => {
    for (const end of ['done', 'failed'] as const) {
      const { transactionId, session, before, readState, shirt } = await bought()
      store.psp.switches.status = 500
      await store.ok('refundPayment', { transactionId, lines: [{ itemLineId: shirt }] })
      store.psp.switches.status = undefined
      expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
        status: 'CANCELLED',
        refundStatus: 'pending',
        refund: { amount: 21.4, status: 'done' },
      })
      // The completed refund reduces only the VAT rate of the tea, because the refund of the shirt is pending.
      const rest = await readState()
      expect(increase(before, rest)).toMatchObject({
        checkouts: 0,
        revenue: 4_990,
        units: 1,
        gross: [0, 4_990],
        tax: [0, 797],
      })
      expect(rest.points).toBe(49)
      if (end === 'failed') {
        store.psp.switches.status = 403
        await store.wait('the refusal', async () => (await status(transactionId))[1] === 'failed', 10_000)
        expect(await store.statusOf(transactionId)).toBe('CANCELLED')
        expect(increase(before, await readState())).toEqual(increase(before, rest))
        store.psp.switches.status = undefined
        expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
          status: 'CANCELLED',
          refundStatus: 'done',
          refund: { amount: 49.9, status: 'done' },
        })
      }
      await store.wait('the part', async () => (await status(transactionId))[1] === 'done', 10_000)
      expect([refundedCent(session), increase(before, await readState())]).toEqual([7_130, { ...NOTHING, refunds: 2 }])
      expect((await readState()).points).toBe(0)
    }
  })

  it('the cancellation repeats a partial refund with unknown result under its own id', async () => {
    const { transactionId, session, before, readState } = await bought()
    store.psp.switches.hangAfterwards = true
    let isAnswered = false
    const pending = store.ok('refundPayment', { transactionId, amount: 10 }).finally(() => (isAnswered = true))
    await store.wait('an answer', () => isAnswered)
    await pending
    store.psp.release()
    Object.assign(store.psp.switches, { hangAfterwards: false, status: 403 })
    await store.wait(
      'the refusal',
      async () => (await rowsOf(transactionId)).every((row) => row.state === 'failed'),
      10_000,
    )
    store.psp.switches.status = undefined
    expect(refundedCent(session)).toBe(1_000)
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
      status: 'CANCELLED',
      refund: { amount: 61.3, status: 'done' },
    })
    await store.wait('the part', async () => (await status(transactionId))[1] === 'done')
    expect([refundedCent(session), store.psp.refunds.filter((each) => each.sessionId === session).length]).toEqual([
      7_130, 2,
    ])
    expect(increase(before, await readState())).toEqual({ ...NOTHING, refunds: 2 })
  })

  it('if the bank returns the refund of the rest, the pending partial refund does not change', async () => {
    const { transactionId, session, before, readState, shirt } = await bought()
    store.psp.switches.status = 500
    await store.ok('refundPayment', { transactionId, lines: [{ itemLineId: shirt }] })
    store.psp.switches.status = undefined
    await store.ok('refundPayment', { transactionId })
    await bankReturns(session, 2_140)
    expect(await status(transactionId)).toEqual(['SUCCESS', 'failed'])
    expect(increase(before, await readState())).toEqual(SOLD)
    await store.wait(
      'the part',
      async () => (await rowsOf(transactionId)).some((row) => row.kind === 'part' && row.state === 'done'),
      10_000,
    )
    expect(await status(transactionId)).toEqual(['SUCCESS', 'failed'])
    expect(increase(before, await readState())).toMatchObject({
      checkouts: 1,
      sessions: 1,
      revenue: 2_140,
      units: 2,
      gross: [2_140, 0],
      tax: [140, 0],
    })
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
      refund: { amount: 21.4 },
    })
    expect([refundedCent(session), increase(before, await readState())]).toEqual([7_130, { ...NOTHING, refunds: 2 }])
  })

  it('equal the completed refunds after any sequence of partial refunds, cancellations, faults and returns; in the end the whole amount is refunded once', async () => {
    const PROVIDER = { up: {}, down: { status: 500 }, refusing: { status: 403 }, silent: { hangAfterwards: true } }
    const setProvider = (is: keyof typeof PROVIDER) => {
      store.psp.release()
      Object.assign(store.psp.switches, { status: undefined, hangAfterwards: false, ...PROVIDER[is] })
    }
    /** Moves the clock until the call ends, because the provider does not respond. */
    const waitFor = async <T>(call: Promise<T>): Promise<T> => {
      let isAnswered = false
      void call.finally(() => (isAnswered = true))
      await store.wait('an answer', () => isAnswered)
      return call
    }
    const pass = async (minutes: number) => {
      for (let left = minutes; left > 0; left -= 20) {
        store.platform.sleep(Math.min(left, 20) * 60_000)
        await store.platform.advance(6_000)
      }
    }
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 12 }), async (steps) => {
        setProvider('up')
        const { transactionId, session, before, shirt, tea } = await bought()
        const member = `shopper-${shoppers}`
        const request = (operation: string, body: Json = {}) =>
          waitFor(store.call(operation, { transactionId, ...body }))
        const at = { lines: { shirt, tea } }
        /** Reads all in one transaction, because jobs continue meanwhile. */
        const readAll = () =>
          store.cloud.db.database.write(async (db) => ({
            purchase: await db
              .selectFrom('purchase')
              .selectAll()
              .where('purchase_id', '=', transactionId)
              .executeTakeFirstOrThrow(),
            rows: await db.selectFrom('refund').selectAll().where('purchase_id', '=', transactionId).execute(),
            increase: increase(before, await figures(db)),
            points: (
              await db
                .selectFrom('loyalty_member')
                .select('balance')
                .where('program_id', '=', programId)
                .where('user_id', '=', member)
                .executeTakeFirst()
            )?.balance,
          }))
        const check = async () => {
          const { purchase, rows, increase: figure, points } = await readAll()
          const done = rows.filter((row) => row.state === 'done')
          const back = done.reduce((sum, row) => sum + row.amount_cent, 0)
          const isOver = purchase.refund_status === 'done'
          expect(refundedCent(session)).toBeLessThanOrEqual(7_130)
          expect(figure).toMatchObject({
            revenue: 7_130 - back,
            refunds: done.filter((row) => row.amount_cent > 0).length,
            sessions: figure.checkouts,
          })
          expect(figure.gross.reduce((sum, each) => sum + each, 0)).toBe(7_130 - back)
          expect(points).toBe(Math.floor((71 * (7_130 - back)) / 7_130))
          if (isOver) expect([figure, refundedCent(session)]).toMatchObject([NOTHING, 7_130])
          if (purchase.status !== 'CANCELLED')
            return void expect([figure.checkouts, [null, 'failed']]).toEqual([
              1,
              expect.arrayContaining([purchase.refund_status]),
            ])
          const isUnderWay = rows.some((row) => row.state === 'due' || row.state === 'held')
          const isCounted = done.some((row) => row.kind === 'whole')
          expect(purchase.refund_status).toBe(isUnderWay || !isCounted ? 'pending' : back === 7_130 ? 'done' : 'failed')
        }
        for (const s of steps) {
          if (s.do === 'lines')
            await request('refundPayment', { lines: [{ itemLineId: at.lines[s.line], quantity: s.quantity }] })
          else if (s.do === 'amount') await request('refundPayment', { amount: s.cent / 100 })
          else if (s.do === 'cancel') await request(s.by)
          else if (s.do === 'part and cancel at once')
            await Promise.all([request('refundPayment', { amount: s.cent / 100 }), request('markPurchaseCancelled')])
          else if (s.do === 'provider') setProvider(s.is)
          else if (s.do === 'wait') await pass(s.minutes)
          else {
            const refunds = store.psp.refunds.filter((each) => each.sessionId === session && each.status === 'done')
            const refund = refunds[s.nth % Math.max(1, refunds.length)]
            if (refund) await store.psp.failRefund(refund.id)
          }
          await check()
        }
        setProvider('up')
        for (let n = 0; n < 3; n++) {
          // Waits until no refund is pending. A refund that ends during the call would make the call fail.
          await store.wait(
            'what is under way',
            async () => (await readAll()).rows.every((row) => row.state === 'done' || row.state === 'failed'),
            20 * 60_000,
          )
          await store.wait('the end', async () => (await readAll()).purchase.refund_status !== 'pending')
          await check()
          if ((await readAll()).purchase.refund_status === 'done') break
          expect((await request('refundPayment')).status).toBe(200)
        }
        expect((await readAll()).purchase).toMatchObject({ status: 'CANCELLED', refund_status: 'done' })
      }),
      { numRuns: kind === 'sqlite' ? 12 : 6, endOnFailure: true },
    )
  })

  it('do not move an item that staff have put back on the shelf meanwhile', async () => {
    const { transactionId, epc } = await bought()
    store.psp.switches.status = 500
    await store.ok('refundPayment', { transactionId })
    const { operatorId } = await store.ok('registerOperator', { storeId: store.storeId, name: 'Frau Petersen' })
    await store.ok('updateItemStatus', { storeId: store.storeId, epc, itemStatus: 'sellable', operatorId })
    store.psp.switches.status = 403
    await store.wait(
      'the refusal',
      async () => (await store.ok('fetchPurchase', { transactionId })).refundStatus === 'failed',
      10_000,
    )
    expect([await store.statusOf(transactionId), await itemStatus(epc)]).toEqual(['SUCCESS', 'sellable'])
  })
})
