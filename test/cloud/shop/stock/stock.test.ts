import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { cancelOverdueOrders } from '../../../../cloud/sales/click-and-collect/operations.ts'
import { cancelOverduePurchases } from '../../../../cloud/sales/checkout/cancel-overdue-purchases.ts'
import { lapseReservations } from '../../../../cloud/shop/stock/reserve.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

const MINUTE = 60_000

onEveryDatabase('stock', (kind) => {
  let shop: Shop
  const { platform, forward } = movablePlatform()
  beforeAll(async () => {
    shop = await openShop(kind, { platform })
  })
  afterAll(() => shop.stop())

  const set = (product: Json, quantity: number | null) =>
    shop.ok('setStock', { productId: product.productId, storeId: shop.storeId, quantity })
  const order = (items: Json[]) => shop.call('submitClickCollectOrder', { storeId: shop.storeId, userId: 'u', items })
  const one = (product: Json, quantity = 1) => [{ productId: product.productId, quantity }]
  const move = (orderId: string, status: string) => shop.ok('updateClickCollectStatus', { orderId, status })
  const checkout = async (items: Json[]) => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    return shop.call('startCheckout', { sessionId, items })
  }
  const levelOf = async (product: Json) => {
    const { reads } = shop.cloud.db.database
    return reads
      .selectFrom('stock_level')
      .select(['on_hand', 'reserved'])
      .where('product_id', '=', product.productId)
      .where('store_id', '=', shop.storeId)
      .executeTakeFirst()
  }
  /** Runs the jobs that end overdue purchases, reservations and orders. */
  const endLate = async () => {
    const { database } = shop.cloud.db
    for (const job of [cancelOverduePurchases, lapseReservations, cancelOverdueOrders])
      await job(database, shop.cloud.cloud.services)
  }

  it('changes nothing in stores without counted stock', async () => {
    const [product] = shop.products
    const { body } = await order(one(product, 900))
    expect(body.status).toBe('pending')
    await move(body.orderId, 'cancelled')
    expect(await shop.cloud.db.database.reads.selectFrom('stock_reservation').selectAll().execute()).toEqual([])
    expect(await levelOf(product)).toBeUndefined()
  })

  it('starts and stops counting, and names every line that exceeds the stock', async () => {
    const [a, b, c] = shop.products
    expect(await set(a, 2)).toMatchObject({ quantity: 2, reserved: 0, available: 2 })
    await set(b, 0)
    const refused = await order([...one(a, 2), ...one(c, 5), ...one(b), ...one(a)])
    expect(refused).toMatchObject({ status: 409, body: { code: 'failed-precondition', reason: 'out_of_stock' } })
    expect(refused.body.details.map((d: Json) => [d.path, d.code])).toEqual([
      ['items[0].quantity', 'out_of_stock'],
      ['items[2].quantity', 'out_of_stock'],
    ])
    expect(await levelOf(a)).toEqual({ on_hand: 2, reserved: 0 })
    const basket = await checkout([
      { ean: a.ean, quantity: 2 },
      { ean: b.ean, quantity: 1 },
    ])
    expect(basket.body).toMatchObject({ reason: 'out_of_stock', details: [{ path: 'items[1].quantity' }] })
    expect(await set(b, null)).toMatchObject({ quantity: null, available: null })
    const { body } = await order([...one(a), ...one(b, 7)])
    expect(await levelOf(b)).toEqual({ on_hand: null, reserved: 7 })
    expect(await set(b, 10)).toMatchObject({ reserved: 7, available: 3 })
    await move(body.orderId, 'cancelled')
    expect(await levelOf(b)).toEqual({ on_hand: 10, reserved: 0 })
    expect((await shop.call('setStock', { productId: 'prd_x', storeId: shop.storeId, quantity: 1 })).status).toBe(404)
    expect((await shop.call('setStock', { productId: a.productId, storeId: shop.storeId, quantity: -1 })).status).toBe(
      400,
    )
    const { stock, total } = await shop.ok('fetchStock', { storeId: shop.storeId, limit: 1 })
    expect([stock.length, total]).toEqual([1, 2])
    const list = async (fields: Json) => (await shop.ok('fetchStock', { storeId: shop.storeId, ...fields })).stock
    expect([...stock, ...(await list({ cursor: stock[0].productId }))]).toEqual(await list({}))
    expect(await list({ productId: b.productId })).toMatchObject([{ quantity: 10, reserved: 0, available: 10 }])
    for (const each of [a, b]) await set(each, null)
    expect(await list({ productId: b.productId })).toEqual([])
  })

  it('is no longer counted after the product is removed, and reserved pieces can still be picked up', async () => {
    const made = await shop.ok('insertProduct', {
      storeId: shop.storeId,
      ean: '4500000000007',
      name: 'Weißbier',
      price: 1,
      vat: 19,
    })
    await set(made, 3)
    const { body } = await order(one(made, 2))
    await shop.ok('removeProductFromStore', { storeId: shop.storeId, productId: made.productId })
    expect((await shop.ok('fetchStock', { storeId: shop.storeId, productId: made.productId })).stock).toEqual([])
    expect(await levelOf(made)).toEqual({ on_hand: null, reserved: 2 })
    for (const status of ['confirmed', 'ready', 'picked_up']) await move(body.orderId, status)
    expect(await levelOf(made)).toEqual({ on_hand: null, reserved: 0 })
    await shop.ok('insertProduct', { storeId: shop.storeId, ean: '4500000000007', name: 'Weißbier', price: 1, vat: 19 })
    expect((await order(one(made, 9))).status).toBe(200)
  })

  it('32 concurrent orders and checkouts never reserve more than available', async () => {
    const [, , , product, other] = shop.products
    await Promise.all([set(product, 10), set(other, 25)])
    const answers = await Promise.all(
      Array.from({ length: 32 }, (_, i) =>
        i % 4 === 0
          ? checkout([
              { ean: other.ean, quantity: 1 },
              { ean: product.ean, quantity: 1 },
            ])
          : order(i % 2 ? [...one(product), ...one(other)] : [...one(other), ...one(product)]),
      ),
    )
    expect(answers.filter((a) => a.status === 200)).toHaveLength(10)
    expect(answers.every((a) => a.status === 200 || a.body.reason === 'out_of_stock')).toBe(true)
    expect([await levelOf(product), await levelOf(other)]).toEqual([
      { on_hand: 10, reserved: 10 },
      { on_hand: 25, reserved: 10 },
    ])
    await Promise.all(answers.filter((a) => a.body.orderId).map((a) => move(a.body.orderId, 'cancelled')))
    const paid = answers.filter((a) => a.body.transactionId)
    for (const { body } of paid) await shop.ok('completeTestCheckout', { transactionId: body.transactionId })
    expect(await levelOf(product)).toEqual({ on_hand: 10 - paid.length, reserved: 0 })
    for (const each of [product, other]) await set(each, null)
  })

  it('releases the stock of an abandoned checkout once', async () => {
    const [product] = shop.products
    await set(product, 1)
    await checkout([{ ean: product.ean, quantity: 1 }])
    forward(29 * MINUTE)
    await endLate()
    expect((await order(one(product))).status).toBe(409)
    forward(2 * MINUTE)
    await Promise.all([endLate(), endLate()])
    expect(await levelOf(product)).toEqual({ on_hand: 1, reserved: 0 })
    await set(product, null)
  })

  it('lets unpaid baskets of shoppers give way to the till and to orders, the oldest first, and never to other shoppers', async () => {
    const [product] = shop.products
    await set(product, 10)
    const publishable = await shop.cloud.key('publishable')
    const asShopper = async (quantity: number) => {
      const { sessionId } = await shop.cloud.ok(publishable, 'checkIn', { storeId: shop.storeId })
      return shop.cloud.call(publishable, 'startCheckout', { sessionId, items: [{ ean: product.ean, quantity }] })
    }
    const [first, second] = [await asShopper(4), (forward(MINUTE), await asShopper(6))]
    expect([first.status, second.status, (await asShopper(1)).status]).toEqual([200, 200, 409])
    const till = await checkout([{ ean: product.ean, quantity: 3 }])
    expect(till.status).toBe(200)
    expect(await levelOf(product)).toEqual({ on_hand: 10, reserved: 9 })
    expect((await checkout([{ ean: product.ean, quantity: 8 }])).status, 'more than there is').toBe(409)
    expect(await levelOf(product)).toEqual({ on_hand: 10, reserved: 9 })
    const ordered = await order(one(product, 7))
    expect(ordered.status).toBe(200)
    expect(await levelOf(product)).toEqual({ on_hand: 10, reserved: 10 })
    // A basket that gave way can still be paid. Staff learn that pieces lack.
    await shop.ok('completeTestCheckout', { transactionId: second.body.transactionId })
    const raised = await shop.cloud.db.database.reads
      .selectFrom('protection_exception')
      .select('purchase_id')
      .where('kind', '=', 'stock_oversold')
      .execute()
    expect(raised.map((e) => e.purchase_id)).toEqual([second.body.transactionId])
    await shop.cloud.db.database.write(async (db) => void (await db.deleteFrom('protection_exception').execute()))
    await move(ordered.body.orderId, 'cancelled')
    await set(product, null)
  })

  it('falls by sales of tills, and rises by goods that come back to be sold again, and by voids', async () => {
    const [product] = shop.products
    const { storeId } = shop
    await set(product, 10)
    const lines = [{ ean: product.ean, quantity: 3, priceUnit: 990, vat: 19 }]
    const record = async (saleId: string) => {
      const sale = {
        saleId,
        tillId: 'kasse-1',
        occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
        lines,
      }
      expect((await shop.ok('recordSales', { storeId, sales: [sale] })).recorded).toBe(1)
    }
    const onHand = async () => (await levelOf(product))?.on_hand
    await record('s1')
    expect(await onHand()).toBe(7)
    const back = (returnId: string, resellable: boolean) =>
      shop.ok('recordReturns', {
        storeId,
        returns: [{ returnId, saleId: 's1', tillId: 'kasse-1', resellable, lines: [{ lineId: '1', quantity: 1 }] }],
      })
    await back('r1', true)
    expect(await onHand()).toBe(8)
    await back('r2', false)
    expect(await onHand()).toBe(8)
    await shop.ok('voidSale', { storeId, saleId: 's1', tillId: 'kasse-1' })
    expect(await onHand()).toBe(9)
    await set(product, null)
  })

  it('reserves stock during staff approval; a late payment stays valid and raises an exception if the pieces were reserved meanwhile', async () => {
    const { products } = await shop.ok('fetchProducts', { storeId: shop.storeId, limit: 500 })
    const wine = products.find((p: Json) => p.flags.requiresHumanVerification)
    await set(wine, 1)
    const { body: late } = await checkout([{ ean: wine.ean, quantity: 1 }])
    expect(late).toMatchObject({ status: 'CREATED', awaitingApproval: true })
    forward(3 * 60 * MINUTE)
    await endLate()
    expect(await levelOf(wine)).toEqual({ on_hand: 1, reserved: 1 })
    forward(61 * MINUTE)
    await Promise.all([endLate(), endLate()])
    expect(await levelOf(wine)).toEqual({ on_hand: 1, reserved: 0 })
    const { body } = await order(one(wine))
    expect(body.status).toBe('pending')
    const { operatorId } = await shop.ok('registerOperator', { storeId: shop.storeId, name: 'Frau Petersen' })
    await shop.ok('approveCheckout', { transactionId: late.transactionId, operatorId })
    expect((await shop.ok('completeTestCheckout', { transactionId: late.transactionId })).status).toBe('SUCCESS')
    const raised = await shop.cloud.db.database.reads
      .selectFrom('protection_exception')
      .selectAll()
      .where('kind', '=', 'stock_oversold')
      .execute()
    expect(raised.map((e) => e.purchase_id)).toEqual([late.transactionId])
    expect(await levelOf(wine)).toEqual({ on_hand: 0, reserved: 1 })
    await move(body.orderId, 'cancelled')
    // Approval starts the times of payment and stock again. A rejection releases the stock at once.
    await set(wine, 2)
    const [yes, no] = [
      await checkout([{ ean: wine.ean, quantity: 1 }]),
      await checkout([{ ean: wine.ean, quantity: 1 }]),
    ]
    await shop.ok('approveCheckout', { transactionId: yes.body.transactionId, operatorId })
    await shop.ok('approveCheckout', { transactionId: no.body.transactionId, operatorId, approved: false })
    expect(await levelOf(wine)).toEqual({ on_hand: 2, reserved: 1 })
    forward(31 * MINUTE)
    await endLate()
    expect(await levelOf(wine)).toEqual({ on_hand: 2, reserved: 0 })
    await set(wine, null)
  })

  it('agrees with a model after any sequence of events', async () => {
    const products = shop.products.slice(0, 2)
    type Step =
      | { kind: 'set'; product: number; quantity: number | null }
      | { kind: 'order' | 'basket'; quantities: [number, number] }
      | { kind: 'pickUp' | 'cancel' | 'pay' | 'decline'; at: number }
      | { kind: 'wait' }
    const product = fc.nat(1)
    const step = fc.oneof(
      fc.record({ kind: fc.constant('set' as const), product, quantity: fc.option(fc.nat(6)) }),
      fc.record({
        kind: fc.constantFrom('order' as const, 'basket' as const),
        quantities: fc.tuple(fc.nat(3), fc.nat(3)),
      }),
      fc.record({
        kind: fc.constantFrom('pickUp' as const, 'cancel' as const, 'pay' as const, 'decline' as const),
        at: fc.nat(5),
      }),
      fc.constant({ kind: 'wait' as const }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 16 }), async (steps: Step[]) => {
        for (const each of products) await set(each, 3)
        const onHand: (number | null)[] = [3, 3]
        const open: { id: string; isOrder: boolean; quantities: [number, number] }[] = []
        const reserved = (p: number) => open.reduce((sum, o) => sum + (o.quantities[p] ?? 0), 0)
        for (const s of steps) {
          if (s.kind === 'set') {
            await set(products[s.product], s.quantity)
            onHand[s.product] = s.quantity
          } else if (s.kind === 'order' || s.kind === 'basket') {
            const items = s.quantities.flatMap((quantity, p) =>
              quantity > 0 ? [{ productId: products[p].productId, quantity }] : [],
            )
            if (items.length === 0) continue
            const fits = s.quantities.every(
              (quantity, p) => quantity === 0 || onHand[p] === null || (onHand[p] ?? 0) - reserved(p) >= quantity,
            )
            const answer = s.kind === 'order' ? await order(items) : await checkout(items)
            expect([answer.status, answer.body.reason]).toEqual(fits ? [200, undefined] : [409, 'out_of_stock'])
            if (fits)
              open.push({
                id: answer.body.orderId ?? answer.body.transactionId,
                isOrder: s.kind === 'order',
                quantities: s.quantities,
              })
          } else if (s.kind === 'wait') {
            forward(31 * MINUTE)
            await endLate()
            open.splice(0, open.length, ...open.filter((o) => o.isOrder))
          } else if ('at' in s) {
            const o = open[s.at]
            if (!o || o.isOrder !== (s.kind === 'pickUp' || s.kind === 'cancel')) continue
            open.splice(open.indexOf(o), 1)
            if (s.kind === 'pickUp') {
              for (const status of ['confirmed', 'ready', 'picked_up']) await move(o.id, status)
            } else if (s.kind === 'pay') await shop.ok('completeTestCheckout', { transactionId: o.id })
            if (s.kind === 'pickUp' || s.kind === 'pay') {
              o.quantities.forEach(
                (quantity, p) =>
                  void (onHand[p] = onHand[p] === null ? null : Math.max(0, (onHand[p] ?? 0) - quantity)),
              )
            } else if (s.kind === 'cancel') await move(o.id, 'cancelled')
            else if (s.kind === 'decline')
              await shop.ok('completeTestCheckout', { transactionId: o.id, result: 'declined' })
          }
          for (const p of [0, 1])
            expect(await levelOf(products[p])).toEqual({ on_hand: onHand[p], reserved: reserved(p) })
        }
        for (const o of open) {
          if (o.isOrder) await move(o.id, 'cancelled')
          else await shop.ok('markPurchaseCancelled', { purchaseId: o.id })
        }
        for (const each of products) expect((await levelOf(each))?.reserved).toBe(0)
      }),
      { numRuns: kind === 'sqlite' ? 25 : 10 },
    )
  })

  it('logs no error', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
