import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { qrPng } from '../../../../cloud/platform/foundation/qr-code.ts'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { refundSummaryOf } from '../../../../cloud/shop/receipts/operations.ts'
import type { TransactionData } from '../../../../cloud/shop/purchases/schema.ts'
import type { Json } from '../../../support/cloud.ts'
import { endlessBody, endlessRequest } from '../../../support/endless-body.ts'
import { readQr } from '../../../support/qr.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

const MIB = 1024 * 1024

describe('receipts and the test checkout', () => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop('sqlite')
  })
  afterAll(() => shop.stop())

  const checkout = async () => {
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId, userId: 'shopper-<script>' })
    return shop.ok('startCheckout', {
      sessionId,
      items: [
        { ean: shop.products[0].ean, quantity: 2 },
        { name: '<b>Tüte</b>', priceUnit: 25, quantity: 1, vat: 19 },
      ],
    })
  }
  const press = (url: string, result: string) =>
    shop.cloud.cloud.app.request(new URL(url).pathname, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `result=${result}`,
    })

  it('accept one payment on the page and then link to the receipt', async () => {
    const { checkoutUrl, transactionId } = await checkout()
    const page = await shop.cloud.get(new URL(checkoutUrl).pathname)
    expect(page.text).toContain('Pay')
    expect((await press(checkoutUrl, 'paid')).status).toBe(303)
    expect(await shop.ok('fetchPurchase', { transactionId })).toMatchObject({ status: 'SUCCESS' })
    await press(checkoutUrl, 'cancelled')
    expect(await shop.ok('fetchPurchase', { transactionId })).toMatchObject({ status: 'SUCCESS' })
    expect((await shop.cloud.get(new URL(checkoutUrl).pathname)).text).toContain('To the receipt')
  })

  it('use the language of the browser or of the switch', async () => {
    const { checkoutUrl } = await checkout()
    const { pathname } = new URL(checkoutUrl)
    const texts = async (path: string, headers = {}) => (await shop.cloud.get(path, headers)).text
    const english = await texts(pathname, { 'accept-language': 'en-GB,en;q=0.9' })
    for (const expected of ['<html lang="en">', 'Pay: €', '3 items', '?lang=de']) expect(english).toContain(expected)
    for (const expected of ['<html lang="de">', 'Bezahlen: ', '3 Stück', '?lang=en'])
      expect(await texts(`${pathname}?lang=de`, { 'accept-language': 'en' })).toContain(expected)
    await press(checkoutUrl, 'paid')
    expect(await texts(`${pathname}?lang=en`)).toContain('To the receipt')
  })

  it.each(['declined', 'cancelled'])('can be %s', async (result) => {
    const { checkoutUrl, transactionId } = await checkout()
    await press(checkoutUrl, result)
    expect(await shop.ok('fetchPurchase', { transactionId })).toMatchObject({ status: 'CANCELLED' })
    expect((await shop.call('completeTestCheckout', { transactionId })).status).toBe(409)
  })

  it('return 404 for an unknown checkout and an unknown result', async () => {
    const { checkoutUrl } = await checkout()
    expect((await press('https://shop.example/checkout/chk_nobody', 'paid')).status).toBe(404)
    expect((await press(checkoutUrl, 'free')).status).toBe(404)
  })

  it('read no body for an unknown checkout, and limit the body of a form', async () => {
    const { checkoutUrl, transactionId } = await checkout()
    for (const [path, status] of [
      ['/checkout/chk_nobody', 404],
      ['/checkout/no.id', 404],
      [new URL(checkoutUrl).pathname, 413],
    ] as const) {
      const { body, sent } = endlessBody(8 * MIB)
      const answer = await shop.cloud.cloud.app.request(path, endlessRequest(body))
      expect([path, answer.status, sent() <= (status === 404 ? 0 : MIB / 8)]).toEqual([path, status, true])
    }
    const long = await press(checkoutUrl, `paid&padding=${'x'.repeat(2_000)}`)
    expect([long.status, ((await long.json()) as Json).code]).toEqual([413, 'payload-too-large'])
    expect(await shop.ok('fetchPurchase', { transactionId })).toMatchObject({ status: 'PENDING_PAYMENT' })
  })

  it('show a QR code that jsqr reads, the same on every reprint', async () => {
    const { transactionId } = await checkout()
    await shop.ok('completeTestCheckout', { transactionId })
    const [first, again] = [
      await shop.ok('generateReceiptQR', { purchaseId: transactionId }),
      await shop.ok('generateReceiptQR', { purchaseId: transactionId }),
    ]
    expect(readQr(Buffer.from(first.imageBase64, 'base64'))).toBe(first.url)
    expect(first.url).toBe(`HTTPS://SHOP.EXAMPLE/R/${first.token}`)
    expect({ ...again }).toEqual({ ...first })
  })

  it('show QR codes of any length and size', () => {
    for (const [text, size] of [
      ['A', 96],
      ['HTTPS://SHOP.EXAMPLE/R/'.padEnd(600, 'A'), 512],
      ['grüße', 300],
      ['untag://checkin/st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', 512],
    ] as const) {
      const png = qrPng(text, size)
      expect(readQr(png)).toBe(text)
      expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([size, size])
    }
    // A module has at least 3 pixels.
    expect(qrPng('A'.repeat(600), 64).readUInt32BE(16)).toBe((77 + 8) * 3)
    expect(readQr(qrPng('HTTPS://SHOP.EXAMPLE/R/'.padEnd(600, 'A'), 64))).toBe(
      'HTTPS://SHOP.EXAMPLE/R/'.padEnd(600, 'A'),
    )
  })

  it('show the receipt by its token: JSON with all fields, and an escaped page', async () => {
    const { transactionId } = await checkout()
    await shop.ok('completeTestCheckout', { transactionId })
    const { url, token } = await shop.ok('generateReceiptQR', { purchaseId: transactionId })
    const { body } = await shop.cloud.get(`/api/v1/getReceiptFromToken?token=${encodeURIComponent(url)}`)
    const price = Math.round(shop.products[0].price * 100)
    expect(body).toMatchObject({
      success: true,
      id: transactionId,
      totalCent: price * 2 + 25,
      tse: { state: 'simulated' },
      status: 'SUCCESS',
    })
    const vat = Object.values(body.vatBreakdown) as Json[]
    expect(vat.reduce((sum: number, { net, tax }) => sum + net + tax, 0)).toBe(body.totalCent)
    expect(JSON.stringify(body)).not.toContain('shopper-')
    // The receipt must not name the session: with it an app's key could read the whole purchase and its customer.
    expect(body).not.toHaveProperty('sessionId')
    expect(JSON.stringify(body)).not.toContain((await shop.ok('fetchPurchase', { transactionId })).receipt.sessionId)
    const page = await shop.cloud.get(`/R/${token}`)
    expect(page.text).toContain('&lt;b&gt;Tüte')
    expect(page.text).not.toContain('<b>Tüte')
    expect((await shop.cloud.get(`/R/${token.slice(0, -8)}AAAAAAAA`)).status).toBe(404)
    expect((await shop.cloud.get('/api/v1/getReceiptFromToken?token=x')).status).toBe(404)
    expect((await shop.cloud.get('/api/v1/getReceiptFromToken')).status).toBe(400)
  })

  it.each([
    ['de', 'zurückgegeben', 'Erstattet', 'Bleibt', 'Storniert', 'QR-Code dieses Belegs'],
    ['en', 'returned', 'Refunded', 'Remains', 'Cancelled', 'QR code of this receipt'],
  ])(
    'show refunded items first and strike them through (%s)',
    async (language, returned, refunded, remains, cancelled, qr) => {
      const { transactionId, items } = await checkout()
      await shop.ok('completeTestCheckout', { transactionId })
      const { token } = await shop.ok('generateReceiptQR', { purchaseId: transactionId })
      const page = async () => (await shop.cloud.get(`/R/${token}`, { 'accept-language': language })).text
      const sold = await page()
      expect(sold).toContain(`<html lang="${language}">`)
      for (const word of [returned, refunded, cancelled, '<s>']) expect(sold).not.toContain(word)
      expect(sold).toContain(qr)
      await shop.ok('refundPayment', { transactionId, lines: [{ itemLineId: items[1].itemLineId }] })
      const partly = await page()
      expect(partly).toMatch(
        new RegExp(`<s>&lt;b&gt;Tüte&lt;/b&gt;</s>.*${returned}.*${refunded}.*-.?0[.,]25.*${remains}`, 's'),
      )
      expect(partly.match(/<s>/g)).toHaveLength(4)
      for (const word of [qr, shop.products[0].name]) expect(partly).toContain(word)
      await shop.ok('markPurchaseCancelled', { purchaseId: transactionId })
      const gone = await page()
      expect(gone.indexOf(`class="stamp">${cancelled}`)).toBeLessThan(gone.indexOf('<table'))
      expect(gone).not.toContain('<img')
      expect(gone).not.toContain((await shop.ok('fetchStore', { storeId: shop.storeId })).securityTagHint ?? 'Etikett')
      const text = (await shop.cloud.get(`/api/v1/getReceiptFromToken?token=${token}`, { accept: 'text/plain' })).text
      expect((await shop.cloud.get(`/R/${token}`, { accept: 'text/plain' })).text).toBe(text)
      expect(text.indexOf('STORNIERT')).toBeLessThan(text.indexOf('SUMME'))
      expect(text).toContain('Erstattet')
      expect(
        (await shop.cloud.get(`/R/${token}?lang=${language === 'de' ? 'en' : 'de'}`, { 'accept-language': language }))
          .text,
      ).not.toContain(`>${cancelled}<`)
    },
  )

  it('show which refunds are pending and which have failed', () => {
    const items = ['a', 'b'].map((itemLineId) => ({
      itemLineId,
      name: itemLineId,
      priceUnit: 500,
      quantity: 1,
      vat: 19 as const,
      totalCent: 500,
    }))
    const refund = (
      status: 'pending' | 'done' | 'failed',
      lineIds?: string[],
      kind: 'part' | 'whole' | 'late' = 'part',
    ) => ({
      refundId: 'r',
      kind,
      status,
      amountCent: 500,
      createdAt: 1,
      ...(lineIds && { lines: lineIds.map((itemLineId) => ({ itemLineId, quantity: 1 })) }),
    })
    const back = (refunds: TransactionData['refunds'], state: Partial<TransactionData> = {}) => {
      const refundedCent = refunds
        .filter((each) => each.status === 'done' && each.kind !== 'late')
        .reduce((sum, each) => sum + each.amountCent, 0)
      const { returnedOf, ...rest } = refundSummaryOf({
        status: 'SUCCESS',
        items,
        totalCent: 1_000,
        refundedCent,
        refunds,
        ...state,
      } as TransactionData)
      return {
        ...rest,
        returned: items.filter((item) => returnedOf(item as TransactionData['items'][number]) === item.quantity).length,
      }
    }
    const nothing = {
      isCancelled: false,
      hasGoods: true,
      refundedCent: 0,
      remainingCent: 1_000,
      pendingCent: 0,
      failedCent: 0,
      returned: 0,
    }
    expect(back([])).toEqual(nothing)
    expect(back([refund('pending', ['a'])])).toEqual({ ...nothing, pendingCent: 500, returned: 1 })
    expect(back([refund('failed', ['a'])])).toEqual({ ...nothing, failedCent: 500 })
    expect(back([refund('failed', ['a']), refund('done', ['a'])])).toEqual({
      ...nothing,
      refundedCent: 500,
      remainingCent: 500,
      returned: 1,
    })
    expect(back([refund('done', ['a']), refund('failed', ['a'])])).toMatchObject({ failedCent: 0 })
    expect(back([refund('failed', ['a']), refund('failed', ['a'])])).toEqual({ ...nothing, failedCent: 500 })
    expect(back([refund('failed', ['a']), refund('done', ['b'])])).toMatchObject({ failedCent: 500, refundedCent: 500 })
    expect(back([refund('done', ['a']), refund('done', ['b'])])).toMatchObject({
      hasGoods: false,
      remainingCent: 0,
      returned: 2,
    })
    expect(back([refund('done', undefined, 'late')])).toEqual(nothing)
    // A failed partial refund still counts after a refund of the rest. It does not count once everything was refunded.
    const gone = { status: 'CANCELLED' as const, refundStatus: 'failed' as const }
    expect(back([refund('failed', ['a']), refund('done', undefined, 'whole')], gone)).toMatchObject({
      isCancelled: true,
      refundedCent: 500,
      remainingCent: 500,
      failedCent: 500,
    })
    expect(
      back([refund('failed', ['a']), refund('done', undefined, 'whole'), refund('done', undefined, 'whole')], gone),
    ).toMatchObject({ remainingCent: 0, failedCent: 0 })
    // While authorizations may still be redeemed, the amount of the refund is unknown.
    expect(back([], { status: 'CANCELLED', refundStatus: 'pending' })).toMatchObject({
      isCancelled: true,
      hasGoods: false,
      pendingCent: null,
      returned: 2,
    })
    expect(back([refund('failed', undefined, 'whole')], { refundStatus: 'failed' })).toEqual({
      ...nothing,
      failedCent: 500,
    })
  })

  it('have no receipt before the payment', async () => {
    const { transactionId } = await checkout()
    expect(await shop.call('generateReceiptQR', { purchaseId: transactionId })).toMatchObject({
      status: 409,
      body: { reason: 'purchase_not_paid' },
    })
  })
})

describe('bodies of requests', () => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop('sqlite')
  })
  afterAll(() => shop.stop())

  it('are read up to a limit on every route', async () => {
    const { app } = shop.cloud.cloud
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const { checkoutUrl } = await shop.ok('startCheckout', {
      sessionId,
      items: [{ ean: shop.products[0].ean, quantity: 1 }],
    })
    const { zoneId } = await shop.ok('createZone', { storeId: shop.storeId, name: 'Herren' })
    const { url } = await shop.ok('requestAssistance', { zoneId })
    /** One URL of each route that accepts a body. Add a row for a new route; all pages of the console have one limit. */
    const addresses: Record<string, [path: string, limit: number][]> = {
      '/checkout/:id': [[new URL(checkoutUrl).pathname, 1_000]],
      '/z/:zoneId': [[`/z/${zoneId}`, 8 * 1024]],
      '/z/:zoneId/:ticket': [[new URL(url).pathname, 8 * 1024]],
      '/api/v1/notify/:provider/:storeId': [[`/api/v1/notify/stripe/${shop.storeId}`, 256 * 1024]],
      '/api/v1/upload': [['/api/v1/upload', 11 * MIB]],
      '/api/v1/:operation': [...OPERATION_TABLE.values()]
        .filter((o) => !o.getOnly)
        .map((o) => [`/api/v1/${o.name}`, o.multipart?.alsoJson === false ? o.multipart.limit : o.bodyLimit]),
    }
    const taking = [
      ...new Set(
        app.routes.filter(({ method }) => !['GET', 'HEAD', 'OPTIONS'].includes(method)).map(({ path }) => path),
      ),
    ]
    for (const path of taking.filter((route) => route.startsWith('/console')))
      addresses[path] = [[path.replace('*', 'none').replace(':token', 'none'), 64 * 1024]]
    expect(taking.sort()).toEqual(Object.keys(addresses).sort())
    const adminKey = await shop.cloud.key('admin', 'live', { account: 'Operator' })
    for (const [path, limit] of Object.values(addresses).flat()) {
      const operation = OPERATION_TABLE.get(path.split('/')[3] ?? '')
      const key = operation?.callers.includes('secret')
        ? shop.key
        : operation?.callers.includes('admin')
          ? adminKey
          : undefined
      const type =
        operation?.multipart?.alsoJson === false
          ? 'multipart/form-data; boundary=xxxx'
          : path.startsWith('/api/')
            ? 'application/json'
            : 'application/x-www-form-urlencoded'
      const { body, sent } = endlessBody(32 * MIB)
      const { status } = await app.request(
        path,
        endlessRequest(body, { 'content-type': type, ...(key !== undefined && { authorization: `Bearer ${key}` }) }),
      )
      // The console answers its sign-in page.
      const isRefused = status >= (path.startsWith('/console') ? 200 : 400) && status < 500
      expect([path, isRefused, sent() <= limit + MIB / 4]).toEqual([path, true, true])
    }
    expect(shop.cloud.errors).toEqual([])
  })

  it('to checkouts are rate-limited by address, as are views of checkouts', async () => {
    const limited = await openShop('sqlite', { config: { rateLimit: 50 } })
    const answers: [method: string, status: number][] = []
    for (let n = 0; n < 100; n++) {
      const method = n % 2 === 0 ? 'GET' : 'POST'
      answers.push([method, (await limited.cloud.cloud.app.request(`/checkout/chk_${n}`, { method })).status])
    }
    expect(answers.slice(0, 30).filter(([, status]) => status !== 404)).toEqual([])
    expect(answers).toEqual(
      expect.arrayContaining([
        ['GET', 429],
        ['POST', 429],
      ]),
    )
    // The other public routes also have limits.
    for (const [path, most] of [
      ['/.well-known/jwks/acc_1.test.json', 30],
      ['/images/none', 500],
    ] as const) {
      const statuses: number[] = []
      for (let n = 0; n < most * 2; n++) statuses.push((await limited.cloud.get(path)).status)
      expect([path, statuses.slice(0, most).includes(429), statuses.includes(429)]).toEqual([path, false, true])
    }
    // The shop's agents request the time from the same address.
    expect((await limited.cloud.get(`/api/v1/time?nonce=${'n'.repeat(22)}`)).status).toBe(200)
    await limited.stop()
  })

  it('that fail log their route, not the address, which may be secret', async () => {
    const other = await openShop('sqlite')
    const { services, app } = other.cloud.cloud
    const lines: object[] = []
    services.log.error = (fields: object) => void lines.push(fields)
    Object.assign(services.images, { get: () => Promise.reject(new Error('no disk')) })
    const name = `${'s'.repeat(43)}.webp`
    expect((await app.request(`/images/${name}`)).status).toBe(500)
    expect(lines).toEqual([{ err: expect.any(Error), route: '/images/:name' }])
    await other.stop()
  })

  it('name a contact for security reports only if there is one', async () => {
    const path = '/.well-known/security.txt'
    expect((await shop.cloud.get(path)).status).toBe(404)
    const other = await openShop('sqlite', { config: { securityContact: 'mailto:security@shop.example' } })
    const { status, text, headers } = await other.cloud.get(path)
    // RFC 9116 §2.5: Contact and Expires are required, Expires should be less than a year ahead.
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=UTF-8'])
    const fields = new Map(
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/: (.*)/) as [string, string]),
    )
    expect(fields.get('Contact')).toBe('mailto:security@shop.example')
    expect(fields.get('Canonical')).toMatch(/\/\.well-known\/security\.txt$/)
    const days =
      (Date.parse(fields.get('Expires') ?? '') - other.cloud.cloud.services.platform.clock.wall()) / 86_400_000
    expect(Math.round(days)).toBe(180)
    await other.stop()
  })
})
