// @module-tag extended
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../../host/http-server.ts'
import { violations } from '../../support/axe.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { startTestCloud, type TestCloud } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { IS_FULL_SIZE } from '../../support/full-size.ts'

const WHY = IS_FULL_SIZE ? NO_CHROMIUM : 'only in full size: UNTAG_TEST_FULL=true'

describe.skipIf(WHY)(`passkeys (${WHY ?? 'in Chromium'})`, () => {
  onEveryDatabase('a passkey', (kind) => {
    let cloud: TestCloud
    let chromium: TestBrowser
    let stop: () => Promise<void>
    let base: string

    beforeAll(async () => {
      const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
      base = `http://localhost:${server.port}`
      cloud = await startTestCloud(kind, { config: { baseUrl: `${base}/api/v1` } })
      server.serve(cloud.cloud.app)
      stop = () => server.close()
      chromium = await startChromium()
    })
    afterAll(async () => {
      await chromium?.close()
      await stop?.()
      await cloud?.stop()
    })

    /** A page whose browser has an authenticator that confirms each question of the browser. */
    async function openPage(): Promise<{ page: Page; confirms(isOn: boolean): Promise<void> }> {
      const page = await (await chromium.browser.newContext({ locale: 'en-GB' })).newPage()

      const devTools = await page.context().newCDPSession(page)
      await devTools.send('WebAuthn.enable')
      const { authenticatorId } = await devTools.send('WebAuthn.addVirtualAuthenticator', {
        options: {
          protocol: 'ctap2',
          transport: 'internal',
          hasResidentKey: true,
          hasUserVerification: true,
          isUserVerified: true,
          automaticPresenceSimulation: true,
        },
      })
      const confirms = async (isOn: boolean) => {
        await devTools.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: isOn })
      }
      return { page, confirms }
    }

    it('an owner adds a passkey, signs in with it, and removes it', async () => {
      const owner = await cloud.user('owner')
      const { url } = await cloud.ok(owner, 'inviteUser', { email: 'jana@shop.example', role: 'owner' })
      const { page, confirms } = await openPage()
      await page.goto(url)
      await page.getByLabel('Your name').fill('Jana Petersen')
      await page.getByLabel('New password').fill('vier Wörter, die niemand rät')
      await page.getByRole('button', { name: 'Accept and sign in' }).click()
      await page.waitForURL(`${base}/console`)

      await page.goto(`${base}/console/profile`)
      await page.getByRole('button', { name: 'Add a passkey' }).click()
      await page.getByLabel('Name of the passkey').fill('Handy')
      expect(await violations(page)).toEqual([])
      await confirms(false)
      await page.getByRole('button', { name: 'Create the passkey' }).click()
      await page.getByText('No passkey was used').waitFor()
      await confirms(true)
      await page.getByRole('button', { name: 'Create the passkey' }).click()
      await page.getByText('Handy', { exact: true }).waitFor()
      expect(await violations(page)).toEqual([])

      await page.context().clearCookies()
      await page.goto(`${base}/console/profile`)
      await page.getByText('· last used').waitFor() // The authenticator accepts the offer of the e-mail field at once.
      expect(page.url()).toBe(`${base}/console/profile`)

      await page.addInitScript('PublicKeyCredential.isConditionalMediationAvailable = async () => false')
      await page.context().clearCookies()
      await page.goto(`${base}/console/sign-in?to=/console/profile`)
      expect(await violations(page)).toEqual([])
      await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
      await page.waitForURL(`${base}/console/profile`)

      await page.getByRole('button', { name: 'Remove', exact: true }).first().click()
      await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
      await page.getByRole('button', { name: 'Sign in with a passkey' }).waitFor()
    })

    it('the buttons stay hidden without scripts', async () => {
      const context = await chromium.browser.newContext({ javaScriptEnabled: false, locale: 'en-GB' })
      const page = await context.newPage()
      await page.goto(`${base}/console/sign-in`)
      expect(await page.getByText('Sign in with a passkey').isVisible()).toBe(false)
      await context.close()
    })
  })
})
