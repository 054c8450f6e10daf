// @module-tag extended
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

  it('says why the person must sign in, and keeps what was typed, but no PIN', async () => {
    const context = await browser.browser.newContext({ locale: 'de', viewport: { width: 390, height: 844 } })
    const page = await context.newPage()
    const signIn = async () => {
      await page.getByLabel('E-Mail-Adresse').fill(EMAIL)
      await page.getByLabel('Passwort').fill(PASSWORD)
      await page.getByRole('button', { name: 'Anmelden' }).click()
    }
    await page.goto(`${base}/console/operators`)
    expect(await page.getByText('Ihre Sitzung ist beendet').count()).toBe(0)
    await signIn()
    await page.getByLabel('Name').first().fill('Frau Petersen')
    await page.locator('input[name="pin"]').first().fill('471108')
    await cloud.db.database.write((db) => db.deleteFrom('user_session').execute())
    await page
      .getByRole('button', { name: /hinzufügen|anlegen|eintragen/i })
      .first()
      .click()
    await page.getByText('Ihre Sitzung ist beendet').waitFor()
    expect(await violations(page)).toEqual([])
    await signIn()
    await expect.poll(() => page.getByLabel('Name').first().inputValue()).toBe('Frau Petersen')
    expect(await page.locator('input[name="pin"]').first().inputValue()).toBe('')
    // A form that was answered leaves nothing.
    await page.reload()
    expect(await page.getByLabel('Name').first().inputValue()).toBe('')
    await context.close()
  })
})
