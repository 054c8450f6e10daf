import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

inFullSizeOnEveryDatabase('operators', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const namesIn = async (storeId: string) =>
    (await shop.ok('fetchOperators', { storeId })).operators.map((operator: Json) => operator.name)

  it('belong to one store and disappear after their removal', async () => {
    const { storeId, otherStoreId } = shop
    const { operatorId } = await shop.ok('registerOperator', { storeId, name: 'Frau Petersen' })
    await shop.ok('registerOperator', { storeId, name: 'Herr Asmussen' })
    expect((await namesIn(storeId)).sort()).toEqual(['Frau Petersen', 'Herr Asmussen'])
    expect(await namesIn(otherStoreId)).toEqual([])
    await shop.ok('removeOperator', { operatorId })
    expect(await namesIn(storeId)).toEqual(['Herr Asmussen'])
    expect((await shop.call('removeOperator', { operatorId: 'op_nobody' })).status).toBe(404)
  })

  it('get a new PIN or badge, and the replaced one is in no later policy', async () => {
    const { storeId } = shop
    const { operatorId, badge } = await shop.ok('registerOperator', { storeId, name: 'Frau Tietgen', pin: '471108' })
    const verifiersNow = async () => {
      const row = shop.cloud.db.database.reads
        .selectFrom('operator')
        .select('verifiers')
        .where('operator_id', '=', operatorId)
      return JSON.parse((await row.executeTakeFirstOrThrow()).verifiers) as Json
    }
    const first = await verifiersNow()
    const renewed = await shop.ok('updateOperator', { operatorId, newBadge: true })
    expect(renewed).toMatchObject({ operatorId, name: 'Frau Tietgen', hasPin: true })
    expect(renewed.badge).not.toBe(badge)
    const second = await verifiersNow()
    expect([second.pin, second.badge.key === first.badge.key]).toEqual([first.pin, false])
    const { badge: none } = await shop.ok('updateOperator', { operatorId, pin: '908172' })
    expect(none).toBeUndefined()
    const third = await verifiersNow()
    expect([third.badge, third.pin.key === first.pin.key]).toEqual([second.badge, false])
    expect(await shop.ok('updateOperator', { operatorId, pin: null })).toMatchObject({ hasPin: false })
    expect((await verifiersNow()).pin).toBeUndefined()
    const nothing = await shop.call('updateOperator', { operatorId })
    expect([nothing.status, nothing.body.details[0].path]).toEqual([400, 'newBadge'])
    await shop.ok('removeOperator', { operatorId })
    expect((await shop.call('updateOperator', { operatorId, newBadge: true })).status).toBe(404)
  })

  it('lose the unused tokens that they approved with their removal; those of others stay', async () => {
    const { storeId } = shop
    const [product] = shop.products
    const deviceId = shop.devices.self_checkout_detacher
    const [gone, stays] = [
      await shop.ok('registerOperator', { storeId, name: 'Frau Clausen' }),
      await shop.ok('registerOperator', { storeId, name: 'Frau Hinrichs' }),
    ]
    const approve = async (operatorId: string) => {
      const { epc } = await shop.newItem(product)
      await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
      const { authorizationToken } = await shop.ok('verifyProtectedItem', {
        deviceId,
        protectionAction: 'detach_hard_tag',
        epc,
        operatorId,
      })
      return { epc, authorizationToken }
    }
    const redeem = (authorizationToken: string, key: string) => {
      const outcome = { deviceId, redemptionId: key, outcome: 'confirmed' }
      return shop.call('redeemProtectionAuthorization', { authorizationToken, ...outcome })
    }
    const [used, open, other] = [
      await approve(gone.operatorId),
      await approve(gone.operatorId),
      await approve(stays.operatorId),
    ]
    expect((await redeem(used.authorizationToken, 'before-removal')).status).toBe(200)
    await shop.ok('removeOperator', { operatorId: gone.operatorId })
    expect(await redeem(open.authorizationToken, 'after-removal')).toMatchObject({
      status: 409,
      body: { reason: 'token_revoked' },
    })
    expect((await redeem(other.authorizationToken, 'of-another')).status).toBe(200)
    // The right is free again: another operator may approve it.
    const fields = { deviceId, protectionAction: 'detach_hard_tag', epc: open.epc, operatorId: stays.operatorId }
    expect(await shop.ok('verifyProtectedItem', fields)).toMatchObject({ authorized: true })
  })

  it('approve nothing after their removal or in another store, also if an agent has not heard of it', async () => {
    const { storeId, otherStoreId } = shop
    const [product] = shop.products
    const deviceId = shop.devices.self_checkout_detacher
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId })
    await shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, requiresManualOverrideAboveValue: 0 } })
    const agent = await enrolTestAgent(shop)
    await agent.call('reportDeviceHeartbeat', { deviceId })
    const release = async (by: 'key' | 'agent', operatorId: string) => {
      const { epc } = await shop.newItem(product)
      const { transactionId: purchaseId } = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
      const fields = { deviceId, protectionAction: 'detach_hard_tag', epc, purchaseId, operatorId }
      const { status, body } = await (by === 'key' ? shop : agent).call('verifyProtectedItem', fields)
      return [status, body.reason ?? body.authorized]
    }
    const { operatorId } = await shop.ok('registerOperator', { storeId, name: 'Frau Jansen' })
    expect(await release('agent', operatorId)).toEqual([200, true])
    const { operatorId: elsewhere } = await shop.ok('registerOperator', { storeId: otherStoreId, name: 'Herr Jansen' })
    await shop.ok('removeOperator', { operatorId })
    for (const id of [operatorId, elsewhere]) {
      expect(await release('agent', id)).toEqual([200, 'manual_assistance_required'])
      expect((await release('key', id))[0]).toBe(404)
    }
    // The merchant's own staff numbers are not registered.
    expect(await release('key', 'cashier-7')).toEqual([200, true])
    await shop.ok('updateProtectionPolicy', { storeId, policy })
  })

  it('have unique names in any spelling, and a refusal names both', async () => {
    const { storeId, otherStoreId } = shop
    const { operatorId } = await shop.ok('registerOperator', { storeId, name: 'Jörg Weiß' })
    for (const name of ['Jörg Weiß', 'jörg weiß', ' JÖRG  WEISS', 'Jo\u0308rg Weiß']) {
      const message = `"${name.normalize()}" is the same name as "Jörg Weiß", an operator of this store: send a name that differs`
      expect(await shop.call('registerOperator', { storeId, name })).toMatchObject({
        status: 409,
        body: { code: 'already-exists', error: message, details: [{ path: 'name', code: 'name_taken', message }] },
      })
    }
    expect((await shop.call('registerOperator', { storeId, name: '  ' })).status).toBe(400)
    await shop.ok('registerOperator', { storeId, name: 'Jörg Weiß (Kasse)' })
    await shop.ok('registerOperator', { storeId: otherStoreId, name: 'Jörg Weiß' })
    await shop.ok('removeOperator', { operatorId })
    expect(await shop.ok('registerOperator', { storeId, name: 'jörg weiss' })).toMatchObject({ name: 'jörg weiss' })
  })

  it('have unique cards in any spelling, and no response contains a card number', async () => {
    const { storeId, otherStoreId } = shop
    const first = await shop.ok('registerOperator', { storeId, name: 'Karte eins', card: '04:a2:b3:c4:d5:e6:80' })
    expect(first).toMatchObject({ hasCard: true, hasPin: false })
    expect(JSON.stringify((await shop.ok('fetchOperators', { storeId })).operators)).not.toMatch(/04A2|04:a2|salt/)
    expect(await shop.call('registerOperator', { storeId, name: 'Karte zwei', card: '04A2B3C4D5E680' })).toMatchObject({
      status: 409,
      body: { code: 'already-exists' },
    })
    await shop.ok('registerOperator', { storeId: otherStoreId, name: 'Anderswo', card: '04A2B3C4D5E680' })
    for (const card of ['04A2B3', '04A2B3C4D', 'keine Karte', ''])
      expect((await shop.call('registerOperator', { storeId, name: 'Karte', card })).status).toBe(400)
    await shop.ok('removeOperator', { operatorId: first.operatorId })
    await shop.ok('registerOperator', { storeId, name: 'Karte zwei', card: '04 a2 b3 c4 d5 e6 80' })
  })

  it('are registered with at most two concurrent key derivations, which a repeated request skips', async () => {
    const { storeId } = shop
    const add = (
      name: string,
      fields: Json = { pin: '471108', card: randomBytes(8).toString('hex') },
      key = name.replaceAll(' ', '-'),
    ) => shop.call('registerOperator', { storeId, name, ...fields }, { 'idempotency-key': key })
    const first = await add('Kasse 0', { pin: '471108' })
    expect(first.status).toBe(200)
    const names = Array.from({ length: 12 }, (_, i) => `Kasse ${i + 1}`)
    const all = Promise.all(names.map((name) => add(name)))
    const again = await add('Kasse 0', { pin: '471108' })
    expect(again.body).toEqual(first.body)
    const answers = await all
    const refused = answers.filter(({ status }) => status !== 200)
    expect(refused.length).toBeGreaterThan(0)
    for (const { status, headers } of refused) expect([status, headers.get('retry-after')]).toEqual([503, '1'])
    const registered = names.filter((_, i) => answers[i]?.status === 200)
    expect(registered.length).toBeGreaterThanOrEqual(2)
    expect((await namesIn(storeId)).filter((name: string) => names.includes(name)).sort()).toEqual(registered.sort())
    // Without PIN and card only a badge key is derived, so there is no limit.
    expect((await Promise.all(names.map((name) => add(`${name} b`, {})))).map(({ status }) => status)).toEqual(
      names.map(() => 200),
    )
  })

  it('cannot approve after their removal', async () => {
    const { storeId } = shop
    const { products } = await shop.ok('fetchProducts', { storeId, limit: 500 })
    const wine = products.find((product: Json) => product.flags.requiresHumanVerification)
    const { operatorId } = await shop.ok('registerOperator', { storeId, name: 'Frau Petersen' })
    const { sessionId } = await shop.ok('checkIn', { storeId })
    const { transactionId } = await shop.ok('startCheckout', { sessionId, items: [{ ean: wine.ean, quantity: 1 }] })
    await shop.ok('removeOperator', { operatorId })
    expect((await shop.call('approveCheckout', { transactionId, operatorId })).status).toBe(404)
  })

  it('may be unknown to the cloud and are recorded under the sent name', async () => {
    const { storeId, otherStoreId } = shop
    const { products } = await shop.ok('fetchProducts', { storeId, limit: 500 })
    const wine = products.find((product: Json) => product.flags.requiresHumanVerification)
    const startCheckout = async () => {
      const { sessionId } = await shop.ok('checkIn', { storeId })
      return (await shop.ok('startCheckout', { sessionId, items: [{ ean: wine.ean, quantity: 1 }] })).transactionId
    }
    const approvedBy = async (transactionId: string) =>
      (
        await shop.cloud.db.database.reads
          .selectFrom('purchase')
          .select('approved_by')
          .where('purchase_id', '=', transactionId)
          .executeTakeFirstOrThrow()
      ).approved_by
    const first = await startCheckout()
    expect(await shop.ok('approveCheckout', { transactionId: first, operatorId: 'Kasse 7, Jörg' })).toMatchObject({
      status: 'PENDING_PAYMENT',
    })
    expect(await approvedBy(first)).toBe('Kasse 7, Jörg')
    // Only operators of this store may approve. A key for another store does not learn which operators exist.
    const second = await startCheckout()
    const { operatorId } = await shop.ok('registerOperator', { storeId: otherStoreId, name: 'Herr Ohlsen' })
    expect((await shop.call('approveCheckout', { transactionId: second, operatorId })).status).toBe(404)
    const bound = await shop.cloud.key('secret', 'test', { storeIds: [storeId] })
    expect(await shop.cloud.ok(bound, 'approveCheckout', { transactionId: second, operatorId })).toMatchObject({
      status: 'PENDING_PAYMENT',
    })
    await shop.ok('completeTestCheckout', { transactionId: first })
    expect(await shop.ok('refundPayment', { purchaseId: first, confirmedBy: 'cashier-7' })).toMatchObject({
      status: 'CANCELLED',
      refundStatus: 'done',
    })
  })
})
