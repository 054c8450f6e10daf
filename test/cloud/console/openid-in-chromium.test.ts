// @module-tag extended
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../../host/http-server.ts'
import { outgoingHttp } from '../../../host/outgoing-http.ts'
import { violations } from '../../support/axe.ts'
import { NO_WHOLE_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { startTestCloud, type TestCloud } from '../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../support/databases.ts'
import { CLIENT, startIdentityProvider, type TestIdentityProvider } from '../../support/identity-provider.ts'

const EMAIL = 'jana@shop.example'

/** The real `oidc-provider` on an own origin, so that the browser follows its redirects and keeps the cookies apart. */
describe.skipIf(NO_WHOLE_CHROMIUM)(`OpenID Connect (${NO_WHOLE_CHROMIUM ?? 'in Chromium'})`, () => {
  inFullSizeOnEveryDatabase('sign-in', (kind) => {
    let idp: TestIdentityProvider
    let cloud: TestCloud
    let chromium: TestBrowser
    let stop: () => Promise<void>
    let base: string
    let page: Page

    beforeAll(async () => {
      const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
      base = `http://localhost:${server.port}`
      idp = await startIdentityProvider(`${base}/console/sign-in/openid-connect/callback`)
      const openId = {
        issuer: idp.issuer,
        clientId: CLIENT.id,
        clientSecret: CLIENT.secret,
        name: 'Hafen-ID',
        domains: [],
      }
      cloud = await startTestCloud(kind, { outgoing: outgoingHttp(), config: { baseUrl: `${base}/api/v1`, openId } })
      server.serve(cloud.cloud.app)
      stop = () => server.close()
      chromium = await startChromium('whole')
      page = await (await chromium.browser.newContext({ locale: 'en-GB' })).newPage()
    })
    afterAll(async () => {
      await chromium?.close()
      await stop?.()
      await cloud?.stop()
      await idp?.close()
    })

    const press = () => page.getByRole('link', { name: 'Sign in with Hafen-ID' }).click()

    it('of an invited person leads back to the page that was asked for', async () => {
      await cloud.ok(await cloud.user('owner'), 'inviteUser', { email: EMAIL, role: 'manager' })
      idp.state.person = { sub: 'jana', email: EMAIL, email_verified: true, name: 'Jana Petersen' }
      await page.goto(`${base}/console/profile`)
      expect(await violations(page)).toEqual([])
      await press()
      await page.getByRole('heading', { name: 'My profile' }).waitFor()
      expect(page.url()).toBe(`${base}/console/profile`)
      expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('Jana Petersen')
    })

    it('of a stranger, and while the provider is down, says what to do instead', async () => {
      await page.context().clearCookies()
      idp.state.person = { sub: 'stranger', email: 'nobody@shop.example', email_verified: true }
      await page.goto(`${base}/console`)
      await press()
      await page.getByText('Ask an owner or administrator for an invitation').waitFor()
      expect(await violations(page)).toEqual([])
      idp.state.isDown = true
      await page.context().clearCookies()
      await page.goto(`${base}/console`)
      await press()
      await page
        .getByText(/Hafen-ID is not possible now|503/)
        .first()
        .waitFor()
      idp.state.isDown = false
    })
  })
})
