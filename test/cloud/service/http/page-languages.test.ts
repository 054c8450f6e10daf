import { Hono } from 'hono'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ERROR_STATUS, Failure, type ErrorCode } from '../../../../cloud/platform/foundation/failure.ts'
import { PaymentPage } from '../../../../cloud/service/http/checkout.tsx'
import { type PageContext, pageRenderer } from '../../../../cloud/service/http/page.tsx'
import { ReceiptPage } from '../../../../cloud/service/http/receipts.tsx'
import type { TransactionData } from '../../../../cloud/shop/purchases/schema.ts'
import { formatsOf, textsOf } from '../../../../cloud/platform/texts/catalogue.ts'
import { LANGUAGES, otherLanguage, type Language } from '../../../../policy/page-language.ts'
import type { Json } from '../../../support/cloud.ts'
import { foreignTexts, textsOfPage } from '../../../support/page-texts.ts'
import { openPrimeShop, type PrimeShop } from '../../../support/prime-shop.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }
/** The link to the same page in a language. */
const SWITCH: Record<Language, RegExp> = {
  de: /<a href="\?[^"]*lang=de[^"]*" lang="de" hreflang="de">Deutsch<\/a>/,
  en: /<a href="\?[^"]*lang=en[^"]*" lang="en" hreflang="en">English<\/a>/,
}

interface Asked {
  path: string
  status: number
  method?: string
  body?: string
}

describe('the pages of the cloud', () => {
  let shop: PrimeShop
  /** All pages by their content. */
  const pages: Record<string, Asked> = {}
  const expected = (status: number, path: string, more: Partial<Asked> = {}): Asked => ({ path, status, ...more })

  beforeAll(async () => {
    shop = await openPrimeShop('sqlite')
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    const items = [
      { name: 'Tüte', priceUnit: 25, quantity: 2, vat: 19 },
      { name: 'Käse', priceUnit: 90, quantity: 1, vat: 7 },
    ]
    const begin = () => shop.ok('startCheckout', { sessionId, items })
    const checkout = async (operation?: string) => {
      const purchase = await begin()
      if (operation) await shop.ok(operation, { transactionId: purchase.transactionId })
      return { ...purchase, path: new URL(purchase.checkoutUrl).pathname as string }
    }
    const receipt = async (change: (purchase: Json) => Promise<unknown>) => {
      const { transactionId, items: lines } = await checkout('completeTestCheckout')
      const { token } = await shop.ok('generateReceiptQR', { purchaseId: transactionId })
      await change({ transactionId, lines })
      return `/R/${token}`
    }
    pages['open checkout'] = expected(200, (await checkout()).path)
    pages['paid checkout'] = expected(200, (await checkout('completeTestCheckout')).path)
    const cancelled = await checkout()
    await shop.cloud.cloud.app.request(cancelled.path, { method: 'POST', headers: FORM, body: 'result=cancelled' })
    pages['cancelled checkout'] = expected(200, cancelled.path)
    pages['receipt'] = expected(200, await receipt(async () => undefined))
    pages['receipt in the API'] = expected(200, `/api/v1/getReceiptFromToken?token=${pages['receipt'].path.slice(3)}`)
    pages['receipt with a refund'] = expected(
      200,
      await receipt(({ transactionId, lines }) =>
        shop.ok('refundPayment', { transactionId, lines: [{ itemLineId: lines[0].itemLineId }] }),
      ),
    )
    pages['cancelled receipt'] = expected(
      200,
      await receipt(({ transactionId }) => shop.ok('markPurchaseCancelled', { purchaseId: transactionId })),
    )
    const { programId } = await shop.ok('createLoyaltyProgram', {
      storeId: shop.storeId,
      name: '?',
      type: 'stamps',
      rewards: [
        { name: '??', cost: 1 },
        { name: '???', cost: 5 },
      ],
      pointsValidMonths: 3,
    })
    const card = await shop.ok('issueLoyaltyCard', { programId, userId: 'shopper-1' })
    await shop.ok('addLoyaltyPoints', { programId, cardCode: card.cardCode, amount: 2 })
    pages['loyalty card'] = expected(200, `/l/${card.cardCode}`)
    pages['unknown loyalty card'] = expected(404, '/L/NOTHING')
    const { zoneId } = await shop.ok('createZone', { storeId: shop.storeId, name: 'Obst' })
    const { url, requestId } = await shop.ok('requestAssistance', { zoneId })
    const answered = await shop.ok('requestAssistance', { zoneId })
    await shop.ok('answerAssistanceRequest', { requestId: answered.requestId, message: '?' })
    const closed = await shop.ok('requestAssistance', { zoneId })
    await shop.ok('answerAssistanceRequest', { requestId: closed.requestId, status: 'closed' })
    expect(requestId).toBeTruthy()
    pages['zone'] = expected(200, `/z/${zoneId}`)
    for (const [name, at] of Object.entries({ open: url, answered: answered.url, closed: closed.url }))
      pages[`${name} conversation`] = expected(200, new URL(at as string).pathname)
    pages['too long a message'] = expected(400, `/z/${zoneId}`, {
      method: 'POST',
      body: `message=${'x'.repeat(600)}`,
    })
    pages['unknown zone'] = expected(404, '/z/zon_nobody')
    pages['unknown conversation'] = expected(404, `/z/${zoneId}/nothing`)
    pages['unknown receipt'] = expected(404, '/R/NOTHING')
    pages['unknown receipt in the API'] = expected(404, '/api/v1/getReceiptFromToken?token=x')
    pages['receipt without a token'] = expected(400, '/api/v1/getReceiptFromToken')
    pages['unknown checkout'] = expected(404, '/checkout/chk_nobody')
    pages['unknown result of a checkout'] = expected(404, pages['open checkout'].path, {
      method: 'POST',
      body: 'result=free',
    })
    pages['unknown address'] = expected(404, '/nothing/here')
    pages['unknown image'] = expected(404, '/images/nothing.png')
    pages['wrong method'] = expected(404, '/docs', { method: 'POST', body: '' })
    pages['operation without a key'] = expected(401, '/api/v1/fetchStores')
    pages['time without a nonce'] = expected(400, '/api/v1/time')
  })
  afterAll(() => shop.stop())

  const open = ({ path, method = 'GET', body }: Asked, headers: Record<string, string> = {}) =>
    shop.cloud.cloud.app.request(`http://shop.example${path}`, {
      method,
      headers: { accept: BROWSER, ...(body !== undefined && FORM), ...headers },
      ...(body !== undefined && { body }),
    })

  const expectPage = (name: string, html: string, language: Language) => {
    const other = textsOf(otherLanguage(language))
    expect([name, foreignTexts(html, textsOf(language), other)]).toEqual([name, []])
    expect([name, html.startsWith(`<!doctype html><html lang="${language}">`)]).toEqual([name, true])
    expect([name, SWITCH[other.language].test(html)]).toEqual([name, true])
    expect([name, textsOfPage(html).length > 1]).toEqual([name, true])
  }

  it.each(LANGUAGES)(
    'follow the browser’s language and contain no text of the other language (%s)',
    async (language) => {
      for (const [name, view] of Object.entries(pages)) {
        const answer = await open(view, { 'accept-language': `fr, ${language}-AT;q=0.5` })
        expect([name, answer.status]).toEqual([name, view.status])
        const { headers } = answer
        expect([name, headers.get('vary')?.replace(', HX-Request', ''), headers.get('cache-control')]).toEqual([
          name,
          'Accept, Accept-Language, Cookie',
          'no-store',
        ])
        expect([name, headers.get('content-security-policy')?.slice(0, 18)]).toEqual([name, "default-src 'none'"])
        expect([name, headers.get('set-cookie')]).toEqual([name, null])
        expectPage(name, await answer.text(), language)
      }
    },
  )

  it.each(LANGUAGES)('show every payment status and every problem (%s)', async (language) => {
    const reader: PageContext = {
      texts: textsOf(language),
      formats: formatsOf(language),
      other: textsOf(otherLanguage(language)),
      otherHref: `?lang=${otherLanguage(language)}`,
    }
    const { body } = await shop.cloud.get(pages['receipt in the API']?.path ?? '', { accept: 'application/json' })
    const purchase = body as TransactionData
    for (const status of ['CREATED', 'PENDING_PAYMENT', 'SUCCESS', 'CANCELLED'] as const)
      for (const way of ['leave', 'show_receipt', undefined] as const) {
        for (const isSold of [false, true]) {
          const shown = { purchase: { ...purchase, status }, isAwaited: status === 'CREATED', isSold, way, reader }
          expectPage(`payment ${status} ${way}`, `<!doctype html>${String(PaymentPage(shown))}`, language)
        }
      }
    for (const securityTagMode of ['manual', 'station', 'rfid'] as const) {
      const tagged: TransactionData = { ...purchase, securityTagMode, securityTagStatus: 'pending' }
      const html = `<!doctype html>${String(ReceiptPage({ receipt: tagged, reader }))}`
      expectPage(`receipt with ${securityTagMode}`, html, language)
      expect(html).toContain(reader.texts.tagHints[securityTagMode])
      const left = String(ReceiptPage({ receipt: { ...tagged, status: 'UNLOADED' }, reader }))
      const { beforeLeaving, codeUse, qr } = reader.texts.receipt
      for (const advice of [beforeLeaving, codeUse, reader.texts.tagHints[securityTagMode]])
        expect([html.includes(advice), left.includes(advice)]).toEqual([true, false])
      expect(left).toContain(qr)
      const off = String(ReceiptPage({ receipt: { ...tagged, securityTagStatus: 'deactivated' }, reader }))
      const { codeUseAtExit } = reader.texts.receipt
      expect([off.includes(codeUse), off.includes(codeUseAtExit)]).toEqual([false, true])
      const own = String(ReceiptPage({ receipt: { ...tagged, securityTagHint: 'Up the stairs' }, reader }))
      expect(own).toContain(`${reader.texts.storeNote}:</span> Up the stairs`)
      expect(own).not.toContain(reader.texts.tagHints[securityTagMode])
    }
    for (const code of Object.keys(ERROR_STATUS) as ErrorCode[]) {
      const app = new Hono()
      const failure = new Failure(code, 'a text of the API', { retryAfter: 3 })
      app.get('/', (c) => pageRenderer(false).problem(c, failure, 'req_1'))
      const answer = await app.request(`/?lang=${language}`)
      expect([code, answer.status, answer.headers.get('retry-after')]).toEqual([code, ERROR_STATUS[code], '3'])
      const html = await answer.text()
      expectPage(code, html, language)
      expect(html).toContain('req_1')
      expect(html).not.toContain('a text of the API')
    }
  })

  it('differ in every text, so that the test detects a page with two languages', () => {
    const [german, english] = [textsOf('de'), textsOf('en')]
    const mixed = `<p>${german.receipt.noFiscalEvidence} / ${english.receipt.noFiscalEvidence}.</p>`
    expect(foreignTexts(mixed, german, english)).toEqual([english.receipt.noFiscalEvidence])
    expect(foreignTexts(mixed, english, german)).toEqual([german.receipt.noFiscalEvidence])
    expect(foreignTexts('<th>Artikel</th>', english, german)).toEqual(['Artikel'])
    expect(foreignTexts('<p>19 % MwSt: netto 1,00</p>', english, german)).toEqual(['MwSt: netto'])
    expect(foreignTexts('<h1>Bezahlen: 1,25</h1>', english, german)).toEqual(['Bezahlen'])
    expect(foreignTexts('<a href="?lang=de" lang="de" hreflang="de">Deutsch</a>', english, german)).toEqual([])
  })

  it('use the language chosen with the switch until the browser closes', async () => {
    const page = pages['zone'] as Asked
    const chosen = await open({ ...page, path: `${page.path}?lang=de` }, { 'accept-language': 'en' })
    expect(await chosen.text()).toContain('<html lang="de">')
    const cookie = chosen.headers.get('set-cookie')
    expect(cookie).toBe('untag_language=de; Path=/; HttpOnly; Secure; SameSite=Lax')
    const later = await open(pages['receipt'] as Asked, { 'accept-language': 'en', cookie: 'untag_language=de' })
    expect(await later.text()).toContain('<html lang="de">')
    const again = await open({ ...page, path: `${page.path}?lang=de` }, { cookie: 'untag_language=de' })
    expect(again.headers.get('set-cookie')).toBeNull()
    for (const wrong of ['fr', '__proto__', '"><script>'])
      expect((await open({ ...page, path: `${page.path}?lang=${wrong}` })).headers.get('set-cookie')).toBeNull()
  })

  it('preserve the other URL parameters in the switch', async () => {
    const html = await (await open({ path: '/checkout/nobody?returned=1&lang=en&x=%22%3E%3Cb%3E', status: 404 })).text()
    expect(html).toContain('href="?returned=1&amp;lang=de&amp;x=%22%3E%3Cb%3E"')
  })

  it('are not sent to programs, which receive JSON', async () => {
    for (const accept of ['*/*', 'application/json', 'application/json, text/html', ''])
      for (const path of ['/nothing/here', '/api/v1/fetchStores', '/api/v1/getReceiptFromToken', '/images/x.png'])
        expect([accept, (await open({ path, status: 0 }, { accept })).headers.get('content-type')]).toEqual([
          accept,
          'application/json',
        ])
    const withKey = { authorization: `Bearer ${shop.key}` }
    expect((await open({ path: '/api/v1/nothing', status: 404 }, withKey)).headers.get('content-type')).toBe(
      'application/json',
    )
  })
})
