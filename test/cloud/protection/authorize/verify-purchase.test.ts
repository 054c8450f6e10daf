import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'

onEveryDatabase('verifySecurityTagDeactivation', (kind) => {
  let shop: Shop
  let product: Json
  beforeAll(async () => {
    shop = await openShop(kind)
    product = shop.products[0]
  })
  afterAll(() => shop.stop())

  const verify = (fields: Json) => shop.ok('verifySecurityTagDeactivation', fields)
  const receiptOf = async (purchase: Json) =>
    (await shop.ok('generateReceiptQR', { purchaseId: purchase.transactionId })).url as string
  const redeemAll = async (grant: Json, deviceId: string, outcome = 'confirmed') => {
    for (let step = 1; step <= grant.itemCount; step++) {
      await shop.ok('redeemProtectionAuthorization', {
        authorizationToken: grant.authorizationToken,
        deviceId,
        redemptionId: `${grant.replayProtectedNonce}-${step}`,
        outcome,
      })
    }
  }

  it('returns a paid purchase, and no token without a device', async () => {
    const purchase = await shop.buy([{ ean: product.ean, quantity: 3 }])
    const answer = await verify({ purchaseId: purchase.transactionId })
    expect(answer).toMatchObject({
      status: 'paid',
      securityTagMode: 'rfid',
      securityTagStatus: 'pending',
      deactivationAuthorized: true,
      authorizationToken: null,
      items: [{ itemLineId: purchase.items[0].itemLineId, quantity: 3, taggedUnits: 3, openUnits: 3 }],
      storeData: { id: shop.storeId, mode: 'demo' },
    })
    expect(JSON.stringify(answer)).not.toContain('shopper-1')
  })

  it('issues a staff station one token for all open units, then for the rest', async () => {
    const purchase = await shop.buy([
      { ean: product.ean, quantity: 2 },
      { ean: shop.products[1].ean, quantity: 1 },
    ])
    const deviceId = shop.devices.pos_deactivator
    const grant = await verify({ receiptToken: await receiptOf(purchase), deviceId })
    expect(grant).toMatchObject({
      deactivationAuthorized: true,
      protectionAction: 'deactivate_label',
      itemCount: 3,
      authorizationState: 'issued',
    })
    await shop.ok('redeemProtectionAuthorization', {
      authorizationToken: grant.authorizationToken,
      deviceId,
      redemptionId: `${purchase.transactionId}-1`,
      outcome: 'confirmed',
    })
    expect(await verify({ purchaseId: purchase.transactionId, deviceId })).toMatchObject({
      replayProtectedNonce: grant.replayProtectedNonce,
      itemCount: 2,
      authorizationState: 'redeemed',
    })
  })

  it('sets deactivated with the last confirmed unit, publishes one event and authorizes no more', async () => {
    const purchase = await shop.buy([{ ean: product.ean, quantity: 2 }])
    const deviceId = shop.devices.pos_deactivator
    await redeemAll(await verify({ purchaseId: purchase.transactionId, deviceId }), deviceId)
    expect(await shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
    expect(await verify({ purchaseId: purchase.transactionId, deviceId })).toMatchObject({
      deactivationAuthorized: false,
      reason: 'already_redeemed',
      authorizationToken: null,
    })
    const sent = await shop.cloud.db.database.reads
      .selectFrom('outbox_event')
      .selectAll()
      .where('type', '=', 'securityTag.deactivated')
      .execute()
    expect(sent.filter((e) => e.data.includes(purchase.transactionId))).toHaveLength(1)
  })

  it('allows a second try after a failure, then requires staff', async () => {
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
    const deviceId = shop.devices.pos_deactivator
    const verifyAgain = (fields: Json = {}) => verify({ purchaseId: purchase.transactionId, deviceId, ...fields })
    await redeemAll(await verifyAgain(), deviceId, 'failed')
    const second = await verifyAgain()
    expect(second.deactivationAuthorized).toBe(true)
    await redeemAll(second, deviceId, 'failed')
    expect(await verifyAgain()).toMatchObject({ deactivationAuthorized: false, reason: 'manual_assistance_required' })
    expect(await verifyAgain({ operatorId: 'op-1' })).toMatchObject({ deactivationAuthorized: true })
  })

  it('leaves a unit with an unknown outcome to staff and raises an exception', async () => {
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
    const deviceId = shop.devices.pos_deactivator
    await redeemAll(await verify({ purchaseId: purchase.transactionId, deviceId }), deviceId, 'unknown')
    expect(await verify({ purchaseId: purchase.transactionId, deviceId })).toMatchObject({
      deactivationAuthorized: false,
      reason: 'manual_assistance_required',
    })
    const { events } = await shop.ok('fetchProtectionEvents', {
      storeId: shop.storeId,
      type: 'protection.exception.raised',
      purchaseId: purchase.transactionId,
    })
    expect(events).toEqual([expect.objectContaining({ reason: 'outcome_unknown' })])
  })

  it.each([
    ['unknown', ['unknown']],
    ['failed twice', ['failed', 'failed']],
  ])('leaves a unit whose tries have %s to staff, also after an unused token', async (_name, outcomes) => {
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
    const deviceId = shop.devices.pos_deactivator
    const verifyAgain = (fields: Json = {}) => verify({ purchaseId: purchase.transactionId, deviceId, ...fields })
    for (const outcome of outcomes) await redeemAll(await verifyAgain(), deviceId, outcome)
    const granted = await verifyAgain({ operatorId: 'op-1' })
    expect(granted.deactivationAuthorized).toBe(true)
    expect(await verifyAgain()).toMatchObject({ deactivationAuthorized: false, reason: 'manual_assistance_required' })
    expect(await verifyAgain({ operatorId: 'op-1' })).toMatchObject({
      replayProtectedNonce: granted.replayProtectedNonce,
    })
    await endLeases(granted.replayProtectedNonce)
    expect(await verifyAgain()).toMatchObject({ deactivationAuthorized: false, reason: 'manual_assistance_required' })
    expect(await verifyAgain({ operatorId: 'op-1' })).toMatchObject({ deactivationAuthorized: true })
  })

  it('grants the unit again after resolveRedemption with failed, also beside a token', async () => {
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
    const deviceId = shop.devices.pos_deactivator
    const verifyAgain = (fields: Json = {}) => verify({ purchaseId: purchase.transactionId, deviceId, ...fields })
    const first = await verifyAgain()
    await redeemAll(first, deviceId, 'unknown')
    const granted = await verifyAgain({ operatorId: 'op-1' })
    expect(await verifyAgain()).toMatchObject({ reason: 'manual_assistance_required' })
    const { operatorId } = await shop.ok('registerOperator', { storeId: shop.storeId, name: 'Frau Petersen' })
    await shop.ok('resolveRedemption', {
      redemptionId: `${first.replayProtectedNonce}-1`,
      outcome: 'failed',
      operatorId,
    })
    expect(await verifyAgain()).toMatchObject({
      deactivationAuthorized: true,
      replayProtectedNonce: granted.replayProtectedNonce,
    })
  })

  /** Ends the leases as their expiry would. */
  const endLeases = async (nonce: string) => {
    const { database } = shop.cloud.db
    await database.write(async (db) => {
      await db.updateTable('unit_right').set({ until_ms: 1 }).where('nonce', '=', nonce).execute()
      await db.updateTable('protection_authorization').set({ exp: 1, iat: 0 }).where('nonce', '=', nonce).execute()
    })
  }

  it('requires item requests from a device that reads tags, and authorizes nothing until then', async () => {
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
    const deviceId = shop.devices.self_checkout_detacher
    const answer = await verify({ purchaseId: purchase.transactionId, deviceId })
    expect(answer).toMatchObject({
      status: 'paid',
      deactivationAuthorized: false,
      authorizationToken: null,
      itemCount: 0,
      reason: 'tag_not_read',
    })
    const { events } = await shop.ok('fetchProtectionEvents', {
      storeId: shop.storeId,
      purchaseId: purchase.transactionId,
    })
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'protection.authorization.denied', reason: 'tag_not_read' }),
    )
    // The purchase itself may be released: without a device the answer has the meaning of the specification.
    expect(await verify({ purchaseId: purchase.transactionId })).toMatchObject({ deactivationAuthorized: true })
  })

  describe('at a device that reads tags, when the policy forbids the release', () => {
    const rules: [string, Json][] = [
      ['no entry for self service', { allowedActionsByCategory: {} }],
      [
        'an action that the policy does not list',
        { allowedActionsByCategory: { '*': { unlock_fixture: ['self_service'] } } },
      ],
      ['staff only', { allowedActionsByCategory: { '*': { detach_hard_tag: ['staff_assisted'] } } }],
      [
        'a brand that needs staff',
        {
          allowedActionsByCategory: { '*': { detach_hard_tag: ['self_service'] } },
          requiresStaffForBrand: ['Nordhof', 'Fadenfroh', 'Luxus'],
        },
      ],
    ]
    it.each(rules)('gives the reason of the item path: %s', async (_name, rule) => {
      const { storeId } = shop
      const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
      const deviceId = shop.devices.self_checkout_detacher
      const { epc } = await shop.newItem(product, { brand: 'Luxus' })
      const { transactionId: purchaseId } = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
      await shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, ...rule } })
      try {
        const { reason } = await shop.ok('verifyProtectedItem', { deviceId, protectionAction: 'detach_hard_tag', epc })
        expect(['action_not_allowed', 'workflow_not_allowed', 'manual_assistance_required']).toContain(reason)
        expect(await verify({ purchaseId, deviceId })).toMatchObject({ deactivationAuthorized: false, reason })
      } finally {
        await shop.ok('updateProtectionPolicy', { storeId, policy })
      }
    })

    it('asks for the tags if it forbids only some of the goods', async () => {
      const { storeId } = shop
      const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
      const deviceId = shop.devices.self_checkout_detacher
      const [{ epc: dear }, { epc: plain }] = [
        await shop.newItem(product, { brand: 'Luxus' }),
        await shop.newItem(product, { brand: 'Schlicht' }),
      ]
      const { transactionId: purchaseId } = await shop.buy([{ ean: product.ean, quantity: 2, epcs: [dear, plain] }])
      await shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, requiresStaffForBrand: ['Luxus'] } })
      try {
        expect(await verify({ purchaseId, deviceId })).toMatchObject({ reason: 'tag_not_read' })
      } finally {
        await shop.ok('updateProtectionPolicy', { storeId, policy })
      }
    })
  })

  describe('for a tag-reading device that can read none of the open tags', () => {
    const buyItems = async (items: Json[]) => {
      const { errors } = await shop.ok('registerProtectedItems', {
        storeId: shop.storeId,
        items: items.map((item) => ({ ean: product.ean, ...item })),
      })
      expect(errors).toEqual([])
      const { tagIds, epcs, tagUids } = {
        tagIds: items.flatMap((i) => (i.epc || i.tagUid ? [] : [i.tagId])),
        epcs: items.flatMap((i) => i.epc ?? []),
        tagUids: items.flatMap((i) => i.tagUid ?? []),
      }
      return (
        await shop.buy([
          {
            ean: product.ean,
            quantity: items.length,
            ...(tagIds.length && { tagIds }),
            ...(epcs.length && { epcs }),
            ...(tagUids.length && { tagUids }),
          },
        ])
      ).transactionId as string
    }
    const device = async (fields: Json) =>
      (await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'self_checkout_detacher', ...fields }))
        .deviceId as string
    const wide = { deactivationAuthorized: true, authorizationToken: expect.any(String) }
    const perItem = { deactivationAuthorized: false, authorizationToken: null, reason: 'tag_not_read' }
    const tag = () => `am-${newEpc()}`

    it('issues one token for all AM tags and locks, which no reader can read', async () => {
      const purchaseId = await buyItems([
        { tagId: tag(), protectionTechnology: 'am' },
        { tagId: tag(), protectionTechnology: 'mechanical_lock' },
      ])
      expect(await verify({ purchaseId, deviceId: await device({}) })).toMatchObject({ ...wide, itemCount: 2 })
    })

    it('issues one token if all tags need the other kind of reader', async () => {
      const purchaseId = await buyItems([{ epc: newEpc() }])
      expect(
        await verify({ purchaseId, deviceId: await device({ supportedTechnologies: ['uhf_rfid'] }) }),
      ).toMatchObject(perItem)
      expect(await verify({ purchaseId, deviceId: await device({ supportedTechnologies: ['hf_nfc'] }) })).toMatchObject(
        { ...wide, itemCount: 1 },
      )
    })

    it('requires item requests as soon as one tag may be readable', async () => {
      const deviceId = await device({})
      expect(
        await verify({
          purchaseId: await buyItems([{ tagId: tag(), protectionTechnology: 'am' }, { epc: newEpc() }]),
          deviceId,
        }),
      ).toMatchObject(perItem)
      const tagId = tag()
      const purchaseId = await buyItems([{ tagId }])
      expect(await verify({ purchaseId, deviceId })).toMatchObject(perItem)
      // A later registration of the tag changes the answer.
      await shop.ok('registerProtectedItems', { storeId: shop.storeId, items: [{ tagId, protectionTechnology: 'am' }] })
      expect(await verify({ purchaseId, deviceId })).toMatchObject(wide)
      const unbound = await shop.buy([{ ean: product.ean, quantity: 1 }])
      expect(await verify({ purchaseId: unbound.transactionId, deviceId })).toMatchObject(perItem)
    })
  })

  it.each([
    [
      'unpaid',
      'PENDING_PAYMENT',
      async () => {
        const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
        return shop.ok('startCheckout', { sessionId, items: [{ ean: product.ean, quantity: 1 }] })
      },
    ],
    [
      'cancelled',
      'CANCELLED',
      async () => {
        const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
        return shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId })
      },
    ],
  ] as const)('authorizes nothing for a purchase that is %s', async (_name, status, make) => {
    const purchase = await make()
    expect(await verify({ purchaseId: purchase.transactionId, deviceId: shop.devices.pos_deactivator })).toMatchObject({
      status,
      deactivationAuthorized: false,
      authorizationToken: null,
      reason: 'item_not_paid',
    })
    if (status !== 'CANCELLED') return
    // Who shows the receipt is not told that the goods are unpaid.
    const { receipt_token: receiptToken } = await shop.cloud.db.database.reads
      .selectFrom('purchase')
      .select('receipt_token')
      .where('purchase_id', '=', purchase.transactionId)
      .executeTakeFirstOrThrow()
    const byReceipt = await verify({ receiptToken, deviceId: shop.devices.pos_deactivator })
    expect(byReceipt).toMatchObject({ deactivationAuthorized: false, reason: 'token_revoked' })
  })

  it('tells of a paid purchase without tagged goods that there is nothing to release, and opens a barrier for it', async () => {
    const { storeId } = shop
    const { products } = await shop.ok('fetchProducts', { storeId, limit: 500 })
    const plain = products.find((p: Json) => !p.tagged)
    const { sessionId } = await shop.ok('checkIn', { storeId })
    const { transactionId: purchaseId, items } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: plain.ean, quantity: 1 }],
    })
    const deviceId = shop.devices.pos_deactivator
    const itemLineId = items[0].itemLineId
    const askAll = async () => [
      await verify({ purchaseId, deviceId }),
      await verify({ purchaseId, deviceId: shop.devices.self_checkout_detacher }),
      await shop.ok('verifyProtectedItem', { deviceId, protectionAction: 'deactivate_label', itemLineId }),
      await shop.ok('verifyProtectedItem', {
        deviceId: shop.devices.exit_gate,
        protectionAction: 'authorize_exit',
        purchaseId,
      }),
    ]
    for (const answer of await askAll()) expect(answer).toMatchObject({ reason: 'item_not_paid' })
    await shop.ok('completeTestCheckout', { transactionId: purchaseId })
    const answers = await askAll()
    expect(answers.pop()).toMatchObject({ authorized: true, itemCount: 1 })
    for (const answer of answers)
      expect(answer).toMatchObject({ reason: 'no_tagged_goods', authorizationToken: null, itemCount: 0 })
  })

  it('accepts a receipt in every spelling that scanners produce and rejects other codes', async () => {
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
    const url = await receiptOf(purchase)
    const token = url.slice(url.lastIndexOf('/') + 1)
    const swapped = token.replace(/[YZ]/g, (c) => (c === 'Y' ? 'Z' : 'Y'))
    for (const receiptToken of [url, token, token.toLowerCase(), swapped]) {
      expect(await verify({ receiptToken })).toMatchObject({ status: 'paid' })
    }
    for (const receiptToken of [
      `${token}AAAAAAAA`,
      token.slice(0, -20),
      'nonsense',
      token.replace(/.{8}$/, 'AAAAAAAA'),
    ]) {
      expect((await shop.call('verifySecurityTagDeactivation', { receiptToken })).status).toBe(404)
    }
  })

  it('rejects missing, unknown and contradictory names with 400 or 404', async () => {
    const call = (body: Json) => shop.call('verifySecurityTagDeactivation', body)
    expect((await call({})).status).toBe(400)
    expect((await call({ purchaseId: 'pur_nobody' })).status).toBe(404)
    expect((await call({ purchaseId: 'not an id \u00e4' })).status).toBe(404)
    const [one, other] = [
      await shop.buy([{ ean: product.ean, quantity: 1 }]),
      await shop.buy([{ ean: product.ean, quantity: 1 }]),
    ]
    expect((await call({ purchaseId: one.transactionId, receiptToken: await receiptOf(other) })).status).toBe(400)
  })

  it('removes nothing in a store without security tags', async () => {
    await shop.cloud.db.database.write((db) =>
      db.updateTable('store').set({ security_tag_mode: 'none' }).where('store_id', '=', shop.otherStoreId).execute(),
    )
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.otherStoreId })
    const { transactionId } = await shop.ok('startCheckout', { sessionId, items: [{ ean: product.ean, quantity: 1 }] })
    const paid = await shop.ok('completeTestCheckout', { transactionId })
    expect(paid.securityTagStatus).toBeUndefined()
    expect(await verify({ purchaseId: transactionId })).toMatchObject({
      status: 'paid',
      securityTagMode: 'none',
      deactivationAuthorized: false,
    })
  })

  describe('authorize_exit', () => {
    it('by receipt opens once, and sets the purchase to UNLOADED', async () => {
      const purchase = await shop.buy([{ ean: product.ean, quantity: 2 }])
      const verifyExit = async () =>
        shop.ok('verifyProtectedItem', {
          deviceId: shop.devices.exit_gate,
          protectionAction: 'authorize_exit',
          receiptToken: await receiptOf(purchase),
        })
      const grant = await verifyExit()
      expect(grant).toMatchObject({ authorized: true, itemCount: 1 })
      await redeemAll(grant, shop.devices.exit_gate)
      expect(await verifyExit()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
      expect(await shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
        status: 'UNLOADED',
        securityTagStatus: 'pending',
      })
      expect(await verify({ purchaseId: purchase.transactionId })).toMatchObject({ status: 'paid' })
    })

    it('does not use up the release right, nor the reverse', async () => {
      const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
      const deviceId = shop.devices.pos_deactivator
      await redeemAll(await verify({ purchaseId: purchase.transactionId, deviceId }), deviceId)
      const exit = await shop.ok('verifyProtectedItem', {
        deviceId: shop.devices.exit_gate,
        protectionAction: 'authorize_exit',
        purchaseId: purchase.transactionId,
      })
      expect(exit).toMatchObject({ authorized: true, itemCount: 1 })
    })
  })

  describe('cancelling a paid purchase', () => {
    it('revokes open authorizations, refunds, and frees the goods', async () => {
      const { epc } = await shop.newItem(product)
      const purchase = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
      const grant = await shop.ok('verifyProtectedItem', {
        deviceId: shop.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        epc,
      })
      expect(
        await shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId, reason: 'changed her mind' }),
      ).toMatchObject({ status: 'CANCELLED', refundStatus: 'done' })
      const late = await shop.call('redeemProtectionAuthorization', {
        replayProtectedNonce: grant.replayProtectedNonce,
        deviceId: shop.devices.self_checkout_detacher,
        redemptionId: 'late',
      })
      expect(late).toMatchObject({ status: 409, body: { reason: 'token_revoked' } })
      expect(await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).toMatchObject({
        itemStatus: 'cancelled',
      })
      expect((await shop.call('markPurchaseCancelled', { purchaseId: purchase.transactionId })).status).toBe(409)
    })

    it('puts released goods on hold and raises an exception', async () => {
      const { epc } = await shop.newItem(product)
      const purchase = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
      const deviceId = shop.devices.self_checkout_detacher
      await redeemAll(
        await shop.ok('verifyProtectedItem', { deviceId, protectionAction: 'detach_hard_tag', epc }),
        deviceId,
      )
      await shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId })
      expect(await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc })).toMatchObject({
        itemStatus: 'exception_hold',
      })
      const { events } = await shop.ok('fetchProtectionEvents', {
        storeId: shop.storeId,
        purchaseId: purchase.transactionId,
        type: 'protection.exception.raised',
      })
      expect(events).toEqual([expect.objectContaining({ reason: 'cancelled_after_release' })])
    })
  })

  it('leaves no error in the log', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
