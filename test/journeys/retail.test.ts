// @module-tag extended
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { newMigratedPostgres, onEveryDatabase, type DatabaseKind } from '../support/databases.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'
import { answerWith, startReceiver, type Receiver } from '../support/receiver.ts'

const SECRET = `whsec_${Buffer.from('a secret of the merchant, 32 bytes').toString('base64')}`
const EVENTS = [
  'checkout.completed',
  'securityTag.deactivated',
  'payment.created',
  'product.bulk_imported',
  'offer.published',
  'clickcollect.order',
  'clickcollect.status_changed',
  'clickcollect.picked_up',
  'loyalty.points_earned',
  'protection.action.completed',
  'protection.exception.raised',
]

/** Each round kills the cloud after another number of events. */
const ROUNDS = IS_FULL_SIZE ? 6 : 2
const NAME = 'the day of a shop with real processes'

// CI has real processes on PostgreSQL in spine.test.ts.
if (IS_FULL_SIZE) onEveryDatabase(NAME, dayOfShop)
else describe(`${NAME} on SQLite`, () => dayOfShop('sqlite'))

function dayOfShop(kind: DatabaseKind): void {
  let journey: Journey
  let postgres: { url: string; remove(): Promise<void> } | undefined
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>
  let receiver: Receiver
  let programId: string
  let tags = 0

  beforeAll(async () => {
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    receiver = await startReceiver()
    postgres = kind === 'postgres' ? await newMigratedPostgres() : undefined
    journey = await openJourney({
      ...(postgres && { databaseUrl: postgres.url }),
      boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
      cloudOptions: ['--allow-private-targets'],
    })
    programId = (
      await ok('createLoyaltyProgram', {
        storeId: journey.storeId,
        name: 'Punkte',
        type: 'points',
        earningMethods: ['scan_and_go', 'click_collect'],
      })
    ).programId
    await ok('registerWebhook', { url: receiver.url, events: EVENTS, secret: SECRET })
    await eventually('the boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
  })
  afterAll(async () => {
    await journey.stop()
    await receiver.close()
    for (const board of Object.values(boards)) await board.close()
    await postgres?.remove()
  })

  const ok = (operation: string, body: Json) => journey.api.call(operation, body) as Promise<Json>
  const text = async (url: string, accept: string) => (await fetch(url, { headers: { accept } })).text()
  const at = (device: keyof Journey['devices'], protectionAction: string, body: Json) =>
    journey.authorize({ deviceId: journey.devices[device], protectionAction, ...body })
  /** Requires a grant with outcome confirmed or null, else throws. The error contains the response. */
  async function done(device: keyof Journey['devices'], protectionAction: string, body: Json): Promise<void> {
    const answer = await at(device, protectionAction, body)
    if (answer.authorized !== true || !['confirmed', null].includes(answer.outcome))
      throw new Error(JSON.stringify(answer))
  }
  const statusOf = async (epc: string) => (await ok('fetchProtectedItem', { storeId: journey.storeId, epc })).itemStatus
  const balanceOf = async (userId: string) =>
    (await ok('getLoyaltyProgram', { programId, userId })).membership?.balance ?? 0

  async function newItem(product: Json): Promise<string> {
    const epc = `E2801170000002000001${String(++tags).padStart(4, '0')}`
    await ok('registerProtectedItems', { storeId: journey.storeId, items: [{ epc, ean: product.ean }] })
    return epc
  }

  /** Distinct received events. The library of Standard Webhooks verifies every signature. */
  function heard(about: (event: Json) => boolean): Json[] {
    const events = new Map<string, Json>()
    for (const { body, headers } of receiver.requests) {
      const event = new Webhook(SECRET).verify(body, headers as Record<string, string>) as Json
      const known = events.get(event.id)
      if (known) expect(event).toEqual(known)
      events.set(event.id, event)
    }
    return [...events.values()].filter(about)
  }
  const names = (events: Json[]) => events.map((e) => e.event).sort()

  it('a shopper checks in, scans, pays, keeps the receipt, gets points and leaves', async () => {
    const [shirt, coat] = journey.products as [Json, Json]
    const epc = await newItem(coat)
    const userId = 'saturday-shopper'
    const { sessionId } = await ok('checkIn', { storeId: journey.storeId, userId })
    const wrong = await fetch(`${journey.baseUrl}/startCheckout`, {
      method: 'POST',
      headers: { authorization: `Bearer ${journey.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        sessionId,
        items: [{ ean: shirt.ean, name: shirt.name, priceUnit: 1, vat: shirt.vat, quantity: 2 }],
      }),
    })
    expect([wrong.status, await wrong.json()]).toEqual([409, expect.objectContaining({ code: 'failed-precondition' })])
    const purchase = await ok('startCheckout', {
      sessionId,
      items: [
        { ean: shirt.ean, quantity: 2 },
        { ean: coat.ean, epcs: [epc], quantity: 1 },
      ],
    })
    expect(purchase.total).toBeCloseTo(shirt.price * 2 + coat.price)
    const { transactionId } = purchase
    expect(await at('exit_gate', 'authorize_exit', { epc })).toMatchObject({
      authorized: false,
      reason: 'item_not_paid',
    })

    const page = await fetch(purchase.checkoutUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'result=paid',
    })
    expect(await page.text()).toContain('Paid')
    const qr = await ok('generateReceiptQR', { purchaseId: transactionId })
    const receipt = JSON.parse(
      await text(`${journey.baseUrl}/getReceiptFromToken?token=${qr.token}`, 'application/json'),
    ) as Json
    expect(receipt).toMatchObject({ id: transactionId, totalCent: Math.round(purchase.total * 100) })
    expect((Object.values(receipt.vatBreakdown) as Json[]).reduce((sum, v) => sum + v.net + v.tax, 0)).toBe(
      receipt.totalCent,
    )
    for (const form of ['text/html', 'text/plain'])
      expect(await text(`${journey.baseUrl}/getReceiptFromToken?token=${qr.token}`, form)).toContain(coat.name)

    for (const _ of [1, 2])
      await done('pos_deactivator', 'deactivate_label', {
        receipt: qr.url,
        itemLineId: purchase.items[0].itemLineId,
      })
    expect(
      await at('pos_deactivator', 'deactivate_label', {
        receipt: qr.url,
        itemLineId: purchase.items[0].itemLineId,
      }),
    ).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    await done('self_checkout_detacher', 'detach_hard_tag', { epc })
    const before = boards.gate.pulses(0)
    await journey.scanners.gate.scan(qr.url)
    await eventually('the way out', async () => boards.gate.pulses(0) === before + 1)
    await eventually('UNLOADED', async () => (await ok('fetchPurchase', { transactionId })).status === 'UNLOADED')
    expect(await balanceOf(userId)).toBe(Math.floor(purchase.total))

    const about = (e: Json) => e.data.transactionId === transactionId || e.data.purchaseId === transactionId
    // The cloud sends the events concurrently, so their order can differ.
    const count = (name: string) => heard(about).filter(({ event }) => event === name).length
    await eventually(
      'all events',
      async () => count('protection.action.completed') === 4 && count('securityTag.deactivated') === 1,
    )
    expect(new Set(names(heard(about)))).toEqual(
      new Set([
        'payment.created',
        'checkout.completed',
        'loyalty.points_earned',
        'protection.action.completed',
        'securityTag.deactivated',
      ]),
    )
    expect(
      heard(about).filter((e) => ['checkout.completed', 'securityTag.deactivated'].includes(e.event)),
    ).toHaveLength(2)
  })

  it('an order is reserved, collected and carried out; before collection its goods cause an alarm', async () => {
    const product = journey.products[2] as Json
    await newItem(product)
    const order = await ok('submitClickCollectOrder', {
      storeId: journey.storeId,
      userId: 'collector',
      items: [{ ean: product.ean, quantity: 1 }],
    })
    const { epc } = order.items[0].reservedTags[0]
    expect(await statusOf(epc)).toBe('reserved_bopis')
    expect(await at('exit_gate', 'authorize_exit', { epc })).toMatchObject({
      authorized: false,
      itemStatus: 'reserved_bopis',
    })
    for (const status of ['accepted', 'preparing', 'ready'])
      await ok('updateClickCollectStatus', { orderId: order.orderId, status })
    await ok('updateClickCollectStatus', { orderId: order.orderId, status: 'picked_up', pickupCode: order.pickupCode })
    await done('self_checkout_detacher', 'detach_hard_tag', { epc })
    await done('exit_gate', 'authorize_exit', { epc })
    const about = (e: Json) => e.data.orderId === order.orderId
    await eventually('all events', async () => heard(about).length === 6)
    expect(names(heard(about))).toEqual([
      'clickcollect.order',
      'clickcollect.picked_up',
      ...Array.from({ length: 4 }, () => 'clickcollect.status_changed'),
    ])
  })

  it('a refund revokes receipt, goods and points, and the goods are sold again', async () => {
    const product = journey.products[1] as Json
    const epc = await newItem(product)
    const userId = 'sandbox-shopper'
    const before = await balanceOf(userId)
    const { transactionId, receipt } = await journey.buy([{ ean: product.ean, epcs: [epc], quantity: 1 }])
    expect(await balanceOf(userId)).toBeGreaterThan(before)
    await ok('refundPayment', { purchaseId: transactionId, reason: 'does not fit' })
    await eventually(
      'the money back',
      async () => (await ok('fetchPurchase', { transactionId })).refundStatus === 'done',
    )
    expect(await ok('fetchPurchase', { transactionId })).toMatchObject({ status: 'CANCELLED' })
    expect(await balanceOf(userId)).toBe(before)
    expect(['cancelled', 'returned']).toContain(await statusOf(epc))
    const denied = await at('pos_deactivator', 'deactivate_label', { receipt })
    expect(denied).toMatchObject({ authorized: false })
    journey.wire.cut()
    await eventually('offline', async () => (await journey.status()).online === false)
    expect(await at('pos_deactivator', 'deactivate_label', { receipt })).toMatchObject({
      authorized: false,
      offline: true,
    })
    journey.wire.restore()
    await eventually('online', async () => (await journey.status()).online === true)
    await ok('updateItemStatus', { storeId: journey.storeId, epc, itemStatus: 'sellable' })
    const again = await journey.buy([{ ean: product.ean, epcs: [epc], quantity: 1 }])
    await done('pos_deactivator', 'deactivate_label', { receipt: again.receipt })
  })

  it('a refund of one of two pieces ends the rights of this piece only, also offline', async () => {
    const product = journey.products[1] as Json
    const [back, kept] = [await newItem(product), await newItem(product)]
    const bought = await journey.buy([{ ean: product.ean, epcs: [back, kept], quantity: 2 }])
    const { transactionId, receipt } = bought
    const { itemLineId } = (await ok('fetchPurchase', { transactionId })).items[0]
    expect(
      await ok('refundPayment', { purchaseId: transactionId, lines: [{ itemLineId, epcs: [back] }] }),
    ).toMatchObject({ status: 'SUCCESS', refunded: product.price })
    expect([await statusOf(back), await statusOf(kept)]).toEqual(['returned', 'paid'])
    // The agent acknowledges its deny list in order, so a later cancellation ends after it knows the returned piece.
    const later = await journey.buy([{ ean: product.ean, epcs: [await newItem(product)], quantity: 1 }])
    await ok('refundPayment', { purchaseId: later.transactionId })
    const isKnown = async () =>
      (await ok('fetchPurchase', { transactionId: later.transactionId })).refundStatus === 'done'
    await eventually('the deny list at the agent', isKnown)
    journey.wire.cut()
    await eventually('offline', async () => (await journey.status()).online === false)
    await done('pos_deactivator', 'deactivate_label', { receipt })
    // Two pieces were bought, and one came back, so the receipt releases nothing more.
    expect((await at('pos_deactivator', 'deactivate_label', { receipt })).authorized).toBe(false)
    journey.wire.restore()
    await eventually('online', async () => (await journey.status()).online === true)
  })

  it('a merchant imports products, creates offers, sells and reads reports on the first day', async () => {
    const eans = ['4006381333931', '4012345678901', '4000417025005']
    const form = new FormData()
    form.set('storeId', journey.storeId)
    form.set(
      'file',
      new File(
        [
          `ean,name,price,vat\n${eans.map((ean, i) => `${ean},Ware ${i},${10 + i}.50,19`).join('\n')}\n12345,Falsch,1,19\n`,
        ],
        'waren.csv',
        { type: 'text/csv' },
      ),
    )
    const imported = (await (
      await fetch(`${journey.baseUrl}/importProducts`, {
        method: 'POST',
        headers: { authorization: `Bearer ${journey.key}` },
        body: form,
      })
    ).json()) as Json
    expect(imported).toMatchObject({ imported: 3, errors: [expect.objectContaining({ field: 'ean' })] })
    const bought = await journey.buy(eans.map((ean) => ({ ean, quantity: 2 })))
    // Uses the time zone of the shop, in which a day starts earlier than in UTC.
    const today = new Date().toLocaleDateString('sv-SE', { timeZone: 'Europe/Berlin' })
    const period = { storeId: journey.storeId, from: today, to: today }
    const sales = await ok('exportSalesData', { ...period, format: 'json' })
    const { items } = sales.sales.find((sale: Json) => sale.transactionId === bought.transactionId)
    expect(items.map((line: Json) => [line.ean, line.quantity])).toEqual(eans.map((ean) => [ean, 2]))
    expect(JSON.stringify(await ok('fetchAnalytics', period))).toContain('revenue')
    await eventually(
      'the import’s notice',
      async () => heard((e) => e.event === 'product.bulk_imported' && e.data.imported === 3).length === 1,
    )
  })

  it('a cloud that dies repeatedly delivers every payment event, none twice', async () => {
    const ean = journey.products[0]?.ean as string
    const paid: string[] = []
    // The receiver responds slowly, so that the process often dies between sending and recording.
    receiver.answer = (response) => void setTimeout(() => answerWith(200)(response), 20)
    for (let round = 0; round < ROUNDS; round++) {
      const selling = Promise.allSettled(Array.from({ length: 4 }, () => journey.buy([{ ean, quantity: 1 }])))
      const before = receiver.requests.length
      await eventually('an event arrives', async () => receiver.requests.length > before + (round % 3))
      await journey.cloud.kill()
      for (const result of await selling) if (result.status === 'fulfilled') paid.push(result.value.transactionId)
      await journey.startCloud()
    }
    const { purchases } = await ok('fetchPurchaseHistory', { storeId: journey.storeId, limit: 500 })
    const settled = (purchases as Json[])
      .filter((p) => ['SUCCESS', 'UNLOADED'].includes(p.status))
      .map((p) => String(p.transactionId ?? p.id))
    for (const id of paid) expect(settled).toContain(id)
    const told = () => heard((e) => e.event === 'checkout.completed').map((e) => e.data.transactionId as string)
    // The cloud repeats attempts of a dead process after a minute.
    await eventually('all payment events arrive', async () => settled.every((id) => told().includes(id)), 100_000)
    expect(new Set(told()).size).toBe(told().length)
  })
}
