// @module-tag extended
import { TOTP } from 'otpauth'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../support/chromium.ts'
import { startConsoleJourney, type ConsoleJourney } from '../support/console-journey.ts'
import { onEveryDatabase } from '../support/databases.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'

const WHY = IS_FULL_SIZE ? NO_CHROMIUM : 'only in full size: UNTAG_TEST_FULL=true'
const PASSWORD = 'vier Wörter, die niemand rät'

/** Owner and manager at work in the console of `untag start`, each in an own browser. */
describe.skipIf(WHY)(`people in the console (${WHY ?? 'in Chromium'})`, () => {
  onEveryDatabase('owner and manager', (kind) => {
    let shop: ConsoleJourney
    let chromium: TestBrowser
    let owner: Page
    let manager: Page

    beforeAll(async () => {
      shop = await startConsoleJourney(kind, 'people-in-console')
      chromium = await startChromium()
      owner = await newPage()
      manager = await newPage()
      await shop.signIn(owner)
    })
    afterAll(async () => {
      await chromium?.close()
      await shop?.stop()
    })

    async function newPage(): Promise<Page> {
      const context: BrowserContext = await chromium.browser.newContext({ locale: 'en-GB' })
      const page = await context.newPage()

      return page
    }
    const at = (path: string) => `${shop.origin}${path}`

    it('an owner invites a manager, who sees one store and reaches no other by any address', async () => {
      await owner.goto(at('/console/users'))
      await owner.getByLabel('E-mail address').fill('jana@shop.example')
      await owner.getByLabel('Role', { exact: true }).first().selectOption('manager')
      await owner.getByLabel('Store (empty: all stores)').selectOption(shop.storeId)
      await owner.getByRole('button', { name: 'Invite' }).click()
      const link = owner.getByText(/\/console\/invitation/)
      await link.first().waitFor()
      const [, url = ''] = /(https?:\/\/[^\s"<]*invitation[^\s"<]*)/.exec(await owner.content()) ?? []

      await manager.goto(url.replaceAll('&amp;', '&'))
      await manager.getByLabel('Your name').fill('Jana Petersen')
      await manager.getByLabel('New password').fill(PASSWORD)
      await manager.getByRole('button', { name: 'Accept and sign in' }).click()
      await manager.waitForURL(at('/console'))
      expect(await manager.content()).toContain(shop.storeId)
      expect(await manager.content()).not.toContain(shop.otherStoreId)
      for (const path of ['', '/alarms', '/approvals', '/help', '/orders', '/stock', '/operators', '/closings']) {
        await manager.goto(at(`/console${path}?store=${shop.otherStoreId}`))
        expect([path, (await manager.locator('body').innerHTML()).includes(shop.otherStoreId)]).toEqual([path, false])
      }
    })

    it('a manager approves a basket, and the customer can pay', async () => {
      await manager.goto(at(`/console/approvals?store=${shop.storeId}`))
      const waiting = async () =>
        (
          (await shop.api.call('fetchPurchaseHistory', { storeId: shop.storeId, awaitingApproval: true })) as {
            total: number
          }
        ).total
      const before = await waiting()
      expect(before).toBeGreaterThan(0)
      await manager
        .getByRole('button', { name: /let them pay/ })
        .first()
        .click()
      await manager.getByText('Approved: the customer can pay now').waitFor()
      expect(await waiting()).toBe(before - 1)
    })

    it('a manager answers a chat, and the answer is on the open page of the customer', async () => {
      const { zones } = (await shop.api.call('fetchZones', { storeId: shop.storeId })) as {
        zones: { zoneId: string }[]
      }
      const { url } = (await shop.api.call('requestAssistance', {
        zoneId: zones[0]?.zoneId,
        message: 'Haben Sie das in Blau?',
      })) as { url: string }
      const customer = await newPage()
      await customer.goto(url)
      await manager.goto(at(`/console/help?store=${shop.storeId}`))
      const row = manager.getByRole('listitem').filter({ hasText: 'Haben Sie das in Blau?' })
      await row.getByRole('link', { name: /^Open/ }).click()
      await manager.getByLabel('Your answer').fill('Ja, ich bringe es Ihnen.')
      await manager.getByRole('button', { name: 'Send', exact: true }).click()
      await manager.getByText('Sent', { exact: true }).waitFor()
      // The page of the customer updates by itself.
      await customer.getByText('Ja, ich bringe es Ihnen.').waitFor()
    })

    it('a manager sets up the authenticator app, and signs in with password and code', async () => {
      await manager.goto(at('/console/profile'))
      await manager.getByRole('button', { name: 'Set up an authenticator app' }).click()
      await manager.getByText('Scan this code with the app').waitFor()
      const [, secret = ''] = /([A-Z2-7]{32})/.exec(await manager.locator('main').innerText()) ?? []
      const code = (steps: number) => new TOTP({ secret }).generate({ timestamp: Date.now() + steps * 30_000 })
      await manager.getByLabel('Code', { exact: true }).fill(code(0))
      await manager.getByRole('button', { name: 'Confirm' }).click()
      await manager.getByText('recovery codes').first().waitFor()
      await manager.context().clearCookies()
      await manager.goto(at('/console/profile'))
      await manager.getByLabel('E-mail address').fill('jana@shop.example')
      await manager.getByLabel('Password').fill(PASSWORD)
      await manager.getByRole('button', { name: 'Sign in', exact: true }).click()
      // A code works once, so the sign-in takes the code of the next 30 s.
      await manager.getByLabel('Code').fill(code(1))
      await manager.locator('form:has(input[name=code]) button[type=submit]').click()
      await manager.getByRole('heading', { name: 'My profile' }).waitFor()
      expect(new URL(manager.url()).pathname).toBe('/console/profile')
    })
  })
})
