import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { revokeDueTokens } from '../../../cloud/protection/leases/token-revocations.ts'
import { coversRecalled, publishRecalls } from '../../../cloud/protection/recalls/publish-recalls.ts'
import { publishRecalledReceipts } from '../../../cloud/protection/recalls/recalled-receipts.ts'
import { policyDocumentOf } from '../../../cloud/protection/store-policy/policy-document.ts'
import { findStore } from '../../../cloud/platform/stores/queries.ts'
import { toGtin14 } from '../../../policy/gs1/gtin.ts'
import { encodeSgtin, splitGtin14 } from '../../../policy/gs1/sgtin.ts'
import { newId } from '../../../policy/ids.ts'
import { ITEM_STATUSES } from '../../../policy/vocabulary.ts'
import { virtualPlatform, type VirtualPlatform } from '../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { newEan, newEpc, openShop, type Shop } from '../../support/shop.ts'

let serial = 4711
function sgtinOf(ean: string): string {
  const parts = splitGtin14(toGtin14(ean) ?? '', 7)
  const encoded = parts && encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...parts, serial: String(serial++) })
  if (!encoded?.ok) throw new Error('the EAN has no SGTIN')
  return encoded.hex
}

const RECALLED = { status: 409, body: { reason: 'recalled' } }
const denied = { authorized: false, reason: 'recalled', itemStatus: 'exception_hold', authorizationToken: null }

onEveryDatabase('a recall', (kind) => {
  let shop: Shop
  let platform: VirtualPlatform
  let product: Json
  let other: Json
  beforeAll(async () => {
    platform = virtualPlatform({ startMs: Date.parse('2026-11-20T09:00:00Z') })
    shop = await openShop(kind, { platform })
    ;[product, other] = shop.products
  })
  afterAll(() => shop.stop())

  const recall = (fields: Json = {}) =>
    shop.ok('recallProducts', { storeIds: [shop.storeId], ean: product.ean, reason: 'Splitter', ...fields })
  const end = (recallId: string) => shop.ok('endRecall', { recallId })
  /** Runs with a recall that ends afterwards. */
  async function during(fields: Json, run: (started: Json) => Promise<void>): Promise<void> {
    const started = await recall(fields)
    try {
      await run(started)
    } finally {
      await end(started.recallId)
    }
  }
  const start = async (line: Json) => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    return shop.call('startCheckout', { sessionId, items: [{ quantity: 1, ...line }] })
  }
  const register = (item: Json) => shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [item] })
  const fetchItem = (names: Json) => shop.ok('fetchProtectedItem', { storeId: shop.storeId, ...names })
  const detach = (body: Json) =>
    shop.ok('verifyProtectedItem', {
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      ...body,
    })
  const leave = (body: Json) =>
    shop.ok('verifyProtectedItem', { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit', ...body })
  const sold = async (fields: Json = {}, of = product) => {
    const { epc } = await shop.newItem(of, fields)
    const { transactionId } = await shop.buy([{ quantity: 1, epcs: [epc] }])
    return { epc, purchaseId: transactionId as string }
  }

  it('stops paid goods at release and exit, also for staff, and answers how many it stops', async () => {
    const { epc, purchaseId } = await sold()
    const unsold = await shop.newItem(product)
    await during({}, async (started) => {
      expect(started).toMatchObject({ state: 'active', ean: product.ean, name: product.name, reason: 'Splitter' })
      expect(started.items).toBeGreaterThanOrEqual(2)
      expect(started.soldItems).toBeLessThan(started.items)
      for (const body of [{ epc }, { epc, purchaseId }, { epc, operatorId: 'op-1' }])
        for (const answer of [await detach(body), await leave(body)]) expect(answer).toMatchObject(denied)
      // A token of all goods, at a station with staff.
      const station = { deviceId: shop.devices.pos_deactivator, purchaseId, operatorId: 'op-1' }
      expect(await shop.ok('verifySecurityTagDeactivation', station)).toMatchObject({
        deactivationAuthorized: false,
        reason: 'recalled',
      })
      expect(await shop.ok('verifySecurityTagDeactivation', { purchaseId })).toMatchObject({
        deactivationAuthorized: false,
        reason: 'recalled',
      })
      expect(await leave(unsold)).toMatchObject(denied)
      // The status stays as it is, and may be asked for.
      expect(await fetchItem({ epc })).toMatchObject({ itemStatus: 'paid', recalled: true })
      const ask = { deviceId: shop.devices.exit_gate, protectionAction: 'verify_item_status', epc }
      expect(await shop.ok('verifyProtectedItem', ask)).toMatchObject({
        authorized: true,
        itemStatus: 'exception_hold',
      })
    })
    expect(await fetchItem({ epc })).not.toHaveProperty('recalled')
    expect(await detach({ epc })).toMatchObject({ authorized: true })
    expect(await leave({ epc })).toMatchObject({ authorized: true })
  })

  it('stops goods in a basket, named by their tag or by their code, and lets others be sold', async () => {
    const bad = await shop.newItem(product, { lot: 'L-1' })
    const good = await shop.newItem(product, { lot: 'L-2' })
    const unknown = await shop.newItem(product)
    await during({ lot: 'L-1' }, async () => {
      for (const line of [
        { ean: product.ean, lot: 'L-1' },
        { ean: `010${product.ean}10L-1` },
        { epcs: [bad.epc] },
        { quantity: 2, epcs: [good.epc, bad.epc] },
      ])
        expect([line, await start(line)]).toMatchObject([line, RECALLED])
      expect((await start({ quantity: 2, epcs: [good.epc, bad.epc] })).body.details).toEqual([
        expect.objectContaining({ path: 'items[0].epcs[1]', code: 'recalled' }),
      ])
      // What is not known to be of the lot is sold.
      for (const line of [
        { ean: product.ean, lot: 'l-1' },
        { ean: product.ean },
        { epcs: [good.epc] },
        { epcs: [unknown.epc] },
        { ean: other.ean, lot: 'L-1' },
      ])
        expect([line, (await start(line)).status]).toEqual([line, 200])
    })
    expect((await start({ epcs: [bad.epc] })).status).toBe(200)
  })

  it.each([
    [{ lot: 'L-1' }, true],
    [{ lot: 'L-1', expiry: '2027-01-31' }, true],
    [{ serial: 'S1' }, true],
    [{ ean: () => `010${product.ean}1727013110L-1` }, true],
    [{ lot: 'L-1', expiry: '2027-02-01' }, false],
    [{ lot: 'L-10' }, false],
    [{ serial: 's1' }, false],
  ])('that names %j concerns a unit of lot L-1, expiry 2027-01-31 and serial S1: %s', async (fields, isStopped) => {
    const { epc } = await shop.newItem(product, { lot: 'L-1', expiry: '2027-01-31', serial: 'S1' })
    const ean = 'ean' in fields ? (fields.ean as () => string)() : product.ean
    await during({ ...fields, ean }, async () => {
      expect((await fetchItem({ epc })).recalled === true).toBe(isStopped)
      expect((await start({ epcs: [epc] })).status).toBe(isStopped ? 409 : 200)
    })
  })

  it('stops what is registered, or gets its lot, later, and frees what turns out to be of another lot', async () => {
    await during({ lot: 'L-7' }, async () => {
      const { epc } = await shop.newItem(product, { lot: 'L-7' })
      const late = await shop.newItem(product)
      expect(await fetchItem(late)).not.toHaveProperty('recalled')
      await register({ ...late, lot: 'L-7' })
      for (const tag of [{ epc }, late]) expect(await leave(tag)).toMatchObject(denied)
      await register({ epc, lot: 'L-8' })
      expect(await leave({ epc })).toMatchObject({ reason: 'item_not_paid', itemStatus: 'sellable' })
    })
  })

  it('knows the lot of a unit without a tag from the line that sold it', async () => {
    const { transactionId: purchaseId, receipt } = await shop.buy([{ ean: product.ean, quantity: 1, lot: 'L-3' }])
    const { itemLineId } = receipt.items[0]
    const body = { deviceId: shop.devices.pos_deactivator, protectionAction: 'deactivate_label', operatorId: 'op-1' }
    const byLine = () => shop.ok('verifyProtectedItem', { ...body, itemLineId })
    // An item without a lot takes that of the line that it is bound to.
    const unbound = await shop.newItem(product)
    await during({ lot: 'L-3' }, async () => {
      expect(await byLine()).toMatchObject({ authorized: false, reason: 'recalled' })
      expect(await leave({ ...unbound, purchaseId })).toMatchObject({ authorized: false, reason: 'recalled' })
      expect(await leave({ purchaseId })).toMatchObject({ authorized: false, reason: 'recalled' })
    })
    expect(await byLine()).toMatchObject({ authorized: true })
  })

  it('releases the other goods of a purchase', async () => {
    const bad = await shop.newItem(product, { lot: 'L-4' })
    const good = await shop.newItem(other)
    const { transactionId: purchaseId } = await shop.buy([
      { quantity: 1, epcs: [bad.epc] },
      { quantity: 1, epcs: [good.epc] },
    ])
    await during({ lot: 'L-4' }, async () => {
      expect(await detach({ ...bad, purchaseId })).toMatchObject(denied)
      expect(await detach({ ...good, purchaseId })).toMatchObject({ authorized: true })
      const ask = { deviceId: shop.devices.pos_deactivator, purchaseId, operatorId: 'op-1' }
      expect(await shop.ok('verifySecurityTagDeactivation', { purchaseId })).toMatchObject({
        deactivationAuthorized: true,
      })
      expect((await shop.ok('verifySecurityTagDeactivation', ask)).reason).not.toBe('recalled')
    })
  })

  it('refuses the payment of an open checkout', async () => {
    const { epc } = await shop.newItem(product, { lot: 'L-5' })
    for (const line of [{ epcs: [epc] }, { ean: product.ean, lot: 'L-5' }]) {
      const { transactionId } = (await start(line)).body
      await during({ lot: 'L-5' }, async () => {
        for (const operation of ['processPayment', 'completeTestCheckout'])
          expect(await shop.call(operation, { transactionId })).toMatchObject(RECALLED)
      })
      await shop.ok('completeTestCheckout', { transactionId, result: 'cancelled' })
    }
  })

  it('revokes tokens that were issued before: of the item, and of its whole purchase', async () => {
    const [one, two] = [await sold(), await sold()]
    const token = await detach({ epc: one.epc })
    const station = { deviceId: shop.devices.pos_deactivator, purchaseId: two.purchaseId, operatorId: 'op-1' }
    const whole = await shop.ok('verifySecurityTagDeactivation', station)
    expect(whole.deactivationAuthorized).toBe(true)
    // A recall of another lot revokes none of them.
    await during({ lot: 'L-9' }, async () => {
      const { replayProtectedNonce } = whole
      const { revoked_ms } = await shop.cloud.db.database.reads
        .selectFrom('protection_authorization')
        .select('revoked_ms')
        .where('nonce', '=', replayProtectedNonce)
        .executeTakeFirstOrThrow()
      expect(revoked_ms).toBeNull()
    })
    await during({}, async () => {
      for (const [deviceId, { authorizationToken }] of [
        [shop.devices.self_checkout_detacher, token],
        [shop.devices.pos_deactivator, whole],
      ] as const)
        expect(
          await shop.call('redeemProtectionAuthorization', { deviceId, authorizationToken, redemptionId: newEpc() }),
        ).toMatchObject({ status: 409, body: { reason: 'token_revoked' } })
    })
  })

  it('keeps the status that changed meanwhile', async () => {
    const { epc, purchaseId } = await sold()
    const reserved = await shop.newItem(product)
    await during({}, async () => {
      await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'returned' })
      await shop.ok('updateItemStatus', { storeId: shop.storeId, ...reserved, itemStatus: 'transfer_in_transit' })
    })
    expect(await leave({ epc, purchaseId })).toMatchObject({ authorized: false, itemStatus: 'returned' })
    expect(await leave(reserved)).toMatchObject({ authorized: true, itemStatus: 'transfer_in_transit' })
  })

  it('ends once, and not for what another recall stops, too', async () => {
    const { epc } = await sold({ lot: 'L-6' })
    const [first, second] = [await recall({ lot: 'L-6' }), await recall()]
    const ended = await end(first.recallId)
    expect(ended).toMatchObject({ state: 'ended', endedAt: expect.any(String), lot: 'L-6' })
    expect(await leave({ epc })).toMatchObject(denied)
    await platform.advance(60_000)
    expect(await end(first.recallId)).toMatchObject({ endedAt: ended.endedAt })
    await end(second.recallId)
    expect(await leave({ epc })).toMatchObject({ authorized: true })
  })

  it('decides about a request of the past by the recalls of that time', async () => {
    const { epc } = await sold()
    const at = (ms: number) => ({ epc, occurredAt: new Date(ms).toISOString() })
    const before = platform.clock.wall()
    await platform.advance(600_000)
    const { recallId } = await recall()
    const within = platform.clock.wall() + 60_000
    await platform.advance(600_000)
    await end(recallId)
    await platform.advance(600_000)
    expect(await leave(at(before))).toMatchObject({ authorized: true })
    expect(await leave(at(within))).toMatchObject({ authorized: false, reason: 'recalled' })
    expect(await leave(at(platform.clock.wall() - 400_000))).toMatchObject({ authorized: true })
  })

  it('holds the exception for goods that a device released although they were recalled', async () => {
    const { deviceId } = await shop.ok('registerDevice', {
      storeId: shop.storeId,
      deviceType: 'handheld_reader',
      name: 'Offline',
      supportsOfflineAuth: true,
      canDetachHardTag: true,
      canReadUhfRfid: true,
      supportedTechnologies: ['uhf_rfid'],
    })
    const { epc } = await sold()
    const { authorizationToken } = await shop.ok('verifyProtectedItem', {
      deviceId,
      protectionAction: 'detach_hard_tag',
      epc,
    })
    await during({}, async () => {
      await platform.advance(1_000)
      await shop.ok('redeemProtectionAuthorization', {
        deviceId,
        authorizationToken,
        redemptionId: newEpc(),
        outcome: 'confirmed',
      })
    })
    const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: 'released_on_hold' })
    expect(exceptions).toMatchObject([{ deviceId }])
  })

  describe('of an order for pick-up', () => {
    let ean: string
    let productId: string
    beforeAll(async () => {
      ean = newEan()
      const { storeId } = shop
      ;({ productId } = await shop.ok('insertProduct', { storeId, ean, name: 'Käse', price: 4, vat: 7, tagged: true }))
    })
    const submit = () =>
      shop.call('submitClickCollectOrder', {
        storeId: shop.storeId,
        userId: 'shopper-1',
        items: [{ productId, quantity: 1 }],
      })

    it('neither reserves nor hands over what is recalled, and lets staff pick another piece', async () => {
      const bad = await shop.newItem({ ean }, { lot: 'L-1' })
      const { body: order } = await submit()
      expect(order.items[0].reservedTags).toEqual([bad])
      const good = await shop.newItem({ ean }, { lot: 'L-2' })
      await during({ ean, lot: 'L-1' }, async () => {
        const move = (status: string, fields: Json = {}) =>
          shop.call('updateClickCollectStatus', { orderId: order.orderId, status, ...fields })
        expect((await move('confirmed')).status).toBe(200)
        expect(await move('ready')).toMatchObject(RECALLED)
        expect(await move('ready', { epcs: [bad.epc] })).toMatchObject(RECALLED)
        expect((await move('ready', { epcs: [good.epc] })).status).toBe(200)
        expect((await move('picked_up')).status).toBe(200)
        // The piece of the lot is the only one that is left, so nothing is reserved.
        const { body: another } = await submit()
        expect(another.items[0].reservedTags ?? []).toEqual([])
      })
    })

    it('refuses an order of a product that is recalled altogether, and keeps its locker shut', async () => {
      await shop.newItem({ ean })
      const deviceId = shop.devices.cabinet_unlocker
      const { body: order } = await submit()
      for (const move of [{ status: 'confirmed' }, { status: 'ready', paid: true, lockerDeviceId: deviceId }])
        await shop.ok('updateClickCollectStatus', { orderId: order.orderId, ...move })
      const unlock = { deviceId, protectionAction: 'unlock_fixture', pickupCode: order.pickupCode }
      await during({ ean }, async () => {
        expect(await submit()).toMatchObject(RECALLED)
        expect(await shop.ok('verifyProtectedItem', unlock)).toMatchObject({ authorized: false, reason: 'recalled' })
      })
      expect(await shop.ok('verifyProtectedItem', unlock)).toMatchObject({ authorized: true })
    })
  })

  describe('and its callers', () => {
    it('may name only products and stores that the key may see', async () => {
      const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
      const by = (operation: string, body: Json) => shop.cloud.call(bound, operation, body)
      const request = { ean: other.ean, reason: 'Rost' }
      expect((await by('recallProducts', { ...request, storeIds: [shop.storeId] })).status).toBe(404)
      expect((await by('recallProducts', { ...request, ean: newEan() })).status).toBe(404)
      const everywhere = await recall({ storeIds: undefined })
      expect(everywhere).not.toHaveProperty('storeIds')
      expect(await by('endRecall', { recallId: everywhere.recallId })).toMatchObject({
        status: 403,
        body: { reason: 'recall_of_other_stores' },
      })
      const here = await recall()
      expect((await by('endRecall', { recallId: here.recallId })).status).toBe(404)
      const ids = async (body: Json) =>
        ((await by('fetchRecalls', body)).body.recalls as Json[]).map(({ recallId }) => recallId)
      expect(await ids({ state: 'active' })).toEqual([everywhere.recallId])
      expect((await by('fetchRecalls', { storeId: shop.storeId })).status).toBe(404)
      for (const { recallId } of [everywhere, here]) await end(recallId)
    })

    it('recalls in its own stores if a bound key names none', async () => {
      const { epc } = await shop.newItem(product)
      await shop.ok('registerProductToStore', {
        storeId: shop.otherStoreId,
        productId: product.productId,
        price: product.price,
      })
      const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
      const { recallId, storeIds } = await shop.cloud.ok(bound, 'recallProducts', { ean: product.ean, reason: 'Rost' })
      expect(storeIds).toEqual([shop.otherStoreId])
      expect(await fetchItem({ epc })).not.toHaveProperty('recalled')
      await shop.cloud.ok(bound, 'endRecall', { recallId })
    })

    it('lists recalls in pages, newest first, and refuses more than 500', async () => {
      const ids: string[] = []
      const before = (await shop.ok('fetchRecalls', { state: 'active' })).recalls.length
      expect(before).toBe(0)
      for (let n = 0; n < 3; n++) ids.push((await recall({ lot: `P-${n}` })).recallId)
      const first = await shop.ok('fetchRecalls', { storeId: shop.storeId, state: 'active', limit: 2 })
      expect(first.recalls.map(({ lot }: Json) => lot)).toEqual(['P-2', 'P-1'])
      const second = await shop.ok('fetchRecalls', { state: 'active', limit: 2, cursor: first.nextCursor })
      expect(second.recalls.map(({ lot }: Json) => lot)).toEqual(['P-0'])
      const { database } = shop.cloud.db
      const row = await database.reads.selectFrom('product_recall').selectAll().limit(1).executeTakeFirstOrThrow()
      const rows = Array.from({ length: 497 }, (_, n) => ({ ...row, recall_id: `rcl_${n}`, ended_ms: null, lot: '?' }))
      await database.write((db) => db.insertInto('product_recall').values(rows).execute())
      expect(
        await shop.call('recallProducts', { ean: product.ean, reason: 'Rost', storeIds: [shop.storeId] }),
      ).toMatchObject({ status: 409, body: { reason: 'too_many_recalls' } })
      await database.write((db) => db.deleteFrom('product_recall').where('lot', '=', '?').execute())
      for (const recallId of ids) await end(recallId)
    })
  })

  it('revokes the token of an item whose lot only its purchase line states', async () => {
    await register({ tagId: 'HT-77', ean: product.ean })
    const { transactionId } = await shop.buy([{ ean: product.ean, quantity: 1, lot: 'L-9' }])
    const token = await detach({ tagId: 'HT-77', purchaseId: transactionId })
    expect(token).toMatchObject({ authorized: true })
    await during({ lot: 'L-9' }, async () => {
      const redeemed = await shop.call('redeemProtectionAuthorization', {
        authorizationToken: token.authorizationToken,
        deviceId: shop.devices.self_checkout_detacher,
        redemptionId: newId('rdm', platform),
      })
      expect(redeemed.body).not.toMatchObject({ status: 'redeemed' })
      expect(redeemed).toMatchObject({ status: 409, body: { reason: 'token_revoked' } })
    })
  })

  it('stops goods whose SGTIN was registered before their product', async () => {
    const ean = newEan()
    const epcs = Array.from({ length: 3 }, () => sgtinOf(ean))
    await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: epcs.map((epc) => ({ epc })) })
    await shop.ok('insertProduct', { storeId: shop.storeId, ean, name: 'Glas', price: 4, vat: 7, tagged: true })
    const { transactionId } = await shop.buy([{ ean, quantity: 1, epcs: [epcs[0]] }])
    await shop.ok('updateItemStatus', { storeId: shop.storeId, epc: epcs[1], itemStatus: 'paid' })
    await during({ ean }, async (started) => {
      expect(started).toMatchObject({ items: 3, soldItems: 2 })
      for (const epc of epcs) {
        expect(await leave({ epc })).toMatchObject(denied)
        expect(await fetchItem({ epc })).toMatchObject({ recalled: true, ean })
      }
      expect(await detach({ epc: epcs[0], purchaseId: transactionId })).toMatchObject(denied)
      expect(await start({ ean, epcs: [epcs[2]] })).toMatchObject(RECALLED)
    })
  })

  it('does not end by a way through another store, or through a return', async () => {
    const associate = await shop.cloud.user('associate')
    const as = (operation: string, body: Json) => shop.cloud.call(associate, operation, body)
    const goods = { ean: product.ean, name: 'Glas', price: 4, vat: 7 }
    await shop.ok('bulkImportProducts', { storeId: shop.otherStoreId, products: [goods, { ...goods, ean: other.ean }] })
    const { epc } = await shop.newItem(product, { lot: 'L-T' })
    const back = newEpc()
    await register({ epc: back, ean: product.ean })
    await shop.buy([{ ean: product.ean, quantity: 1, epcs: [back], lot: 'L-T' }])
    await during({ storeIds: undefined, lot: 'L-T' }, async () => {
      await as('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: 'transfer_in_transit' })
      for (const change of [{ lot: 'L-U' }, { ean: other.ean }]) {
        const moved = await as('registerProtectedItems', { storeId: shop.otherStoreId, items: [{ epc, ...change }] })
        expect(moved.body).toMatchObject({ registered: 0, errors: [{ code: 'recalled' }] })
      }
      const moved = await as('registerProtectedItems', { storeId: shop.otherStoreId, items: [{ epc }] })
      expect(moved.body).toMatchObject({ registered: 1 })
      for (const itemStatus of ['returned', 'sellable'])
        await as('updateItemStatus', { storeId: shop.storeId, epc: back, itemStatus })
      expect(await fetchItem({ epc: back })).toMatchObject({ itemStatus: 'sellable', recalled: true, lot: 'L-T' })
    })
    await during({ lot: 'L-T' }, async () => {
      await as('updateItemStatus', { storeId: shop.storeId, epc: back, itemStatus: 'transfer_in_transit' })
      const moved = await as('registerProtectedItems', { storeId: shop.otherStoreId, items: [{ epc: back }] })
      expect(moved.body).toMatchObject({ registered: 0, errors: [{ code: 'recalled' }] })
    })
  })

  it('ends for an item by other facts only if a manager states them', async () => {
    const { epc } = await shop.newItem(product, { lot: 'L-1' })
    const associate = await shop.cloud.user('associate')
    const manager = await shop.cloud.user('manager')
    const put = (who: string, fields: Json) =>
      shop.cloud.call(who, 'registerProtectedItems', { storeId: shop.storeId, items: [{ epc, ...fields }] })
    await during({ lot: 'L-1' }, async () => {
      for (const fields of [{ lot: 'L-2' }, { ean: other.ean, lot: 'L-1' }])
        expect((await put(associate, fields)).body).toMatchObject({ registered: 0, errors: [{ code: 'recalled' }] })
      expect((await put(associate, { brand: 'Nordhof' })).body).toMatchObject({ registered: 1 })
      expect(await fetchItem({ epc })).toMatchObject({ recalled: true, lot: 'L-1' })
      expect((await put(manager, { lot: 'L-2' })).body).toMatchObject({ registered: 1 })
      expect((await fetchItem({ epc })).recalled).toBeUndefined()
    })
  })

  it('publishes many items in steps, each once', async () => {
    const ean = newEan()
    await shop.ok('insertProduct', { storeId: shop.storeId, ean, name: 'Glas', price: 4, vat: 7, tagged: true })
    const items = Array.from({ length: 1_200 }, () => ({ epc: newEpc(), ean }))
    for (let n = 0; n < items.length; n += 400)
      await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: items.slice(n, n + 400) })
    const { database } = shop.cloud.db
    const { services } = shop.cloud.cloud
    const numbers = async () =>
      (await database.reads.selectFrom('protected_item').select('item_seq').where('ean', '=', ean).execute()).map(
        ({ item_seq }) => Number(item_seq),
      )
    const atFirst = Math.max(...(await numbers()))
    await during({ ean }, async (started) => {
      expect(started.items).toBeUndefined()
      expect((await numbers()).filter((seq) => seq > atFirst)).toHaveLength(1_000)
      await publishRecalls(database, services)
      const published = await numbers()
      expect(published.every((seq) => seq > atFirst)).toBe(true)
      expect(new Set(published).size).toBe(1_200)
      await publishRecalls(database, services)
      expect(await numbers()).toEqual(published)
      const { recalls } = await shop.ok('fetchRecalls', { storeId: shop.storeId, state: 'active' })
      expect(recalls[0]).toMatchObject({ recallId: started.recallId, items: 1_200, soldItems: 0 })
    })
    await publishRecalls(database, services)
  })

  it('publishes receipts with many units in smaller portions', async () => {
    const { database } = shop.cloud.db
    const { services } = shop.cloud.cloud
    for (let n = 0; n < 4; n++) await shop.buy([{ ean: product.ean, quantity: 900, lot: 'L-M' }])
    const units = async () =>
      (await database.reads.selectFrom('deny_entry').select('body').where('store_id', '=', shop.storeId).execute())
        .map(({ body }) => JSON.parse(body))
        .filter(({ kind, ended, ordinals }) => kind === 'recall' && !ended && ordinals.length === 901).length
    await during({ lot: 'L-M' }, async () => {
      expect(await units()).toBe(3)
      await publishRecalledReceipts(database, services)
      expect(await units()).toBe(4)
    })
    await publishRecalledReceipts(database, services)
  })

  it('names the units of all receipts that it stops, some with the call and the others by a job', async () => {
    const { database } = shop.cloud.db
    const { services } = shop.cloud.cloud
    const { transactionId } = await shop.buy([{ ean: product.ean, quantity: 1, lot: 'L-R' }])
    // Unit of another lot in the same purchases.
    await shop.buy([{ ean: product.ean, quantity: 1, lot: 'L-S' }])
    const of = (table: 'purchase' | 'purchase_line' | 'purchase_unit') =>
      database.reads.selectFrom(table).selectAll().where('purchase_id', '=', transactionId).execute() as Promise<Json[]>
    const copied = { purchase: await of('purchase'), line: await of('purchase_line'), unit: await of('purchase_unit') }
    for (let n = 0; n < 600; n++) {
      const ids = { purchase_id: `${transactionId}${n}`, line_id: `${copied.line[0]?.line_id}${n}` }
      const [row, line, unit] = [copied.purchase[0], copied.line[0], copied.unit[0]] as [Json, Json, Json]
      const purchase = { ...row, purchase_id: ids.purchase_id, cti: `cti-${n}`, checkout_session_id: `cs-${n}` }
      await database.write(async (db) => {
        await db
          .insertInto('purchase')
          .values(purchase as never)
          .execute()
        await db
          .insertInto('purchase_line')
          .values({ ...line, ...ids } as never)
          .execute()
        await db
          .insertInto('purchase_unit')
          .values({ ...unit, ...ids } as never)
          .execute()
      })
    }
    const entries = async (isEnd: boolean) =>
      (await database.reads.selectFrom('deny_entry').select('body').where('store_id', '=', shop.storeId).execute())
        .map(({ body }) => JSON.parse(body))
        .filter(({ kind, ended }) => kind === 'recall' && (ended === true) === isEnd)
    const before = { begin: (await entries(false)).length, end: (await entries(true)).length }
    await during({ lot: 'L-R' }, async () => {
      const atOnce = (await entries(false)).length - before.begin
      expect(atOnce).toBeLessThanOrEqual(200)
      await publishRecalledReceipts(database, services)
      await publishRecalledReceipts(database, services)
      const named = (await entries(false)).slice(before.begin)
      expect(new Set(named.map(({ cti }) => cti)).size).toBe(601)
      expect(named).toHaveLength(601)
    })
    await publishRecalledReceipts(database, services)
    expect((await entries(true)).length - before.end).toBe(601)
    const stored = await database.reads.selectFrom('product_recall').select('receipts_after').execute()
    expect(stored.filter(({ receipts_after }) => receipts_after !== null)).toEqual([])
  })

  it('revokes many tokens in portions, and redeems none of them meanwhile', async () => {
    const { database } = shop.cloud.db
    const { services } = shop.cloud.cloud
    const ean = newEan()
    await shop.ok('insertProduct', { storeId: shop.storeId, ean, name: 'Glas', price: 4, vat: 7, tagged: true })
    const { epc } = await sold({}, { ean })
    const { replayProtectedNonce: nonce } = await detach({ epc })
    const [token] = await database.reads
      .selectFrom('protection_authorization')
      .selectAll()
      .where('nonce', '=', nonce)
      .execute()
    // Later in the order of the job, because of their end.
    const copies = Array.from({ length: 350 }, (_, n) => ({
      ...token,
      nonce: `copy-${n}`,
      exp: Number(token?.exp) + 1,
    }))
    await database.write((db) =>
      db
        .insertInto('protection_authorization')
        .values(copies as never)
        .execute(),
    )
    const live = async () =>
      (
        await database.reads
          .selectFrom('protection_authorization')
          .select('nonce')
          .where('item_id', '=', token?.item_id ?? '')
          .where('revoked_ms', 'is', null)
          .execute()
      ).map((row) => row.nonce)
    await during({ ean }, async () => {
      const left = await live()
      expect([left.length > 200, left.length < 351]).toEqual([true, true])
      const redeem = {
        replayProtectedNonce: left[0],
        deviceId: shop.devices.self_checkout_detacher,
        redemptionId: 'red-1',
      }
      expect(await shop.call('redeemProtectionAuthorization', redeem)).toMatchObject({
        status: 409,
        body: { reason: 'token_revoked' },
      })
      await revokeDueTokens(database, services, coversRecalled)
      expect(await live()).toEqual([])
      expect(await database.reads.selectFrom('token_revocation').selectAll().execute()).toEqual([])
    })
    await publishRecalledReceipts(database, services)
  })

  it('of a whole product is in the policy of its stores, also of those that are opened later, until it ends', async () => {
    const { services } = shop.cloud.cloud
    const policyOf = async (storeId: string) => {
      const { database } = shop.cloud.db
      return database.write(async (db) => {
        const store = await findStore(db, storeId)
        if (!store) throw new Error('no store')
        return (await policyDocumentOf(db, store, services)).claims
      })
    }
    const before = await policyOf(shop.storeId)
    expect(before).not.toHaveProperty('recalledGtins')
    const gtins = [`0${product.ean}`]
    await during({ storeIds: undefined }, async () => {
      const now = await policyOf(shop.storeId)
      expect(now).toMatchObject({ recalledGtins: gtins, ver: before.ver + 1 })
      const { address } = await shop.ok('fetchStore', { storeId: shop.storeId })
      const { storeId } = await shop.ok('insertStore', {
        companyName: 'Deichgold',
        tradingName: 'Kiel',
        address,
        phone: '+49431555010',
      })
      expect(await policyOf(storeId)).toMatchObject({ recalledGtins: gtins })
      // A second recall of the product names it once.
      await during({}, async () => expect(await policyOf(shop.storeId)).toMatchObject({ recalledGtins: gtins }))
      await during({ expiry: '2027-01-31' }, async () => expect((await policyOf(shop.storeId)).ver).toBe(now.ver + 2))
      const recalledLots = [`${gtins[0]} L-1`]
      await during({ lot: 'L-1' }, async () => expect(await policyOf(shop.storeId)).toMatchObject({ recalledLots }))
    })
    expect(await policyOf(shop.storeId)).not.toHaveProperty('recalledGtins')
    await during({ storeIds: [shop.otherStoreId] }, async () =>
      expect(await policyOf(shop.storeId)).not.toHaveProperty('recalledGtins'),
    )
  })

  it.each(ITEM_STATUSES)('is no status: an item that is %s keeps its status in the list', async (itemStatus) => {
    const { epc } = itemStatus === 'paid' ? await sold() : await shop.newItem(product)
    if (itemStatus !== 'paid' && itemStatus !== 'sellable') {
      const path = ['exception_hold', itemStatus] as const
      for (const status of path) await shop.ok('updateItemStatus', { storeId: shop.storeId, epc, itemStatus: status })
    }
    await during({}, async () => {
      expect(await fetchItem({ epc })).toMatchObject({ itemStatus, recalled: true })
      for (const ask of [detach, leave]) expect(await ask({ epc })).toMatchObject({ reason: 'recalled' })
    })
    expect(await fetchItem({ epc })).toMatchObject({ itemStatus })
  })
})
