import { afterEach, describe, expect, it } from 'vitest'
import { openReceipt } from '../../../policy/receipts/receipt-token.ts'
import { atLanes } from '../../support/at-lanes.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

const FREE = {
  detach_hard_tag: ['self_service'],
  deactivate_label: ['staff_assisted'],
  authorize_exit: ['automatic_exit'],
}

describe('an offline decision about an item', () => {
  let store: TestStore
  afterEach(() => store.stop())
  const { device, release, leave, detach, offline, events, product } = atLanes(() => store)

  const setPolicy = async (rules: Json) => {
    const { storeId } = store.shop
    const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
    const next = {
      ...policy,
      allowedActionsByCategory: { '*': FREE },
      requiresManualOverrideAboveValue: null,
      ...rules,
    }
    const { version } = await store.drive(store.shop.ok('updateProtectionPolicy', { storeId, policy: next }))
    expect(version).toBeGreaterThan(1)
    await store.until('the policy', () => {
      const known = store.agent.trust.policy?.policy
      return JSON.stringify(known?.allowedActionsByCategory) === JSON.stringify(next.allowedActionsByCategory)
    })
  }
  const newItem = (fields: Json) => store.drive(store.shop.newItem(product(), fields))
  /** Buys items with these tags. Disconnects the agent after it has received the payment. */
  const buyAndCut = async (...epcs: string[]) => {
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: epcs.length, epcs }])
    await store.until('the replica', () => epcs.every((epc) => store.agent.items.find('epc', epc)?.status === 'paid'))
    await offline()
    return { purchase, receipt }
  }
  const factsOf = (receipt: string) => {
    const opened = openReceipt(receipt, { keys: store.agent.trust.keys })
    return opened.ok ? opened.claims.facts : undefined
  }
  /** Empties the replica. The agent cannot fetch items while it is offline. */
  const forgetItems = () => store.agent.items.reset()

  it('answers 400 to names of two items, as the cloud does', async () => {
    store = await openStore()
    const [{ epc }] = [await newItem({}), await newItem({ tagId: 'HT-9' })]
    const { receipt } = await buyAndCut(epc)
    await store.until('the replica', () => store.agent.items.find('tagId', 'HT-9') !== undefined)
    const body = { deviceId: device('station'), protectionAction: 'deactivate_label', epc, tagId: 'HT-9' }
    const inCloud = await store.drive(store.shop.call('verifyProtectedItem', body))
    for (const presented of [{ receipt }, {}])
      expect(await store.local('/v1/authorize', { method: 'POST', body: { ...body, ...presented } })).toMatchObject({
        status: inCloud.status,
        body: { code: 'invalid-argument', details: [{ path: 'tagId', message: inCloud.body.details[0].message }] },
      })
    expect(inCloud.status).toBe(400)
  })

  it.each(['its replica', 'the receipt'])('denies a forbidden category at self-service by %s', async (source) => {
    store = await openStore()
    await setPolicy({ allowedActionsByCategory: { '*': FREE, tabak: { authorize_exit: ['automatic_exit'] } } })
    const [{ epc: forbidden }, { epc: allowed }] = [await newItem({ category: 'tabak' }), await newItem({})]
    const { receipt } = await buyAndCut(forbidden, allowed)
    if (source === 'the receipt') forgetItems()
    const refused = await detach({ receipt, epc: forbidden })
    expect(refused).toMatchObject({ authorized: false, reason: 'action_not_allowed', offline: true, outcome: null })
    expect(refused).not.toHaveProperty('unknownFacts')
    expect(store.pulses('detacher')).toBe(0)
    expect(await detach({ receipt, epc: allowed })).toMatchObject({ authorized: true, outcome: 'confirmed' })
  })

  it.each(['its replica', 'the receipt'])('requires staff only for the listed brand by %s', async (source) => {
    store = await openStore()
    await setPolicy({ requiresStaffForBrand: ['Luxus'] })
    const [{ epc: luxury }, { epc: other }] = [await newItem({ brand: 'Luxus' }), await newItem({})]
    const { receipt } = await buyAndCut(luxury, other)
    if (source === 'the receipt') forgetItems()
    expect(await detach({ receipt, epc: luxury })).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
    })
    expect(await detach({ receipt, epc: other })).toMatchObject({ authorized: true, offline: true })
  })

  const STAFF_PRICE = { priceUnit: 100, priceReason: 'staff' }
  it.each([
    ['its replica', {}],
    ['the receipt', {}],
    ['its replica', STAFF_PRICE],
    ['the receipt', STAFF_PRICE],
  ])('compares the value of the item with the threshold by %s, sold with %o', async (source, price) => {
    store = await openStore()
    const [cheap, dear] = [product(), store.shop.products.toSorted((a, b) => b.price - a.price)[0] ?? {}]
    const threshold = cheap.price + 1
    expect(dear.price).toBeGreaterThan(threshold)
    await setPolicy({ requiresManualOverrideAboveValue: threshold })
    const [{ epc: low }, { epc: high }] = [await newItem({}), await store.drive(store.shop.newItem(dear))]
    const { receipt } = await store.buy([
      { ean: cheap.ean, quantity: 1, epcs: [low] },
      { ean: dear.ean, quantity: 1, epcs: [high], ...price },
    ])
    await store.until('the replica', () => store.agent.items.find('epc', high)?.status === 'paid')
    await offline()
    if (source === 'the receipt') forgetItems()
    expect(await detach({ receipt, epc: low })).toMatchObject({ authorized: true, offline: true })
    expect(await detach({ receipt, epc: high })).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
    })
  })

  it('uses the facts of all units if only a receipt is presented', async () => {
    store = await openStore()
    await setPolicy({
      allowedActionsByCategory: { '*': FREE, tabak: { deactivate_label: ['staff_assisted'] } },
      requiresStaffForBrand: ['Luxus'],
    })
    const [{ epc: forbidden }, { epc: luxury }, { epc: free }] = [
      await newItem({ category: 'tabak' }),
      await newItem({ brand: 'Luxus' }),
      await newItem({}),
    ]
    const { receipt } = await buyAndCut(forbidden, luxury, free)
    // The policy allows only one of the three units to leave.
    expect(await leave({ receipt })).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
    expect(await leave({ receipt })).toMatchObject({ authorized: false })
    // The policy allows two units to be released without an operator.
    expect(await release(receipt)).toMatchObject({ authorized: true })
    expect(await release(receipt)).toMatchObject({ authorized: true })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
  })

  it('applies the strictest rule to facts that replica and receipt lack, and names them in answer and event', async () => {
    store = await openStore()
    await setPolicy({})
    // These brands are too long for the QR code. So the receipt has numbers of names in this policy, not in the next.
    const epcs: string[] = []
    for (let n = 0; n < 8; n++) epcs.push((await newItem({ brand: `Marke ${n} ${'x'.repeat(60)}` })).epc)
    const { receipt } = await store.buy([{ ean: product().ean, quantity: epcs.length, epcs }])
    await store.until('the replica', () => epcs.every((epc) => store.agent.items.find('epc', epc)?.status === 'paid'))
    await setPolicy({ allowedActionsByCategory: { '*': FREE, tabak: {} }, requiresStaffForBrand: ['Luxus'] })
    await offline()
    expect(factsOf(receipt)?.[0]).toMatchObject({ category: 0, brand: 0 })
    const [first = '', second = ''] = epcs
    const known = await detach({ receipt, epc: first })
    expect(known).toMatchObject({ authorized: true, offline: true })
    expect(known).not.toHaveProperty('unknownFacts')
    forgetItems()
    expect(await detach({ receipt, epc: second })).toMatchObject({
      authorized: false,
      reason: 'action_not_allowed',
      offline: true,
      unknownFacts: ['category'],
    })
    expect(
      await store.authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', receipt }),
    ).toMatchObject({ authorized: false, unknownFacts: ['category'] })
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    const denied = (await events({ type: 'protection.authorization.denied' })).filter((event) => event.offline)
    expect(denied.map((event) => event.unknownFacts)).toEqual([['category'], ['category']])
  })

  it('signs the price that was paid, not the list price of the item', async () => {
    store = await openStore()
    const { epc } = await newItem({ price: 999, brand: 'Nordhof' })
    const { receipt } = await buyAndCut(epc)
    const cents = Math.round(product().price * 100)
    expect(factsOf(receipt)).toEqual([{ category: 'Bekleidung', brand: 'Nordhof', priceCent: cents }])
    expect(store.agent.items.find('epc', epc)?.priceCent).toBe(cents)
  })
})
