import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { EVENT_TYPES, TEST_EVENT } from '../../../../cloud/platform/webhooks/event-types.ts'
import type { Json } from '../../../support/cloud.ts'
import { CONNECTOR_EVENTS } from '../../../docs/coverage.ts'
import { liveStores } from '../../../support/live-store.ts'
import { until } from '../../../support/receiver.ts'
import { newEan, openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'

/**
 * Compares every kind of event with its published schema. The events come from a sandbox and a live store whose
 * webhooks subscribe to all events.
 */
describe('events', () => {
  let shop: Shop
  let published: Record<string, Json>
  const posted = new Map<string, Json[]>()
  const events = [...EVENT_TYPES.keys()].filter((name) => name !== TEST_EVENT)

  beforeAll(async () => {
    shop = await openShop('sqlite', {
      outgoing: {
        async send({ body }) {
          const event: Json = body === undefined ? {} : JSON.parse(body)
          if (typeof event.event === 'string') posted.set(event.event, [...(posted.get(event.event) ?? []), event])
          return { status: 200, headers: {}, body: new Uint8Array(), isCut: false }
        },
      },
    })
    published = (await shop.cloud.get('/openapi.json')).body['x-webhooks']
    const { webhookId } = await shop.ok('registerWebhook', { url: 'https://receiver.example/', events: ['*'] })
    await shop.ok('sendTestWebhook', { webhookId })
    await goods(shop)
    await loyalty(shop)
    await orders(shop)
    await tags(shop)
    await offers(shop)
    await integrations(shop)
    const expected = events.filter((name) => !CONNECTOR_EVENTS.has(name))
    await until('every event is posted', () => expected.every((name) => posted.has(name))).catch(() => undefined)
  })
  afterAll(() => shop.stop())

  it.each(['webhook.test', ...events])('%s is published and matches its published schema', (name) => {
    const schema = published[name]?.post.requestBody.content['application/json'].schema
    expect(schema, 'in x-webhooks').toBeDefined()
    const got = posted.get(name) ?? []
    expect(
      got.length > 0 || CONNECTOR_EVENTS.has(name),
      `no webhook got ${name}: call what emits it in one of the journeys of test/cloud/platform/operations/emitted-events.test.ts`,
    ).toBe(true)
    const form = z.fromJSONSchema(schema, { defaultTarget: 'openapi-3.0' })
    for (const event of got) {
      expect(form.safeParse(event).error, JSON.stringify(event)).toBeUndefined()
      // The event has only fields of the schema, and its only data about customers is the id.
      expect(
        Object.keys(event.data).filter((field) => !(field in schema.properties.data.properties)),
        JSON.stringify(event),
      ).toEqual([])
      expect(Object.keys(event.data).filter((field) => /email|phone|firstName|lastName|address/i.test(field))).toEqual(
        [],
      )
      const id = event.data.eventId ?? event.id
      expect(id).toMatch(/^[\x21-\x7e]{1,128}$/)
    }
    expect(form.safeParse({ ...got[0], event: 'another' }).success).toBe(false)
    expect(form.safeParse({ ...got[0], data: undefined }).success).toBe(false)
    // The example also matches the schema.
    expect(form.safeParse(published[name].post.requestBody.content['application/json'].example).error).toBeUndefined()
  })

  it('that were sent are all published', () => {
    expect([...posted.keys()].filter((name) => !(name in published))).toEqual([])
  })

  it('have the fields of the specification', () => {
    const first = (name: string) => posted.get(name)?.[0]?.data
    expect(first('checkout.completed')).toMatchObject({
      transactionId: expect.any(String),
      securityTagMode: 'rfid',
      securityTagStatus: 'pending',
    })
    expect(first('offer.published')).toMatchObject({ offerId: expect.any(String) })
    expect(first('clickcollect.order')).toMatchObject({ orderId: expect.any(String) })
    expect(first('loyalty.points_earned')).toMatchObject(
      Object.fromEntries(
        ['userId', 'programId', 'storeId', 'transactionId', 'source'].map((field) => [field, expect.any(String)]),
      ),
    )
    expect(first('loyalty.points_earned')).toMatchObject({ amount: expect.any(Number), newBalance: expect.any(Number) })
    const done = posted.get('protection.action.completed')?.find(({ data }) => data.epc !== undefined)?.data
    for (const field of 'type eventId protectionAction protectionTechnology occurredAt processedAt storeId deviceId deviceType purchaseId itemLineId itemStatus workflowType epc authorizationState replayProtectedNonce'.split(
      ' ',
    )) {
      expect(done, field).toHaveProperty(field)
    }
    expect(posted.get('loyalty.tier_changed')?.map(({ data }) => data.direction)).toEqual(
      expect.arrayContaining(['up', 'down']),
    )
  })
})

async function goods(shop: Shop): Promise<void> {
  const { storeId } = shop
  await shop.ok('insertProduct', { storeId, ean: newEan(), name: 'Schal', price: 19.9, vat: 19 })
  await shop.ok('bulkImportProducts', { storeId, products: [{ ean: newEan(), name: 'Mütze', price: 14.9, vat: 19 }] })
  const { sessionId } = await shop.ok('checkIn', { storeId, userId: 'shopper-1' })
  const { transactionId } = await shop.ok('startCheckout', {
    sessionId,
    items: [{ ean: shop.products[0].ean, quantity: 2 }],
  })
  await shop.ok('processPayment', { purchaseId: transactionId })
  await shop.ok('completeTestCheckout', { transactionId })
  await shop.ok('refundPayment', { purchaseId: transactionId, amount: 1 })
  await shop.ok('configurePSP', {
    storeId,
    provider: 'custom',
    config: { baseUrl: 'https://psp.example', webhookSecret: 'a-secret-of-their-own' },
  })
}

async function loyalty(shop: Shop): Promise<void> {
  const make = (fields: Json) =>
    shop.ok('createLoyaltyProgram', { storeId: shop.storeId, name: 'Stammkunden', type: 'points', ...fields })
  const rewarded = await make({
    rewards: [{ rewardId: 'rew_1', name: 'Kaffee', cost: 50 }],
    earningMethods: ['qr_checkin', 'store_checkin'],
  })
  const { programId } = rewarded
  await shop.ok('addLoyaltyPoints', { programId, userId: 'shopper-1', amount: 60 })
  await shop.ok('redeemLoyaltyPoints', { programId, userId: 'shopper-1', rewardId: 'rew_1' })
  await shop.ok('loyaltyCheckIn', { programId, userId: 'shopper-1', method: 'qr_checkin', code: rewarded.checkInCode })
  const { coordinates } = await shop.ok('fetchStore', { storeId: shop.storeId })
  await shop.ok('loyaltyCheckIn', { programId, userId: 'shopper-1', method: 'store_checkin', ...coordinates })
  const tiered = await make({
    type: 'tier',
    tiers: [
      { name: 'Silber', threshold: 10 },
      { name: 'Gold', threshold: 100 },
    ],
  })
  await shop.ok('addLoyaltyPoints', { programId: tiered.programId, userId: 'shopper-1', amount: 150 })
  await shop.ok('redeemLoyaltyPoints', { programId: tiered.programId, userId: 'shopper-1', amount: 100 })
}

async function orders(shop: Shop): Promise<void> {
  const { orderId } = await shop.ok('submitClickCollectOrder', {
    storeId: shop.storeId,
    userId: 'shopper-1',
    items: [{ productId: shop.products[1].productId, quantity: 1 }],
  })
  for (const status of ['confirmed', 'preparing', 'ready', 'picked_up'])
    await shop.ok('updateClickCollectStatus', { orderId, status })
}

async function tags(shop: Shop): Promise<void> {
  const [product] = shop.products
  const device = shop.devices.self_checkout_detacher
  for (const outcome of ['confirmed', 'failed']) {
    const { epc } = await shop.newItem(product)
    const { transactionId } = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const grant = await shop.ok('verifyProtectedItem', {
      deviceId: device,
      protectionAction: 'detach_hard_tag',
      epc,
      purchaseId: transactionId,
    })
    await shop.ok('redeemProtectionAuthorization', {
      authorizationToken: grant.authorizationToken,
      deviceId: device,
      redemptionId: transactionId,
      outcome,
    })
    // The line was refunded after the release, so staff must check the item.
    if (outcome === 'confirmed') await shop.ok('markPurchaseCancelled', { purchaseId: transactionId })
  }
  const { epc } = await shop.newItem(product)
  await shop.ok('verifyProtectedItem', {
    deviceId: shop.devices.exit_gate,
    protectionAction: 'authorize_exit',
    epc,
    scanSource: 'exit_gate',
  })
  // Agents alone send this event; it arrives with their journal.
  const agent = await enrolTestAgent(shop)
  const event = {
    type: 'protection.device.offline' as const,
    eventId: 'evt-offline-1',
    occurredAt: new Date().toISOString(),
    storeId: shop.storeId,
    deviceId: device,
    replayProtectedNonce: 'nonce-1',
    offline: true,
  }
  const report = await agent.report([agent.row({ event })])
  expect(report.status).toBe(200)
}

/** Creates offers with a live key, because the sandbox stores no offers. */
async function offers(shop: Shop): Promise<void> {
  const live = await shop.cloud.key('secret', 'live')
  const storeIds = await liveStores(shop.cloud, live)
  await shop.cloud.ok(live, 'registerWebhook', { url: 'https://live.example/', events: ['*'] })
  await shop.cloud.ok(live, 'createOffer', {
    storeIds,
    title: 'Herbst',
    validFrom: '2020-01-01T00:00:00Z',
    validTo: '2099-01-01T00:00:00Z',
    products: [{ name: 'Schirm', price: 9.99 }],
  })
}

/** Calls the operations of integrations. In the sandbox they return invented counts. */
async function integrations(shop: Shop): Promise<void> {
  for (const name of ['syncPOS', 'syncERP']) {
    if (OPERATION_TABLE.has(name))
      await shop.call(name, {
        system: 'generic',
        storeId: shop.storeId,
        credentials: { baseUrl: 'https://till.example' },
      })
  }
  for (const name of ['pushToPOS', 'pushToERP']) {
    if (OPERATION_TABLE.has(name))
      await shop.call(name, {
        system: 'generic',
        storeId: shop.storeId,
        dataType: 'transactions',
        records: [{ id: '1' }],
        credentials: { baseUrl: 'https://till.example' },
      })
  }
}
