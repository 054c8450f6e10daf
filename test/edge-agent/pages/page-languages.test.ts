import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { localApp } from '../../../edge-agent/http/local-app.ts'
import { textsOf } from '../../../edge-agent/pages/texts/catalogue.ts'
import { LANGUAGES, otherLanguage, type Language } from '../../../policy/page-language.ts'
import { violations } from '../../support/axe.ts'
import { ensureBuilt } from '../../support/built.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { AUTHORIZATION, CREDENTIAL } from '../../support/credential.ts'
import { IS_FULL_SIZE } from '../../support/full-size.ts'
import { foreignTexts } from '../../support/page-texts.ts'
import {
  denied,
  GATE,
  getPage,
  granted,
  newStatus,
  pagesBench,
  pairBrowser,
  servePages,
  STATION,
  type PagesBench,
  type ServedPages,
} from './pages-agent.ts'
import { suiteWith } from '../../support/extended.ts'

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'
/** A busy machine may take this long to show a text. */
const PATIENT = { timeout: 20_000 }
const MESSAGE = 'no answer from 10.0.0.7:502'

/** An agent with every fault. Without `language`, its configuration names no language. */
function benchOf(language?: Language): PagesBench {
  const bench = pagesBench()
  const { language: _, ...config } = bench.agent.config
  Object.assign(bench.agent, { config: { ...config, ...(language && { language }) } })
  const status = newStatus()
  bench.status = {
    ...status,
    online: false,
    offlineSince: new Date(0).toISOString(),
    queueDepth: 2,
    clock: 'none',
    ledgerDoubt: 'forked',
    neededRelease: '9.0.0',
    fault: 'disk I/O error',
    devices: status.devices.map((device) => ({ ...device, state: 'degraded' as const, detail: MESSAGE })),
  }
  const entry = { deviceId: 'dev_…', driver: 'pcsc' }
  Object.assign(bench.agent, {
    deviceDiscovery: {
      findAttached: async () => ({
        attached: [{ kind: 'serial', name: 'RS485', at: '/dev/ttyUSB0', fix: 'usermod -aG dialout', entry }],
        notes: ['pcscd is not there'],
      }),
      findAtAddress: async () => ({ fault: 'connection refused' }),
    },
    check: async () => bench.status.devices[0],
  })
  return bench
}

/** Removes the texts that are marked as English. */
const withoutMessages = (html: string) => html.replaceAll(/<code lang="en"[^>]*>[^<]*<\/code>/g, '')

function expectPage(name: string, html: string, language: Language): void {
  const other = otherLanguage(language)
  expect([name, foreignTexts(withoutMessages(html), textsOf(language), textsOf(other))]).toEqual([name, []])
  expect([name, html.includes(`<html lang="${language}"`)]).toEqual([name, true])
  const link = new RegExp(`<a class="language" href="\\?[^"]*lang=${other}[^"]*" lang="${other}" hreflang="${other}">`)
  expect([name, link.test(html)]).toEqual([name, true])
}

const PAIRED = ['/station', `/station?device=${STATION}`, `/gate?device=${GATE}`, '/setup', '/station?device=nothing']

describe('the pages of the agent', () => {
  it.each(LANGUAGES)('use the browser’s language, without any text of the other language (%s)', async (language) => {
    const bench = benchOf()
    const accepted = { accept: BROWSER, 'accept-language': `fr, ${language}-CH;q=0.3` }
    for (const path of PAIRED) {
      const page = await getPage(bench, path, '127.0.0.1', { ...AUTHORIZATION, ...accepted })
      expectPage(path, await page.text(), language)
      expect([path, page.headers.get('vary')]).toEqual([path, 'Accept, Accept-Language, Cookie'])
      expect([path, page.headers.get('set-cookie')]).toEqual([path, null])
    }
    const elsewhere = await getPage(bench, '/setup', '192.168.1.20', { ...AUTHORIZATION, ...accepted })
    expectPage('set-up from elsewhere', await elsewhere.text(), language)
    for (const path of ['/pair', '/station']) {
      const page = await getPage(bench, path, '127.0.0.1', accepted)
      expectPage(`${path} before pairing`, await page.text(), language)
    }
  })

  it('show technical messages only on the set-up page, marked as English', async () => {
    const bench = benchOf()
    for (const path of PAIRED) {
      const html = await (await getPage(bench, `${path}${path.includes('?') ? '&' : '?'}lang=de`)).text()
      const messages = [MESSAGE, 'usermod -aG dialout', 'pcscd is not there', 'disk I/O error']
      expect(messages.filter((text) => withoutMessages(html).includes(text))).toEqual([])
      expect([path, html.includes(`<code lang="en">${MESSAGE}</code>`)]).toEqual([path, path === '/setup'])
    }
  })

  it.each(LANGUAGES)('show browsers a page instead of a JSON error (%s)', async (language) => {
    const bench = benchOf()
    const app = localApp(bench.agent, {
      hosts: () => ['kasse'],
      log: { info: () => undefined, warn: () => undefined, error: () => undefined },
      credential: () => CREDENTIAL,
    })
    const open = (path: string, headers: Record<string, string>) =>
      app.request(path, { headers: { host: 'kasse', 'accept-language': language, ...headers } })
    for (const [path, status, host] of [
      ['/nothing/here', 404, 'kasse'],
      ['/v1/status', 401, 'kasse'],
      ['/v1/releases', 401, 'kasse'],
      ['/station', 403, 'elsewhere'],
    ] as const) {
      const page = await open(path, { host, accept: BROWSER })
      expect([path, page.status, page.headers.get('content-type')]).toEqual([path, status, 'text/html; charset=UTF-8'])
      expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
      expectPage(path, await page.text(), language)
      for (const accept of ['*/*', 'application/json', 'application/json, text/html']) {
        const answer = await open(path, { host, accept })
        expect([path, answer.status, answer.headers.get('content-type')]).toEqual([path, status, 'application/json'])
      }
    }
    const program = await open('/v1/nothing', { ...AUTHORIZATION, accept: BROWSER })
    expect(program.headers.get('content-type')).toBe('application/json')
  })

  it('use the configured language until the user chooses another', async () => {
    const bench = benchOf('de')
    const open = (path: string, cookie?: string) =>
      getPage(bench, path, '127.0.0.1', { ...AUTHORIZATION, 'accept-language': 'en', ...(cookie && { cookie }) })
    expect(await (await open('/station')).text()).toContain('<html lang="de">')
    const chosen = await open('/station?lang=en')
    expect(await chosen.text()).toContain('<html lang="en">')
    expect(chosen.headers.get('set-cookie')).toBe('untag_language=en; Path=/; HttpOnly; SameSite=Lax')
    // On the screen of a lane, the choice is that of one shopper.
    const lane = await open(`/station?device=${STATION}&lang=en`)
    const shown = await lane.text()
    expect([lane.headers.get('set-cookie'), shown.includes('<html lang="en">')]).toEqual([null, true])
    expect(shown).toContain('data-own-language="de"')
    expect(await (await open('/setup', 'untag_language=en')).text()).toContain('<html lang="en">')
  })
})

suiteWith(NO_CHROMIUM, 'the programs of the pages in Chromium', () => {
  let chromium: TestBrowser
  let bench: PagesBench
  let served: ServedPages
  beforeAll(async () => {
    ensureBuilt()
    chromium = await startChromium()
    bench = benchOf()
    served = await servePages(bench)
  })
  afterAll(async () => {
    await chromium?.close()
    await served?.close()
  })

  const BROWSERS = [
    ['de-AT', 'de', 'light'],
    ['en-GB', 'en', 'dark'],
  ] as const
  async function open(locale: string, language: Language, colorScheme: 'dark' | 'light') {
    const context = await chromium.browser.newContext({ locale, colorScheme, viewport: { width: 390, height: 844 } })
    const page = await context.newPage()

    await pairBrowser(page, served)
    return { page, texts: textsOf(language), close: () => context.close() }
  }

  it.each(BROWSERS.filter(([, language]) => IS_FULL_SIZE || language === 'de'))(
    'use the language of the page, too: the station (%s)',
    async (locale, language, scheme) => {
      const { page, texts, close } = await open(locale, language, scheme)
      await page.goto(`${served.url}/station?device=${STATION}`)
      for (const result of [
        denied('manual_assistance_required'),
        granted({ itemCount: 3, remaining: 2, offline: true }),
      ]) {
        bench.answer = () => result
        await page.fill('#code', 'x')
        await page.keyboard.press('Enter')
        await page.locator('.stage[data-view="result"]').waitFor()
        await expectWhole(page, 'result', language)
        await page.keyboard.press('Escape')
      }
      await page.getByRole('button', { name: texts.signIn }).click()
      await page.getByRole('button', { name: 'Frau Petersen' }).click()
      await page.getByRole('button', { name: 'OK', exact: true }).click()
      await page.getByText(texts.pinTooShort).waitFor()
      await expectWhole(page, 'sign-in', language)
      await close()
    },
  )

  it.each(BROWSERS.filter(([, language]) => IS_FULL_SIZE || language === 'en'))(
    'use the language of the page, too: set-up, and the switch of the language (%s)',
    async (locale, language, scheme) => {
      const { page, close } = await open(locale, language, scheme)
      await page.goto(`${served.url}/setup`)
      await page.locator(`[data-check="${STATION}"]`).click()
      const address = page.locator('#address')
      await address.fill('127.0.0.1:1')
      await address.press('Enter')
      await page.locator('[data-slot="search-technical"]').filter({ hasText: 'connection refused' }).waitFor()
      // Nothing that the agent said: the page names the cause.
      await page.route('**/v1/setup/*', (route) => route.fulfill({ status: 502, body: 'Bad gateway' }))
      const { what } = textsOf(language).requestFailed.unreachable
      await address.press('Enter')
      await expect.poll(() => page.textContent('[data-slot="search-status"]'), PATIENT).toContain(what)
      await page.locator(`[data-check="${STATION}"]`).click()
      await expect.poll(() => page.textContent(`[data-found="${STATION}"]`), PATIENT).toContain(what)
      await expectWhole(page, 'set-up', language)
      // The language switch works with the keyboard, and later pages use the chosen language.
      const other = textsOf(otherLanguage(language))
      await page.getByRole('link', { name: other.languageName }).focus()
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: other.setup.title, exact: true }).waitFor()
      await page.goto(`${served.url}/nothing`)
      await page.getByRole('heading', { name: other.problems.notFound.what }).waitFor()
      await expectWhole(page, 'unknown address', other.language)
      await close()
    },
  )

  async function expectWhole(page: Page, name: string, language: Language): Promise<void> {
    expectPage(name, await page.content(), language)
    expect([name, await violations(page)]).toEqual([name, []])
    expect([name, await page.evaluate('document.documentElement.scrollWidth <= innerWidth')]).toEqual([name, true])
  }
})
