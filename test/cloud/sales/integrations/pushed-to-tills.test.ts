import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { cloverSystem } from '../../../../simulators/services/pos-clover.ts'
import { lightspeedSystem } from '../../../../simulators/services/pos-lightspeed.ts'
import { sumupSystem } from '../../../../simulators/services/pos-sumup.ts'
import { shopifySystem } from '../../../../simulators/services/pos-shopify.ts'
import { vendorGoods, type SimulatedVendor, type VendorRequest } from '../../../../simulators/services/vendor-server.ts'
import type { Json } from '../../../support/cloud.ts'
import { openConnectedStore, type ConnectedStore } from '../../../support/connected-store.ts'

/**
 * Tests the requests that `pushToPOS` sends to Lightspeed, Clover and SumUp. The doubles follow the vendors' public
 * references.
 */
const [FIRST, SECOND] = vendorGoods(2).products.map(({ ean }) => ean)
const SALE = {
  transactionId: 'pur_1',
  completedAt: '2026-11-20T08:00:00Z',
  status: 'SUCCESS',
  currency: 'EUR',
  totalCent: 730,
  items: [
    { itemLineId: 'lin_1', name: 'Artikel 1', ean: FIRST, quantity: 3, priceUnit: 199, vat: 19 },
    { itemLineId: 'lin_2', name: 'Artikel 2', ean: SECOND, quantity: 1, priceUnit: 118, vat: 7 },
    { itemLineId: 'lin_3', name: 'Pfand', quantity: 1, priceUnit: 15, vat: 19, depositOf: 'lin_1' },
  ],
}

let store: ConnectedStore
let vendor: SimulatedVendor
beforeAll(async () => {
  store = await openConnectedStore('sqlite')
})
afterAll(async () => {
  await store.stop()
  expect(store.cloud.errors).toEqual([])
})
afterEach(() => vendor.close())

const push = (system: string, record: Json, credentials: Json = {}) =>
  store.call('pushToPOS', {
    system,
    dataType: 'transactions',
    records: [record],
    credentials: { ...vendor.credentials, ...credentials },
  })

describe('Shopify', () => {
  it('receives the number of pieces that came back, with their order line', async () => {
    vendor = await shopifySystem({ goods: vendorGoods(2) })
    const back = { refundId: 'ref_1', kind: 'part', status: 'done', completedAt: '2026-11-20T08:30:00Z' }
    const refunds = [{ ...back, amountCent: 398, lines: [{ itemLineId: 'lin_1', quantity: 2 }] }]
    expect((await push('shopify', { ...SALE, refunds })).body).toMatchObject({ pushed: 1, errors: [] })
    expect(vendor.written[1]?.record).toMatchObject({
      refundLineItems: [{ lineItemId: expect.stringMatching(/line\/0$/), quantity: 2 }],
      transactions: [{ amount: '3.98' }],
    })
  })
})

describe('Lightspeed', () => {
  const DEPOSIT = { depositArticle: 'S-1003' }

  it('receives a closed sale with net prices, the shop’s taxes and one payment', async () => {
    vendor = await lightspeedSystem({ goods: vendorGoods(5) })
    expect((await push('lightspeed', SALE, DEPOSIT)).body).toMatchObject({ pushed: 1, errors: [] })
    const [{ record, key } = { record: {}, key: '' }] = vendor.written
    const { registerId, userId, paymentTypeId } = vendor.credentials
    const product = (n: number) => ({ id: `0242ac12-0002-11ee-8000-00000000${1_000 + n}` })
    const [standard, reduced] = ['b1d192bc-f019-11e3-a0f5-b8ca3a64f8f4', 'b1d192bc-f019-11e3-a0f5-b8ca3a64f8f5']
    expect(record).toEqual({
      id: key,
      source: { author_id: userId, register_id: registerId, id: 'pur_1', type: 'untag' },
      state: 'closed',
      date: '2026-11-20T08:00:00.000Z',
      line_items: [
        { product: product(1), quantity: 3, pricing: { price: 1.67227 }, tax: { id: standard, amount: 0.31773 } },
        { product: product(2), quantity: 1, pricing: { price: 1.1028 }, tax: { id: reduced, amount: 0.0772 } },
        { product: product(3), quantity: 1, pricing: { price: 0.12605 }, tax: { id: standard, amount: 0.02395 } },
      ],
      payments: [{ type: { config_id: paymentTypeId }, amount: 7.3, source: { register_id: registerId } }],
    })
  })

  it('receives returned goods once, as a return of their sale', async () => {
    vendor = await lightspeedSystem({ goods: vendorGoods(5) })
    await push('lightspeed', SALE, DEPOSIT)
    const back = { refundId: 'ref_1', kind: 'part', amountCent: 118, lines: [{ itemLineId: 'lin_2' }] }
    const record = { ...SALE, refunds: [{ ...back, status: 'done', completedAt: '2026-11-20T08:30:00Z' }] }
    for (let i = 0; i < 2; i++)
      expect((await push('lightspeed', record, DEPOSIT)).body).toMatchObject({ pushed: 1, errors: [] })
    expect(vendor.written.map(({ kind }) => kind)).toEqual(['transactions', 'refunds'])
    expect(vendor.written[1]?.record).toMatchObject({
      return_for: vendor.written[0]?.key,
      source: { id: 'ref_1', type: 'untag' },
      line_items: [{ id: expect.any(String), quantity: -1, pricing: { price: 1.1028 } }],
      payments: [{ amount: -1.18 }],
    })
  })

  it('rejects pushes with missing settings, products or taxes', async () => {
    vendor = await lightspeedSystem({ goods: vendorGoods(5) })
    const { baseUrl, domainPrefix, accessToken } = vendor.credentials
    const body = { system: 'lightspeed', dataType: 'transactions', records: [SALE] }
    expect(
      await store.call('pushToPOS', { ...body, credentials: { baseUrl, domainPrefix, accessToken } }),
    ).toMatchObject({
      status: 400,
      body: { details: [{ code: 'system_refused', message: expect.stringContaining('registerId, userId') }] },
    })
    const faultOf = async (record: Json, credentials: Json = DEPOSIT) =>
      (await push('lightspeed', record, credentials)).body.errors[0]
    const [item] = SALE.items
    expect(await faultOf(SALE, {})).toMatchObject({ field: 'items.2.depositOf', code: 'deposit_article_missing' })
    expect(await faultOf({ ...SALE, items: [{ ...item, ean: '4000000000006' }] })).toMatchObject({
      field: 'items.0.ean',
      code: 'unknown_product',
    })
    expect(await faultOf({ ...SALE, items: [{ ...item, vat: 16 }] })).toMatchObject({
      field: 'items.0.vat',
      code: 'unknown_tax',
      message: 'Lightspeed has no tax of 16 %: add it there',
    })
    expect(vendor.written).toEqual([])
  })
})

describe('Clover', () => {
  it('receives an order with one line item per unit, and a payment with the tender', async () => {
    vendor = await cloverSystem({ goods: vendorGoods(5) })
    expect((await push('clover', SALE)).body).toMatchObject({ pushed: 1, errors: [] })
    const [{ record } = { record: {} }] = vendor.written
    const unit = (name: string, price: number, rate: number, ean?: string | null) => ({
      name,
      price,
      ...(typeof ean === 'string' && { itemCode: ean }),
      taxRates: [{ id: `T_${rate}` }],
    })
    expect(record).toEqual({
      title: 'pur_1',
      note: 'untag',
      state: 'open',
      groupLineItems: true,
      total: 730,
      lineItems: [
        ...Array.from({ length: 3 }, () => unit('Artikel 1', 199, 19, FIRST)),
        unit('Artikel 2', 118, 7, SECOND),
        unit('Pfand', 15, 19),
      ],
      payment: { tender: { id: vendor.credentials['tenderId'] }, amount: 730, externalPaymentId: 'pur_1' },
    })
  })

  it('continues at the failed step of a push, and writes each step once', async () => {
    vendor = await cloverSystem({ goods: vendorGoods(5) })
    const big = { ...SALE, totalCent: 230 * 199, items: [{ ...SALE.items[0], quantity: 230 }] }
    // A push sends six requests: order, three for line items, total, payment.
    for (let step = 1; step <= 6; step++) {
      const record = { ...big, transactionId: `pur_${step}` }
      let n = 0
      vendor.gate = ({ method }: VendorRequest) => (method === 'POST' && ++n >= step ? 'unavailable' : undefined)
      expect((await push('clover', record)).status).toBe(503)
      vendor.gate = undefined
      for (let i = 0; i < 2; i++) expect((await push('clover', record)).body).toMatchObject({ pushed: 1, errors: [] })
    }
    expect(vendor.written.map(({ key, record }) => [key, (record['lineItems'] as Json[]).length])).toEqual(
      [1, 2, 3, 4, 5, 6].map((step) => [`pur_${step}`, 230]),
    )
  })

  it('rejects old sales, too many units, other taxes and a missing tender', async () => {
    vendor = await cloverSystem({ goods: vendorGoods(5) })
    const faultOf = async (change: Json) => (await push('clover', { ...SALE, ...change })).body.errors[0]
    const [item] = SALE.items
    expect(await faultOf({ completedAt: '2026-08-20T08:00:00Z' })).toMatchObject({
      field: 'completedAt',
      code: 'too_old',
    })
    expect(await faultOf({ completedAt: null })).toMatchObject({ field: 'completedAt', code: 'invalid' })
    expect(await faultOf({ items: [{ ...item, quantity: 3_001 }] })).toMatchObject({ code: 'too_many_items' })
    expect(await faultOf({ items: [{ ...item, vat: null }] })).toMatchObject({
      field: 'items.0.vat',
      code: 'unknown_tax',
    })
    const { baseUrl, merchantId, accessToken } = vendor.credentials
    const body = { system: 'clover', dataType: 'transactions', records: [SALE] }
    expect(await store.call('pushToPOS', { ...body, credentials: { baseUrl, merchantId, accessToken } })).toMatchObject(
      {
        status: 400,
        body: { details: [{ code: 'system_refused', message: expect.stringContaining('tenderId') }] },
      },
    )
    expect(vendor.written).toEqual([])
  })
})

describe('SumUp', () => {
  it('supports no sales: pushToPOS reports this in live mode and in the sandbox, and sends nothing', async () => {
    vendor = await sumupSystem({ goods: vendorGoods(5) })
    const refusal = {
      status: 400,
      body: {
        details: [{ path: 'system', code: 'not_supported', message: expect.stringContaining('finished sales') }],
      },
    }
    const body = { system: 'sumup', dataType: 'transactions', records: [SALE] }
    expect(await store.call('pushToPOS', body)).toMatchObject(refusal)
    expect(await push('sumup', SALE)).toMatchObject(refusal)
    const key = await store.cloud.key('secret', 'test')
    const { stores } = await store.cloud.ok(key, 'fetchStores')
    expect(await store.cloud.call(key, 'pushToPOS', { ...body, storeId: stores[0].storeId })).toMatchObject(refusal)
    expect(vendor.requests).toEqual([])
  })
})
