import { gzipSync } from 'node:zlib'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { OWN_IDS, ownIdsIn } from '../../../../cloud/service/http/docs/page.tsx'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import { violations } from '../../../support/axe.ts'
import { ensureBuilt } from '../../../support/built.ts'
import { IS_FULL_SIZE } from '../../../support/full-size.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../../support/chromium.ts'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'
import { suiteWith } from '../../../support/extended.ts'

const PHONE = { viewport: { width: 390, height: 844 } }

describe('the reference page', () => {
  it('contains every operation completely, is small and loads nothing else', async () => {
    const cloud = await startTestCloud('sqlite')
    const { text: page, headers } = await cloud.get('/docs')
    await cloud.stop()
    const text = page.replace(/<script>.*<\/script>/s, '')
    for (const { name, summary, minimumPackage, emits } of OPERATION_TABLE.values()) {
      const entry = text.slice(
        text.indexOf(`<article id="${name}"`),
        text.indexOf('</article>', text.indexOf(`<article id="${name}"`)),
      )
      expect(entry).toContain(`<span class="tag">${minimumPackage}</span>`)
      expect(entry.replaceAll(/<\/?code>/g, '`').replaceAll('&#39;', "'")).toContain(summary)
      for (const part of ['curl', 'TypeScript', 'Python', 'Example answer', 'Answer fields', 'Errors', ...emits])
        expect(entry).toContain(part)
      expect(text).toContain(`<li><a href="#${name}">${name}</a></li>`)
    }
    expect(text).not.toMatch(/undefined|\[object|NaN/)
    expect(text.replaceAll(/<pre>[\s\S]*?<\/pre>/g, '')).not.toContain('`')
    expect(text).not.toMatch(/(?:src|href)="(?:https?:)?\/\//)
    expect(text).not.toMatch(/ on[a-z]+="| style="/)
    // Download and layout size for a phone. Versions of Node.js compress a little differently.
    expect(gzipSync(page).length / OPERATION_TABLE.size).toBeLessThan(900)
    expect(page.length / OPERATION_TABLE.size).toBeLessThan(6_200)
    const ids = [...text.matchAll(/ id="([^"]+)"/g)].map((m) => m[1])
    expect(new Set(ids).size).toBe(ids.length)
    expect([...text.matchAll(/href="#([^"]+)"/g)].map((m) => m[1]).filter((target) => !ids.includes(target))).toEqual(
      [],
    )
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).toMatch(
      /^default-src 'none'; script-src(?: 'sha256-[^']+'){3}; style-src 'sha256-[^']+'; connect-src 'self'; /,
    )
    expect(policy).not.toContain('unsafe')
  })
})

describe('the ids of the forms', () => {
  const prefixesIn = (text: string) => [...text.matchAll(/\b([a-z]+)_01KAN/g)].map((match) => match[1])

  it('replace every example id of the reading operations', () => {
    const reading = [...OPERATION_TABLE.values()].filter((operation) => ownIdsIn(operation) && !operation.changes)
    const prefixes = new Set(reading.flatMap(({ example }) => prefixesIn(JSON.stringify(example))))
    expect(prefixes.size).toBeGreaterThan(4)
    expect([...prefixes].filter((prefix) => !Object.keys(OWN_IDS).includes(prefix ?? ''))).toEqual([])
  })

  it('come from operations that read', async () => {
    const cloud = await startTestCloud('sqlite')
    const key = await cloud.key('secret')
    const { stores } = await cloud.ok(key, 'fetchStores')
    for (const [prefix, { operation, ofStore, list, id }] of Object.entries(OWN_IDS)) {
      expect(OPERATION_TABLE.get(operation)?.changes).toBe(false)
      const answer = await cloud.ok(key, operation, ofStore ? { storeId: stores[0].storeId } : {})
      expect(Array.isArray(answer[list]), `${operation} ${list}`).toBe(true)
      for (const object of answer[list]) expect(object[id], operation).toMatch(new RegExp(`^${prefix}_`))
    }
    await cloud.stop()
  })

  it('are only those of stores where an operation ends something, and there is no form without a test key', () => {
    const named = (name: string) => ownIdsIn(OPERATION_TABLE.get(name) as never)
    for (const name of ['decommissionDevice', 'revokeApiKey', 'rollApiKey', 'deleteOffer', 'markPurchaseCancelled'])
      expect(named(name), name).toBe('store')
    for (const name of ['fetchPurchase', 'updateDevice']) expect(named(name), name).toBe('all')
    for (const name of ['fetchProfile', 'setStorePackage', 'rotateAgentKey']) expect(named(name), name).toBeUndefined()
  })
})

/** Codes that no list returns: a form cannot fill them. */
const NOT_FILLED = ['getReceiptFromCode', 'getReceiptFromToken', 'verifyPickupCode']

suiteWith(NO_CHROMIUM, 'the reference page in Chromium', () => {
  let cloud: TestCloud
  let server: Server
  let chromium: TestBrowser
  let address: string
  let key: string

  beforeAll(async () => {
    ensureBuilt()
    cloud = await startTestCloud('sqlite')
    key = await cloud.key('secret')
    server = createServer(getRequestListener(cloud.cloud.app.fetch))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    chromium = await startChromium()
  })
  afterAll(async () => {
    await chromium.close()
    server.closeAllConnections()
    server.close()
    await cloud.stop()
  })

  const open = async (
    options: BrowserContextOptions = {},
    path = '/docs',
  ): Promise<{ page: Page; complaints: string[]; requested: string[] }> => {
    const page = await (await chromium.browser.newContext(options)).newPage()
    const complaints: string[] = []
    const requested: string[] = []
    page.on(
      'console',
      (message) => void (['error', 'warning'].includes(message.type()) && complaints.push(message.text())),
    )
    page.on('pageerror', (error) => void complaints.push(error.message))
    page.on('request', (request) => void requested.push(request.url()))
    await page.goto(address + path)
    return { page, complaints, requested }
  }

  const results = (page: Page) =>
    page
      .locator('#results a')
      .evaluateAll((links) => links.map((a) => `${a.querySelector('small')?.textContent} ${a.firstChild?.textContent}`))

  /** Removes most entries. All entries have the same parts, so a few suffice to check colours and widths. */
  const keepSome = (page: Page) =>
    page.evaluate(
      `for (const [i, entry] of [...document.querySelectorAll('article')].entries()) if (i % 12 > 0 && !['startCheckout', 'checkIn'].includes(entry.id)) entry.remove()`,
    )

  async function expectAccessible(page: Page, isWhole = false): Promise<void> {
    await page.evaluate(
      `for (const each of document.querySelectorAll('#startCheckout details')) { each.removeAttribute('name'); each.open = true }`,
    )
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    if (!isWhole) await keepSome(page)
    await page.click('#startCheckout button.try')
    await page.fill('#startCheckout [name=key]', 'untag_live_sk_x')
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    expect(await violations(page)).toEqual([])
  }

  it.each(IS_FULL_SIZE ? (['light', 'dark'] as const) : (['light'] as const))(
    'is accessible: %s',
    async (colorScheme) => {
      const { page, complaints } = await open({ colorScheme })
      await expectAccessible(page, IS_FULL_SIZE && colorScheme === 'light')
      expect(complaints).toEqual([])
      await page.context().close()
    },
  )

  it('is accessible on a phone, in dark, where its contents open and close after a choice', async () => {
    const { page, complaints } = await open({ ...PHONE, colorScheme: 'dark' })
    await expectAccessible(page)
    expect(await page.isVisible('#menu')).toBe(false)
    await page.click('.bar button')
    expect(await violations(page)).toEqual([])
    await page.click('#menu a[href="#checkIn"]')
    expect(await page.isVisible('#menu')).toBe(false)
    expect(await page.locator('#checkIn h3').isVisible()).toBe(true)
    expect(complaints).toEqual([])
    await page.context().close()
  })

  describe('in one tab', () => {
    let page: Page
    let complaints: string[]
    let requested: string[]
    beforeAll(async () => {
      ;({ page, complaints, requested } = await open())
    })
    afterAll(() => page.context().close())

    it('finds operations by a part of their name, with the keyboard only', async () => {
      await page.keyboard.press('Tab')
      expect(await page.evaluate('document.activeElement.textContent.trim()')).toBe('Skip to the content')
      await page.keyboard.press('/')
      expect(await page.evaluate('document.activeElement.id')).toBe('search')
      await page.keyboard.type('PROTECTEDITEM')
      expect((await results(page)).slice(0, 3).toSorted()).toEqual([
        'operation fetchProtectedItem',
        'operation registerProtectedItems',
        'operation verifyProtectedItem',
      ])
      await page.fill('#search', 'verify protected item')
      await page.focus('#search')
      await page.keyboard.press('Enter')
      expect(new URL(page.url()).hash).toBe('#verifyProtectedItem')
      await page.focus('#verifyProtectedItem .samples details:nth-child(2) summary')
      await page.keyboard.press('Enter')
      expect(await page.isVisible('#verifyProtectedItem details:nth-child(2) code')).toBe(true)
    })

    it('finds guides, codes, fields and operations, also after typing errors, and clears the search at Escape', async () => {
      for (const [query, expected] of [
        ['idempotency key', 'guide Idempotency'],
        ['receipt_expired', 'code receipt_expired'],
        ['older than 24 hours', 'code receipt_expired'],
        ['pickupcode', 'field'],
        ['recipt', 'operation generateReceiptQR'],
        ['double redeem', 'code double_redeem'],
      ] as const) {
        await page.fill('#search', query)
        expect(await results(page), query).toContainEqual(expect.stringMatching(`^${expected}`))
        expect(await page.textContent('#result-count')).toMatch(/^\d+ results$/)
        await page.fill('#search', 'zzzzqqqq')
        expect(await page.textContent('#result-count')).toBe('Nothing found.')
        await page.keyboard.press('Escape')
        expect(await page.isVisible('#contents')).toBe(true)
      }
      expect(requested.length).toBe(1)
    })

    it('links an error of an operation to its remedy', async () => {
      await page.click('#generateReceiptQR .text details:last-of-type summary')
      await page.click('#generateReceiptQR .errors a[href="#reason-receipt_expired"]')
      expect(await page.textContent('.codes li:target')).toContain('older than 24 hours')
    })

    it('never sends a live key and does not store it', async () => {
      await page.click('#fetchProducts button.try')
      for (const wrong of ['untag_live_sk_AAAAAAAA', 'untag_live_ak_AAAAAAAA', 'untag_test_sk_', 'x']) {
        await page.fill('#fetchProducts [name=key]', wrong)
        await page.click('#fetchProducts .send')
        expect(await page.isVisible('#fetchProducts .refused')).toBe(true)
        expect(await page.evaluate('sessionStorage.length')).toBe(0)
      }
      expect(await page.textContent('#fetchProducts .refused')).toContain('A test key looks like')
      expect(requested.filter((url) => url.includes('/api/'))).toEqual([])
    })

    it('tries an operation with a test key, which stays in the tab', async () => {
      await page.click('#fetchStores button.try')
      await page.fill('#fetchStores [name=key]', key)
      await page.press('#fetchStores textarea', 'Control+Enter')
      await page.waitForSelector('#fetchStores output .good')
      const output = await page.textContent('#fetchStores output')
      expect(output).toMatch(/200 OK.*x-request-id.*req_.*"city": "Hamburg"/s)
      expect(await page.evaluate('[localStorage.length, document.cookie, Object.values(sessionStorage)]')).toEqual([
        0,
        '',
        [key],
      ])
      await page.click('#checkIn button.try')
      expect(await page.inputValue('#checkIn [name=key]')).toBe(key)
      const { stores } = await cloud.ok(key, 'fetchStores')
      await page.fill('#checkIn textarea', JSON.stringify({ storeId: stores[0].storeId }))
      await page.click('#checkIn .send')
      await page.waitForSelector('#checkIn output .good')
      await page.click('#checkIn .send')
      // Not `waitForFunction`: the page's content security policy blocks its second check.
      await page.locator('#checkIn output', { hasText: 'idempotency-replayed' }).waitFor()
      // The forms begin with a store of the key, not with an example that answers 404.
      await page.click('#fetchStore button.try')
      await page.click('#fetchStore .send')
      await page.waitForSelector('#fetchStore output .good')
      const { storeId } = JSON.parse(await page.inputValue('#fetchStore textarea'))
      expect(stores.map((store: { storeId: string }) => store.storeId)).toContain(storeId)
      await page.fill('#fetchStore textarea', '{"storeId":"st_x"}')
      await page.click('#fetchStore .send')
      await page.waitForSelector('#fetchStore output .bad')
      expect(await page.textContent('#fetchStore output')).toMatch(/404.*"code": "not-found"/s)
      await page.fill('#fetchStore textarea', '{')
      await page.click('#fetchStore .send')
      expect(await page.textContent('#fetchStore .refused')).toBe('The request is not valid JSON.')
      expect(requested.every((url) => url.startsWith(address))).toBe(true)
      expect(complaints.filter((text) => !text.includes('404'))).toEqual([])
    })
  })

  it('gets an answer at the first attempt of each reading operation, with a key of a sandbox in use', async () => {
    const merchant = await cloud.key('secret', 'test', { account: 'in-use', package: 'PRIME' })
    const { stores } = await cloud.ok(merchant, 'fetchStores')
    const { storeId } = stores.find((store: { package: string }) => store.package === 'PRIME')
    const { products } = await cloud.ok(merchant, 'fetchProducts', { storeId, limit: 1 })
    const buy = async () => {
      const { sessionId } = await cloud.ok(merchant, 'checkIn', { storeId })
      return cloud.ok(merchant, 'startCheckout', { sessionId, items: [{ ean: products[0].ean, quantity: 1 }] })
    }
    await cloud.ok(merchant, 'completeTestCheckout', { transactionId: (await buy()).transactionId })
    // A newer purchase that is not paid has no receipt.
    await buy()
    const { page } = await open()
    await page.evaluate(`sessionStorage.setItem('untag-test-key', '${merchant}')`)
    const reading = [...OPERATION_TABLE.values()].filter((operation) => ownIdsIn(operation) && !operation.changes)
    const refused: string[] = []
    for (const { name } of reading) {
      await page.click(`#${name} button.try`)
      await page.click(`#${name} .send`)
      await page.locator(`#${name} output :is(.good, .bad)`).waitFor()
      if ((await page.locator(`#${name} output .good`).count()) === 0) refused.push(name)
    }
    expect(refused.toSorted()).toEqual(NOT_FILLED)
    expect(reading.length).toBeGreaterThan(45)
    expect(await page.locator('#fetchProfile button.try').count()).toBe(0)
    await page.context().close()
  })

  it('is readable without its script', async () => {
    const { page } = await open({ javaScriptEnabled: false })
    expect(await page.isVisible('#search')).toBe(false)
    expect(await page.locator('form, button.try, button.copy').count()).toBe(0)
    await page.click('#fetchStores .text summary')
    expect(await page.isVisible('#fetchStores .text details .fields')).toBe(true)
    await page.context().close()
  })
})
