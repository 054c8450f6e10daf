import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { newEpc, openShop, type Shop } from '../../../support/shop.ts'

inFullSizeOnEveryDatabase('verifyProtectedItem', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const detach = (fields: Json) =>
    shop.ok('verifyProtectedItem', {
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      ...fields,
    })
  /** A paid item with all its names. */
  const paidItem = async () => {
    const product = shop.products[0]
    const tagUid = `04${newEpc().slice(-12)}`
    const tagId = `HT-${newEpc()}`
    const { epc } = await shop.newItem(product, { tagUid, tagId })
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    return { epc, tagUid, tagId, itemLineId: purchase.items[0].itemLineId, purchase }
  }

  describe('grants', () => {
    it.each(['epc', 'tagUid', 'tagId'] as const)('a paid item by its %s', async (name) => {
      const item = await paidItem()
      const answer = await detach({ [name]: item[name] })
      expect(answer).toMatchObject({
        authorized: true,
        authorizationState: 'issued',
        itemCount: 1,
        itemStatus: 'paid',
        redeemedAt: null,
      })
      expect(answer.authorizationToken).toBeTypeOf('string')
    })

    it('publishes the requested event before the granted or denied event', async () => {
      for (let n = 0; n < 6; n++) {
        const { epc } = await shop.newItem(shop.products[0])
        if (n % 2 === 0) await shop.buy([{ ean: shop.products[0].ean, quantity: 1, epcs: [epc] }])
        await shop.ok('verifyProtectedItem', {
          deviceId: shop.devices.self_checkout_detacher,
          protectionAction: 'detach_hard_tag',
          epc,
        })
        const { events } = await shop.ok('fetchProtectionEvents', { storeId: shop.storeId, limit: 500 })
        const types = events.filter((e: Json) => e.epc === epc).map((e: Json) => e.type)
        expect(types).toEqual([
          'protection.authorization.requested',
          n % 2 === 0 ? 'protection.authorization.granted' : 'protection.authorization.denied',
        ])
      }
    })

    it('accepts identifiers in any spelling', async () => {
      const { epc, tagUid } = await paidItem()
      const first = await detach({ epc: epc.toLowerCase() })
      expect(first.authorized).toBe(true)
      const colons = tagUid.replace(/..(?=.)/g, '$&:').toLowerCase()
      expect((await detach({ tagUid: colons })).replayProtectedNonce).toBe(first.replayProtectedNonce)
    })

    it('an unbound unit by its line, lowest first, each once', async () => {
      const purchase = await shop.buy([{ ean: shop.products[1].ean, quantity: 2 }])
      const [{ itemLineId }] = purchase.items
      const { deviceId } = await shop.ok('registerDevice', {
        storeId: shop.storeId,
        deviceType: 'self_checkout_detacher',
        supportedTechnologies: ['am'],
      })
      const first = await detach({ itemLineId, deviceId })
      expect(first.authorized).toBe(true)
      await shop.ok('redeemProtectionAuthorization', {
        replayProtectedNonce: first.replayProtectedNonce,
        deviceId,
        redemptionId: 'line-1',
      })
      const second = await detach({ itemLineId, deviceId })
      expect(second.authorized).toBe(true)
      expect(second.replayProtectedNonce).not.toBe(first.replayProtectedNonce)
      await shop.ok('redeemProtectionAuthorization', {
        replayProtectedNonce: second.replayProtectedNonce,
        deviceId,
        redemptionId: 'line-2',
      })
      expect(await detach({ itemLineId, deviceId })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    })

    it('a unit by its line although the previous unit is on hold', async () => {
      const [product] = shop.products
      const [held, good] = [newEpc(), newEpc()].map((epc) => `AM-${epc}`)
      await shop.ok('registerProtectedItems', {
        storeId: shop.storeId,
        items: [held, good].map((tagId) => ({ tagId, ean: product.ean, protectionTechnology: 'am' })),
      })
      const { items } = await shop.buy([{ ean: product.ean, quantity: 2, tagIds: [held, good] }])
      await shop.ok('updateItemStatus', { storeId: shop.storeId, tagId: held, itemStatus: 'exception_hold' })
      const deviceId = shop.devices.pos_deactivator
      const release = () =>
        shop.ok('verifyProtectedItem', {
          deviceId,
          protectionAction: 'deactivate_label',
          itemLineId: items[0].itemLineId,
        })
      const granted = await release()
      expect(granted).toMatchObject({ authorized: true, itemStatus: 'paid' })
      await shop.ok('redeemProtectionAuthorization', {
        replayProtectedNonce: granted.replayProtectedNonce,
        deviceId,
        redemptionId: `red-${good}`,
      })
      // The response shows the status of the unit that blocks the release.
      expect(await release()).toMatchObject({
        authorized: false,
        reason: 'item_not_paid',
        itemStatus: 'exception_hold',
      })
    })

    it('a sellable item bound to an unbound unit of its product in the purchase, once', async () => {
      const product = shop.products[2]
      const purchase = await shop.buy([{ ean: product.ean, quantity: 1 }])
      const [one, other] = [await shop.newItem(product), await shop.newItem(product)]
      expect(await detach({ epc: one.epc })).toMatchObject({ authorized: false, reason: 'item_not_paid' })
      const grant = await detach({ epc: one.epc, purchaseId: purchase.transactionId })
      expect(grant.authorized).toBe(true)
      await shop.ok('redeemProtectionAuthorization', {
        replayProtectedNonce: grant.replayProtectedNonce,
        deviceId: shop.devices.self_checkout_detacher,
        redemptionId: 'bind-1',
      })
      expect(await shop.ok('fetchProtectedItem', { storeId: shop.storeId, epc: one.epc })).toMatchObject({
        itemStatus: 'paid',
        purchaseId: purchase.transactionId,
      })
      expect(await detach({ epc: other.epc, purchaseId: purchase.transactionId })).toMatchObject({
        authorized: false,
        reason: 'item_not_paid',
      })
    })

    it('verify_item_status for any registered item, without a token or a redemption', async () => {
      const { epc } = await shop.newItem(shop.products[0])
      const answer = await shop.ok('verifyProtectedItem', {
        deviceId: shop.devices.exit_gate,
        protectionAction: 'verify_item_status',
        epc,
      })
      expect(answer).toMatchObject({
        authorized: true,
        itemStatus: 'sellable',
        authorizationToken: null,
        replayProtectedNonce: null,
      })
    })

    it('a token that plain jose verifies and that contains no customer data', async () => {
      const { epc, purchase } = await paidItem()
      const answer = await detach({ epc })
      const jwks = (await shop.cloud.get(`/.well-known/jwks/${decodeJwt(answer.authorizationToken).iss}.json`)).body
      const { payload, protectedHeader } = await jwtVerify(answer.authorizationToken, createLocalJWKSet(jwks), {
        audience: shop.devices.self_checkout_detacher,
        typ: 'pauth+jwt',
        algorithms: ['EdDSA'],
      })
      expect(protectedHeader).toEqual({ alg: 'EdDSA', kid: expect.any(String), typ: 'pauth+jwt' })
      expect(Object.keys(payload).sort()).toEqual([
        'act',
        'aud',
        'cnt',
        'eid',
        'exp',
        'iat',
        'iss',
        'ith',
        'jti',
        'kv',
        'led',
        'pv',
        'rc',
      ])
      expect(payload).toMatchObject({
        act: 'detach_hard_tag',
        cnt: 1,
        jti: answer.replayProtectedNonce,
        eid: answer.eventId,
        led: 'cloud',
      })
      expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(300)
      expect(Buffer.from(answer.authorizationToken.split('.')[1], 'base64url').toString()).not.toMatch(
        new RegExp(`shopper-1|${purchase.transactionId}|${epc}`),
      )
    })
  })

  describe('denies', () => {
    it.each([
      ['device_unknown', () => ({ deviceId: 'dev_nobody', epc: newEpc() })],
      ['item_unknown', () => ({ epc: newEpc() })],
    ] as const)('a request with reason %s', async (reason, fields) => {
      const answer = await detach(fields())
      expect(answer).toMatchObject({
        success: true,
        authorized: false,
        reason,
        authorizationToken: null,
        authorizationState: null,
        itemCount: 0,
      })
    })

    it('an unpaid item with item_not_paid and its status', async () => {
      const { epc } = await shop.newItem(shop.products[0])
      expect(await detach({ epc })).toMatchObject({
        authorized: false,
        reason: 'item_not_paid',
        itemStatus: 'sellable',
      })
    })

    it('with device_not_capable, technology_mismatch or device_revoked', async () => {
      const { epc } = await paidItem()
      expect(await detach({ epc, protectionAction: 'deactivate_label' })).toMatchObject({
        reason: 'device_not_capable',
      })
      const blind = await shop.ok('registerDevice', {
        storeId: shop.storeId,
        deviceType: 'self_checkout_detacher',
        canReadUhfRfid: false,
      })
      expect(await detach({ epc, deviceId: blind.deviceId })).toMatchObject({ reason: 'technology_mismatch' })
      await shop.ok('decommissionDevice', { deviceId: blind.deviceId })
      expect(await detach({ epc, deviceId: blind.deviceId })).toMatchObject({ reason: 'device_revoked' })
    })

    it('a device of another store of the account with store_mismatch', async () => {
      const { epc } = await paidItem()
      expect(await detach({ epc, storeId: shop.otherStoreId })).toMatchObject({
        authorized: false,
        reason: 'store_mismatch',
      })
    })

    it('a line whose unit is bound to a readable tag with tag_not_read', async () => {
      const { itemLineId } = await paidItem()
      expect(await detach({ itemLineId })).toMatchObject({ authorized: false, reason: 'tag_not_read' })
      const blind = await shop.ok('registerDevice', {
        storeId: shop.storeId,
        deviceType: 'self_checkout_detacher',
        canReadUhfRfid: false,
        canReadHfNfc: false,
      })
      await shop.ok('updateProtectionPolicy', {
        storeId: shop.storeId,
        policy: (await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })).policy,
      })
      expect(await detach({ itemLineId, deviceId: blind.deviceId })).toMatchObject({ reason: 'technology_mismatch' })
    })

    it('a line at an unattended reader with tag_not_read, unless the reader cannot read its tag', async () => {
      const product = shop.products[1]
      const bought = await shop.buy([{ ean: product.ean, quantity: 1 }])
      const unbound = { itemLineId: bought.items[0].itemLineId }
      const refused = { authorized: false, authorizationToken: null, reason: 'tag_not_read' }
      expect(await detach(unbound)).toMatchObject(refused)
      expect(await detach({ ...unbound, purchaseId: bought.transactionId })).toMatchObject(refused)
      expect(await detach({ ...unbound, operatorId: 'op-1' })).toMatchObject(refused)
      const [tagId, other] = [`am-${newEpc()}`, `no-${newEpc()}`]
      await shop.ok('registerProtectedItems', {
        storeId: shop.storeId,
        items: [
          { tagId, ean: product.ean, protectionTechnology: 'am' },
          { tagId: other, ean: product.ean },
        ],
      })
      const lineOf = async (name: string) =>
        (await shop.buy([{ ean: product.ean, quantity: 1, tagIds: [name] }])).items[0].itemLineId
      expect(await detach({ itemLineId: await lineOf(tagId) })).toMatchObject({ authorized: true })
      expect(await detach({ itemLineId: await lineOf(other) })).toMatchObject(refused)
    })

    it('an item of a cancelled purchase', async () => {
      const { epc, purchase } = await paidItem()
      await shop.ok('markPurchaseCancelled', { purchaseId: purchase.transactionId })
      expect(await detach({ epc })).toMatchObject({
        authorized: false,
        reason: 'item_not_paid',
        itemStatus: 'cancelled',
      })
    })

    it('what the policy forbids: action, workflow, value, brand; an operator overrides value and brand', async () => {
      const product = shop.products[0]
      const { epc } = await paidItem()
      const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.storeId })
      const withPolicy = (change: Json) =>
        shop.ok('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...policy, ...change } })
      await withPolicy({ allowedActionsByCategory: { [product.category]: { authorize_exit: ['automatic_exit'] } } })
      expect(await detach({ epc })).toMatchObject({ reason: 'action_not_allowed' })
      await withPolicy({ allowedActionsByCategory: { [product.category]: { detach_hard_tag: ['staff_assisted'] } } })
      expect(await detach({ epc })).toMatchObject({ reason: 'workflow_not_allowed' })
      await withPolicy({ requiresManualOverrideAboveValue: product.price })
      expect(await detach({ epc })).toMatchObject({ reason: 'manual_assistance_required' })
      expect(await detach({ epc, operatorId: 'op-7' })).toMatchObject({ authorized: true })
      await withPolicy({ requiresStaffForBrand: [product.brand.toUpperCase()] })
      const { epc: second } = await paidItem()
      expect(await detach({ epc: second })).toMatchObject({ reason: 'manual_assistance_required' })
      await withPolicy({})
    })

    it('with a trace of every check if the request has explain', async () => {
      const { epc } = await shop.newItem(shop.products[0])
      const { trace } = await detach({ epc, explain: true })
      expect(trace.at(-1)).toMatchObject({ check: 'item_not_paid', passed: false })
      expect(trace.slice(0, -1).every((step: Json) => step.passed)).toBe(true)
    })

    it('with an event that contains the reason', async () => {
      const { epc } = await shop.newItem(shop.products[0])
      const { eventId } = await detach({ epc })
      const { events } = await shop.ok('fetchProtectionEvents', {
        storeId: shop.storeId,
        type: 'protection.authorization.denied',
        limit: 500,
      })
      expect(events.find((e: Json) => e.eventId === eventId)).toMatchObject({
        reason: 'item_not_paid',
        epc,
        deviceId: shop.devices.self_checkout_detacher,
      })
    })
  })

  describe('leases', () => {
    it('return the same authorization to the same device', async () => {
      const { epc } = await paidItem()
      const [first, again] = [await detach({ epc }), await detach({ epc, explain: true })]
      expect(again.replayProtectedNonce).toBe(first.replayProtectedNonce)
      expect(again.authorizationToken).toBe(first.authorizationToken)
    })

    it('move at once from a device without an agent when another device requests the item', async () => {
      const { epc } = await paidItem()
      const first = await detach({ epc })
      const other = await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'self_checkout_detacher' })
      const second = await detach({ epc, deviceId: other.deviceId })
      expect(second.authorized).toBe(true)
      const late = await shop.call('redeemProtectionAuthorization', {
        replayProtectedNonce: first.replayProtectedNonce,
        deviceId: shop.devices.self_checkout_detacher,
        redemptionId: 'late',
      })
      expect(late).toMatchObject({ status: 409, body: { reason: 'token_revoked' } })
    })

    it('go to one of 32 concurrent devices, which redeems once', async () => {
      const { epc } = await paidItem()
      const devices = await Promise.all(
        Array.from({ length: 8 }, () =>
          shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'self_checkout_detacher' }),
        ),
      )
      const answers = await Promise.all(
        Array.from({ length: 32 }, (_, i) => detach({ epc, deviceId: devices[i % 8].deviceId, laneId: `lane-${i}` })),
      )
      const nonces = [
        ...new Set(
          answers
            .filter((a) => a.authorized)
            .map((a) => [a.replayProtectedNonce, decodeJwt(a.authorizationToken).aud] as const),
        ),
      ]
      const redeemed = await Promise.all(
        nonces.map(([replayProtectedNonce, deviceId], i) =>
          shop.call('redeemProtectionAuthorization', { replayProtectedNonce, deviceId, redemptionId: `race-${i}` }),
        ),
      )
      const used = new Set(redeemed.flatMap((r, i) => (r.status === 200 ? [nonces[i]?.[0]] : [])))
      expect(used.size).toBe(1)
    })
  })

  describe('a request about a past use', () => {
    it('gets a decision but no token and no lease', async () => {
      const { epc } = await paidItem()
      const occurredAt = new Date(Date.now() - 3_600_000).toISOString()
      // Sets the payment before that time.
      await shop.cloud.db.database.write((db) =>
        db
          .updateTable('item_move')
          .set({ at_ms: Date.now() - 7_200_000 })
          .where('epc', '=', epc)
          .execute(),
      )
      await shop.cloud.db.database.write((db) =>
        db
          .updateTable('purchase')
          .set({ completed_ms: Date.now() - 7_200_000 })
          .where('completed_ms', 'is not', null)
          .execute(),
      )
      expect(await detach({ epc, occurredAt })).toMatchObject({
        authorized: true,
        authorizationToken: null,
        replayProtectedNonce: null,
      })
      const { events } = await shop.ok('fetchProtectionEvents', {
        storeId: shop.storeId,
        type: 'protection.authorization.granted',
        limit: 500,
      })
      expect(events.some((e: Json) => e.epc === epc && e.occurredAt === occurredAt)).toBe(true)
    })

    it('is recorded once if the device sends it twice', async () => {
      const { epc } = await paidItem()
      const occurredAt = new Date(Date.now() - 3_600_000).toISOString()
      const recorded = async () => {
        const { events } = await shop.ok('fetchProtectionEvents', { storeId: shop.storeId, limit: 500 })
        return events.filter((e: Json) => e.epc === epc).map((e: Json) => e.eventId)
      }
      const first = await detach({ epc, occurredAt })
      const once = await recorded()
      expect(once).toHaveLength(2)
      expect(await detach({ epc, occurredAt })).toEqual(first)
      expect(await recorded()).toEqual(once)
    })

    it.each([
      ['over 5 minutes ahead', 6 * 60_000],
      ['over 14 days old', -15 * 86_400_000],
    ])('is rejected if its time is %s', async (_name, offset) => {
      const answer = await shop.call('verifyProtectedItem', {
        deviceId: shop.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        epc: newEpc(),
        occurredAt: new Date(Date.now() + offset).toISOString(),
      })
      expect(answer).toMatchObject({ status: 400, body: { code: 'invalid-argument' } })
    })
  })

  describe('rejects', () => {
    it.each([
      ['no identifier', {}],
      ['an invalid EPC', { epc: 'xyz' }],
      ['a UID of three bytes', { tagUid: 'A1B2C3' }],
      ['a deviceType that contradicts the registry', { epc: '3034007D00011C400000000B', deviceType: 'exit_gate' }],
      ['an unknown action', { epc: '3034007D00011C400000000B', protectionAction: 'open_sesame' }],
    ])('%s with 400', async (_name, fields) => {
      const answer = await shop.call('verifyProtectedItem', {
        deviceId: shop.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        ...fields,
      })
      expect(answer.status).toBe(400)
      expect(answer.body.details[0].path).not.toBe('')
    })

    it('names of two different items with 400', async () => {
      const [one, other] = [await paidItem(), await paidItem()]
      expect(
        (
          await shop.call('verifyProtectedItem', {
            deviceId: shop.devices.self_checkout_detacher,
            protectionAction: 'detach_hard_tag',
            epc: one.epc,
            tagUid: other.tagUid,
          })
        ).status,
      ).toBe(400)
    })

    it('an unknown purchase or store with 404', async () => {
      const verifyItem = (fields: Json) =>
        shop.call('verifyProtectedItem', {
          deviceId: shop.devices.self_checkout_detacher,
          protectionAction: 'detach_hard_tag',
          epc: newEpc(),
          ...fields,
        })
      expect((await verifyItem({ purchaseId: 'pur_nobody' })).status).toBe(404)
      expect((await verifyItem({ storeId: 'st_nobody' })).status).toBe(404)
    })
  })

  it('warns if the location in the request differs from that of the device', async () => {
    const { epc } = await paidItem()
    const { warnings } = await detach({ epc, laneId: 'lane_99' })
    expect(warnings).toEqual([expect.stringContaining('laneId is lane_2')])
  })

  it('leaves no error in the log', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
