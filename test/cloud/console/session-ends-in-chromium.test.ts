// @module-tag extended
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../../host/http-server.ts'
import { violations } from '../../support/axe.ts'
import { ensureBuilt } from '../../support/built.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { startTestCloud, type TestCloud } from '../../support/cloud.ts'

const PASSWORD = 'vier Wörter, die niemand rät'
const EMAIL = 'jana@shop.example'

describe.skipIf(NO_CHROMIUM)('a session that ends in a form', () => {
  let cloud: TestCloud
  let browser: TestBrowser
  let server: Awaited<ReturnType<typeof listen>>
  let base: string
  beforeAll(async () => {
    await ensureBuilt()
    cloud = await startTestCloud('sqlite', { config: { baseUrl: 'http://localhost/api/v1' } })
    server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
    server.serve(cloud.cloud.app)
    base = `http://localhost:${server.port}`
    browser = await startChromium()
    await cloud.ok(await cloud.key('secret'), 'fetchStores')
    const { url } = await cloud.ok(await cloud.user('owner'), 'inviteUser', { email: EMAIL, role: 'manager' })
    const token = new URL(url).pathname.split('/').pop()
    await cloud.ok(null as never, 'acceptInvitation', { token, name: 'Jana', password: PASSWORD })
  })
  afterAll(async () => {
    await browser?.close()
    await server?.close()
    await cloud?.stop()
  })

  const signIn = async (page: Page) => {
    await page.getByLabel('E-Mail-Adresse').fill(EMAIL)
    await page.getByLabel('Passwort').fill(PASSWORD)
    await page.getByRole('button', { name: 'Anmelden' }).click()
  }
  const endSessions = () => cloud.db.database.write((db) => db.deleteFrom('user_session').execute())
  const ENDED = 'Ihre Sitzung ist beendet'
  const nameIn = (page: Page) => page.getByLabel('Name').first()
  const pinIn = (page: Page) => page.locator('input[name="pin"]').first()

  /** A phone whose user has opened the page of the operators. */
  async function open(path = '/console/operators') {
    const context = await browser.browser.newContext({ locale: 'de', viewport: { width: 390, height: 844 } })
    const page = await context.newPage()
    await page.goto(`${base}${path}`)
    expect(await page.getByText(ENDED).count()).toBe(0)
    await signIn(page)
    await nameIn(page).waitFor()
    return { context, page }
  }

  it('says why the person must sign in, and keeps what was typed, but no PIN', async () => {
    const { context, page } = await open()
    await nameIn(page).fill('Frau Petersen')
    await pinIn(page).fill('471108')
    await endSessions()
    await page
      .getByRole('button', { name: /hinzufügen|anlegen|eintragen/i })
      .first()
      .click()
    await page.getByText(ENDED).waitFor()
    expect(await violations(page)).toEqual([])
    await signIn(page)
    await expect.poll(() => nameIn(page).inputValue()).toBe('Frau Petersen')
    expect(await pinIn(page).inputValue()).toBe('')
    // The text is returned once.
    await page.reload()
    expect(await nameIn(page).inputValue()).toBe('')
    await context.close()
  })

  it('says the same in the other language, and returns to the form', async () => {
    for (const isCookieGone of [false, true]) {
      const { context, page } = await open('/console/operators?lang=de')
      await nameIn(page).fill('Frau Petersen')
      await endSessions()
      if (isCookieGone) await context.clearCookies()
      await page.locator('nav.bottom a').first().click()
      await page.getByText(ENDED).waitFor()
      await page.getByRole('link', { name: 'English' }).click()
      await page.getByText('Your session has ended').waitFor()
      await page.getByLabel('E-mail').fill(EMAIL)
      await page.getByLabel('Password').fill(PASSWORD)
      await page.getByRole('button', { name: 'Sign in', exact: true }).click()
      await page.waitForURL('**/console/operators**')
      await expect.poll(() => nameIn(page).inputValue()).toBe('Frau Petersen')
      await context.close()
    }
  })

  it.each([
    ['a link of the menu', async (page: Page) => page.locator('nav.bottom a').first().click()],
    ['a reload', async (page: Page) => page.reload()],
    ['another address', async (page: Page) => page.goto(`${base}/console/stock`)],
  ])('returns from the sign-in to the form that was left by %s', async (_, leave) => {
    for (const isCookieGone of [false, true]) {
      const { context, page } = await open()
      await nameIn(page).fill('Frau Petersen')
      await pinIn(page).fill('471108')
      expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain('471108')
      if (isCookieGone) await context.clearCookies()
      else await endSessions()
      await leave(page)
      await page.getByText(ENDED).waitFor()
      expect(await violations(page)).toEqual([])
      // A wrong password does not lose the way back.
      await page.getByLabel('E-Mail-Adresse').fill(EMAIL)
      await page.getByLabel('Passwort').fill('wrong wrong wrong')
      await page.getByRole('button', { name: 'Anmelden' }).click()
      await page.getByText('Sie sind nicht angemeldet').waitFor()
      await signIn(page)
      await page.waitForURL('**/console/operators')
      await expect.poll(() => nameIn(page).inputValue()).toBe('Frau Petersen')
      expect(await pinIn(page).inputValue()).toBe('')
      expect(await page.evaluate("sessionStorage.getItem('untag-typed')")).toBeNull()
      await context.close()
    }
  })

  it('keeps nothing for the next user, after a sign-out or when the person left the form', async () => {
    const { context, page } = await open()
    await nameIn(page).fill('Frau Petersen')
    await page.goto(`${base}/console/stock`)
    await page.goto(`${base}/console/operators`)
    expect(await nameIn(page).inputValue()).toBe('')
    await nameIn(page).fill('Frau Petersen')
    await page.locator('button[popovertarget="account"]').click()
    await page.getByRole('button', { name: 'Abmelden', exact: true }).click()
    await page.getByLabel('E-Mail-Adresse').waitFor()
    expect(await page.getByText(ENDED).count()).toBe(0)
    expect(await page.evaluate("sessionStorage.getItem('untag-typed') ?? localStorage.length")).toBe(0)
    await page.goto(`${base}/console/operators`)
    await signIn(page)
    await nameIn(page).fill('Frau Petersen')
    await context.clearCookies()
    await page.reload()
    const other = 'lea@shop.example'
    const { url } = await cloud.ok(await cloud.user('owner'), 'inviteUser', { email: other, role: 'manager' })
    const token = new URL(url).pathname.split('/').pop()
    await cloud.ok(null as never, 'acceptInvitation', { token, name: 'Lea', password: PASSWORD })
    await page.getByLabel('E-Mail-Adresse').fill(other)
    await page.getByLabel('Passwort').fill(PASSWORD)
    await page.getByRole('button', { name: 'Anmelden' }).click()
    await page.waitForURL('**/console/operators')
    expect(await nameIn(page).inputValue()).toBe('')
    await context.close()
  })
})
