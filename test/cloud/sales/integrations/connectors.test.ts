import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { genericSystem } from '../../../../simulators/services/generic-system.ts'
import { businessCentralSystem } from '../../../../simulators/services/erp-businesscentral.ts'
import { erpnextSystem } from '../../../../simulators/services/erp-erpnext.ts'
import { odooSystem } from '../../../../simulators/services/erp-odoo.ts'
import { sapB1System } from '../../../../simulators/services/erp-sapb1.ts'
import { cloverSystem } from '../../../../simulators/services/pos-clover.ts'
import { lightspeedSystem } from '../../../../simulators/services/pos-lightspeed.ts'
import { shopifySystem } from '../../../../simulators/services/pos-shopify.ts'
import { squareSystem } from '../../../../simulators/services/pos-square.ts'
import { sumupSystem } from '../../../../simulators/services/pos-sumup.ts'
import { vendorGoods, type SimulatedVendor, type VendorOptions } from '../../../../simulators/services/vendor-server.ts'
import type { Json } from '../../../support/cloud.ts'
import { openConnectedStore, type ConnectedStore } from '../../../support/connected-store.ts'

/** A system and the differences of its connector. */
interface Row {
  system: string
  side: 'pos' | 'erp'
  start(options?: VendorOptions): Promise<SimulatedVendor>
  /** Credentials that the system must reject. */
  wrong: Record<string, string>
  /** Data types of an ERP besides stock. */
  reads?: { orders: number; suppliers: number }
  pushes: boolean
  /** Reason why the system supports no refunds of sales. */
  noRefunds?: RegExp
  /** Reason why the system supports no refunds of amounts. */
  noAmounts?: RegExp
  /** Credentials that refunds of an amount require. */
  amounts?: Record<string, string>
  /** True if one response contains all records, so that a round cannot be interrupted. */
  hasNoPages?: boolean
  /** True if articles have no VAT rate; the credentials contain one rate for all. */
  hasOneVat?: boolean
}

const ROWS: Row[] = [
  { system: 'generic', side: 'pos', start: genericSystem, wrong: { token: 'x' }, pushes: true },
  {
    system: 'generic',
    side: 'erp',
    start: genericSystem,
    wrong: { token: 'x' },
    reads: { orders: 4, suppliers: 2 },
    pushes: true,
  },
  { system: 'shopify', side: 'pos', start: shopifySystem, wrong: { clientSecret: 'x' }, pushes: true },
  { system: 'square', side: 'pos', start: squareSystem, wrong: { accessToken: 'x' }, pushes: true },
  {
    system: 'lightspeed',
    side: 'pos',
    start: lightspeedSystem,
    wrong: { accessToken: 'x' },
    pushes: true,
    noAmounts: /not amounts/,
  },
  {
    system: 'clover',
    side: 'pos',
    start: cloverSystem,
    wrong: { accessToken: 'x' },
    pushes: true,
    noRefunds: /enter this refund at the till/,
  },
  {
    system: 'sumup',
    side: 'pos',
    start: sumupSystem,
    wrong: { password: 'x' },
    pushes: false,
    hasNoPages: true,
    hasOneVat: true,
  },
  {
    system: 'odoo',
    side: 'erp',
    start: odooSystem,
    wrong: { apiKey: 'x' },
    reads: { orders: 4, suppliers: 2 },
    pushes: true,
    amounts: { refundArticle: 'A1003' },
  },
  {
    system: 'odoo',
    side: 'erp',
    start: (options) => odooSystem({ ...options, api: 'jsonrpc' }),
    wrong: { apiKey: 'x' },
    reads: { orders: 4, suppliers: 2 },
    pushes: true,
    amounts: { refundArticle: 'A1003' },
  },
  {
    system: 'erpnext',
    side: 'erp',
    start: erpnextSystem,
    wrong: { apiSecret: 'x' },
    reads: { orders: 4, suppliers: 2 },
    pushes: true,
    amounts: { refundArticle: 'ITEM-1003' },
  },
  {
    system: 'businesscentral',
    side: 'erp',
    start: businessCentralSystem,
    wrong: { clientSecret: 'x' },
    reads: { orders: 4, suppliers: 2 },
    pushes: true,
    amounts: { refundArticle: '1003' },
  },
  {
    system: 'sapb1',
    side: 'erp',
    start: sapB1System,
    wrong: { password: 'x' },
    reads: { orders: 4, suppliers: 2 },
    pushes: true,
    amounts: { refundArticle: 'A1003' },
  },
]

const COUNT = 10
const [FIRST, SECOND] = vendorGoods(2).products.map(({ ean }) => ean)
const SALES = [
  {
    transactionId: 'pur_1',
    completedAt: '2026-11-20T08:00:00Z',
    currency: 'EUR',
    total: 5.97,
    items: [{ name: 'Artikel 1', ean: FIRST, quantity: 3, priceUnit: 1.99, vat: 19 }],
  },
  {
    transactionId: 'pur_2',
    completedAt: '2026-11-20T08:05:00Z',
    currency: 'EUR',
    totalCent: 209,
    items: [{ name: 'Artikel 2', ean: SECOND, quantity: 1, priceUnit: 209, vat: 19 }],
  },
  { total: 3, items: [] },
]

/**
 * A sale of three pieces and of one other piece. The other piece is returned; then 0.50 EUR of the rest are refunded.
 */
const SOLD = {
  transactionId: 'pur_9',
  completedAt: '2026-11-20T08:00:00Z',
  status: 'SUCCESS',
  currency: 'EUR',
  totalCent: 806,
  refundedCent: 0,
  refunds: [] as Json[],
  items: [
    { itemLineId: 'lin_1', name: 'Artikel 1', ean: FIRST, quantity: 3, priceUnit: 199, vat: 19, refundedCent: 0 },
    { itemLineId: 'lin_2', name: 'Artikel 2', ean: SECOND, quantity: 1, priceUnit: 209, vat: 19, refundedCent: 0 },
  ],
}
const BACK = { status: 'done', kind: 'part', createdAt: '2026-11-21T08:00:00Z', completedAt: '2026-11-21T08:00:00Z' }
const GOODS_BACK = {
  ...SOLD,
  refundedCent: 209,
  refunds: [{ ...BACK, refundId: 'ref_1', amountCent: 209, lines: [{ itemLineId: 'lin_2' }] }],
}
const AMOUNT_BACK = {
  ...SOLD,
  refundedCent: 259,
  refunds: [...GOODS_BACK.refunds, { ...BACK, refundId: 'ref_2', amountCent: 50 }],
}

describe.each(ROWS)(
  '$system ($side)',
  ({
    system,
    side,
    start,
    wrong,
    reads,
    pushes,
    noRefunds,
    noAmounts,
    amounts,
    hasNoPages = false,
    hasOneVat = false,
  }) => {
    let store: ConnectedStore
    let vendor: SimulatedVendor
    const name = side === 'pos' ? 'syncPOS' : 'syncERP'
    const type = side === 'pos' ? 'products' : 'stock'
    beforeAll(async () => {
      store = await openConnectedStore('sqlite')
    })
    afterAll(async () => {
      await store.stop()
      expect(store.cloud.errors).toEqual([])
    })

    /** Creates a separate store for each test. For an ERP, the store already sells the products. */
    async function open(): Promise<string> {
      vendor = await start({ goods: vendorGoods(COUNT) })
      const storeId = await store.newStore()
      if (side === 'erp') {
        const records = vendor.goods.products.map(({ ean, name: title, priceCent, vat, category }) => ({
          ean,
          name: title,
          price: priceCent / 100,
          vat,
          category,
        }))
        await store.ok('syncPOS', { storeId, system: 'generic', records })
      }
      return storeId
    }
    const using = async (work: (storeId: string, call: Json) => Promise<void>) => {
      const storeId = await open()
      try {
        await work(storeId, { storeId, system, credentials: vendor.credentials })
      } finally {
        await vendor.close()
      }
    }
    const products = async (storeId: string): Promise<Json[]> =>
      (await store.ok('fetchProducts', { storeId, limit: 500 })).products
    const read = async (storeId: string) => {
      if (side === 'pos')
        return (await products(storeId)).map((p) => [p.ean, p.name, p.price, p.vat, p.category, p.fromPos]).sort()
      const eans = new Map((await products(storeId)).map((p) => [p.productId, p.ean]))
      return (await store.ok('fetchStock', { storeId, limit: 500 })).stock
        .map((s: Json) => [eans.get(s.productId), s.quantity])
        .sort()
    }
    const wanted = () =>
      vendor.goods.products
        .map((p) =>
          side === 'pos'
            ? [p.ean, p.name, p.priceCent / 100, hasOneVat ? 19 : p.vat, p.category, true]
            : [p.ean, p.stock],
        )
        .sort()

    it('reads all pages', () =>
      using(async (storeId, call) => {
        const { synced, errors } = await store.ok(name, call)
        expect([synced, errors]).toEqual([
          side === 'pos' ? { products: COUNT, categories: 3, priceUpdates: 0 } : { stock: COUNT, ...reads },
          [],
        ])
        expect(await read(storeId)).toEqual(wanted())
        expect(vendor.requests.length).toBeGreaterThan(hasNoPages ? 2 : 3)
        if (side === 'pos')
          expect(
            (await products(storeId)).every((p) =>
              p.posProductId.includes(vendor.goods.products.find(({ ean }) => ean === p.ean)?.id),
            ),
          ).toBe(true)
        if (reads?.suppliers)
          expect(
            (await store.ok('fetchERPRecords', { storeId, system, dataType: 'suppliers' })).records.map(
              (r: Json) => r.name,
            ),
          ).toEqual(vendor.goods.suppliers.map((s) => s.name))
        if (reads?.orders) {
          const { records } = await store.ok('fetchERPRecords', { storeId, system, dataType: 'orders' })
          expect(records.map((r: Json) => [r.externalId, r.supplierId, r.total, r.orderedAt.slice(0, 10)])).toEqual(
            vendor.goods.orders.map((o) => [o.id, o.supplierId, o.totalCent / 100, o.orderedAt]),
          )
        }
      }))

    it('waits and repeats after a rate limit, a 503 and a lost connection', () =>
      using(async (storeId, call) => {
        let n = 0
        vendor.gate = () =>
          [undefined, 'rate_limit', undefined, 'unavailable', 'reset', 'rate_limit'][n++] as ReturnType<
            NonNullable<SimulatedVendor['gate']>
          >
        const before = store.platform.clock.elapsed()
        await store.ok(name, call)
        expect(store.platform.clock.elapsed()).toBeGreaterThan(before)
        expect(await read(storeId)).toEqual(wanted())
      }))

    it('distinguishes errors of credentials, address and system', () =>
      using(async (_storeId, call) => {
        expect(await store.call(name, { ...call, credentials: { ...call.credentials, ...wrong } })).toMatchObject({
          status: 400,
          body: { details: [{ code: 'credentials_refused' }] },
        })
        expect(await store.call(name, { ...call, credentials: {} })).toMatchObject({
          status: 400,
          body: { details: expect.any(Array) },
        })
        const unknown = await store.call(name, { ...call, credentials: { ...call.credentials, colour: 'red' } })
        expect(unknown.body.details[0]).toMatchObject({ path: 'credentials.colour', code: 'unknown_field' })
        vendor.gate = () => 'unauthorized'
        expect(await store.call(name, call)).toMatchObject({
          status: 400,
          body: { details: [{ code: 'credentials_refused' }] },
        })
        vendor.gate = () => 'garbage'
        expect(await store.call(name, call)).toMatchObject({ status: 503, body: { reason: 'answer_not_understood' } })
        vendor.gate = () => 'unavailable'
        expect(await store.call(name, call)).toMatchObject({ status: 503, body: { reason: 'system_unavailable' } })
        expect(vendor.requests.length).toBeLessThan(25)
      }))

    it('writes valid records even if others are invalid', () =>
      using(async (storeId, call) => {
        const [first, second] = vendor.goods.products
        Object.assign(first as object, { ean: null })
        Object.assign(second as object, side === 'pos' ? { ean: '12' } : { ean: '4000000000006' })
        const { synced, errors, errorCount } = await store.ok(name, call)
        expect([synced[type], errorCount]).toEqual([COUNT - 2, 2])
        expect([...new Set(errors.map((e: Json) => e.index))]).toEqual([0, 1])
        expect((await read(storeId)).length).toBe(COUNT - 2)
      }))

    // A single page cannot be interrupted.
    if (!hasNoPages) {
      it('continues an interrupted round', () =>
        using(async (storeId, call) => {
          await store.ok(name, { ...call, storeId: await otherStore() })
          const whole = vendor.requests.length
          let n = 0
          vendor.gate = () => (++n > Math.ceil(whole * 0.6) ? 'unavailable' : undefined)
          expect((await store.call(name, call)).status).toBe(503)
          expect((await read(storeId)).length).toBeGreaterThan(0)
          vendor.gate = undefined
          const before = vendor.requests.length
          const { synced } = await store.ok(name, call)
          expect(synced[type]).toBe(COUNT)
          expect(vendor.requests.length - before).toBeLessThan(whole)
          expect(await read(storeId)).toEqual(wanted())
        }))
    }

    async function otherStore(): Promise<string> {
      const own = vendor
      const storeId = await open()
      await vendor.close()
      vendor = own
      return storeId
    }

    if (!pushes) {
      it('rejects pushes with the reason', () =>
        using(async (storeId, call) => {
          const body = { ...call, storeId, dataType: 'transactions', records: SALES }
          expect(await store.call('pushToPOS', body)).toMatchObject({
            status: 400,
            body: {
              details: [{ path: 'system', code: 'not_supported', message: expect.stringContaining('Vendor-Id') }],
            },
          })
          expect(vendor.requests).toEqual([])
        }))
      return
    }

    it('writes sales once, and reports rejected ones', () =>
      using(async (storeId, call) => {
        const push = side === 'pos' ? 'pushToPOS' : 'pushToERP'
        const body = { ...call, storeId, dataType: 'transactions', records: SALES }
        const headers = { 'idempotency-key': `push-${system}-${side}` }
        const first = await store.call(push, body, headers)
        expect(first.body).toMatchObject({ success: true, pushed: 2, errors: [{ index: 2 }] })
        expect(vendor.written).toHaveLength(2)
        expect(JSON.stringify(vendor.written[0])).toContain('pur_1')
        // Deletes the stored response, as if a crash had lost it.
        await store.cloud.db.database.write((db) => db.deleteFrom('idempotency').execute())
        expect((await store.call(push, body, headers)).body).toEqual(first.body)
        expect(vendor.written).toHaveLength(2)
      }))

    it('writes each refund once with its sale, or reports why it cannot', () =>
      using(async (storeId, call) => {
        const push = side === 'pos' ? 'pushToPOS' : 'pushToERP'
        let n = 0
        const send = (record: Json, credentials: Json = {}) => {
          const body = { ...call, storeId, dataType: 'transactions', records: [record] }
          return store.call(
            push,
            { ...body, credentials: { ...vendor.credentials, ...credentials } },
            { 'idempotency-key': `refund-${system}-${side}-${n++}` },
          )
        }
        expect((await send(SOLD)).body).toMatchObject({ pushed: 1, errors: [] })
        if (noRefunds) {
          expect((await send(GOODS_BACK)).body).toMatchObject({
            pushed: 0,
            errors: [{ field: 'refunds', code: 'refund_not_supported', message: expect.stringMatching(noRefunds) }],
          })
          expect(vendor.written).toHaveLength(1)
          return
        }
        vendor.gate = () => (vendor.written.length === 1 ? 'lost_write' : undefined)
        expect([200, 503]).toContain((await send(GOODS_BACK)).status)
        vendor.gate = undefined
        for (let i = 0; i < 2; i++) expect((await send(GOODS_BACK)).body).toMatchObject({ pushed: 1, errors: [] })
        if (system === 'generic') {
          // A generic system receives the unchanged record and identifies it by its id.
          expect(vendor.written.at(-1)?.record['refunds']).toEqual(GOODS_BACK.refunds)
          return
        }
        expect(vendor.written.map(({ kind }) => kind)).toEqual(['transactions', 'refunds'])
        expect(JSON.stringify(vendor.written[1])).toContain('ref_1')
        const amount = await send(AMOUNT_BACK, amounts)
        if (noAmounts) {
          expect(amount.body).toMatchObject({
            pushed: 0,
            errors: [{ field: 'refunds.1', code: 'refund_not_supported', message: expect.stringMatching(noAmounts) }],
          })
          return
        }
        expect(amount.body).toMatchObject({ pushed: 1, errors: [] })
        expect(vendor.written.map(({ kind }) => kind)).toEqual(['transactions', 'refunds', 'refunds'])
        expect(JSON.stringify(vendor.written[2])).toContain('ref_2')
      }))

    it('writes nothing twice if the response is lost', () =>
      using(async (storeId, call) => {
        const push = side === 'pos' ? 'pushToPOS' : 'pushToERP'
        const body = { ...call, storeId, dataType: 'transactions', records: SALES }
        const headers = { 'idempotency-key': `lost-${system}-${side}` }
        vendor.gate = () => (vendor.written.length === 0 ? 'lost_write' : undefined)
        const first = await store.call(push, body, headers)
        expect([200, 503]).toContain(first.status)
        expect((await store.ok(push, body, headers)).pushed).toBe(2)
        expect(vendor.written.map(({ record }) => JSON.stringify(record).match(/pur_\d/)?.[0])).toEqual([
          'pur_1',
          'pur_2',
        ])
      }))
  },
)
