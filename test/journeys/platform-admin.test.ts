// @module-tag extended
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { TOTP } from 'otpauth'
import type { BrowserContextOptions, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { shopper, type Shopper } from '../../simulators/services/shopper.ts'
import { violations } from '../support/axe.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../support/chromium.ts'
import { newMigratedPostgres, onEveryDatabase, temporaryFolder } from '../support/databases.ts'
import { runProcess, startProcess, type RunningProcess } from '../support/processes.ts'

const EMAIL = 'maria@platform.example'
const PASSWORD = 'vier Wörter, die niemand rät'
const LOOKS = [
  { lang: 'de', colorScheme: 'dark', viewport: { width: 390, height: 844 } },
  { lang: 'de', colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  { lang: 'en', colorScheme: 'light', viewport: { width: 390, height: 844 } },
  { lang: 'en', colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
] as const

/** From an invitation on the command line to a changed package, as a person who runs the cloud does it. */
describe.skipIf(NO_CHROMIUM)(`a person who runs the cloud (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  onEveryDatabase('works in the console', (kind) => {
    const folder = temporaryFolder('platform-admin')
    let postgres: Awaited<ReturnType<typeof newMigratedPostgres>> | undefined
    let place: string[]
    let cloud: RunningProcess
    let origin: string
    let merchant: Shopper
    let chromium: TestBrowser
    let page: Page

    const untag = async (...args: string[]) => {
      const { code, stdout, stderr } = await runProcess([...args, ...place])
      expect([args.slice(0, 2), code, stderr]).toEqual([args.slice(0, 2), 0, ''])
      return stdout.trim()
    }
    beforeAll(async () => {
      postgres = kind === 'postgres' ? await newMigratedPostgres() : undefined
      const data = `--data=${join(folder, 'cloud')}`
      place = postgres ? [`--database-url=${postgres.url}`, data] : [data]
      cloud = await startProcess(['cloud', '--port=0', '--mqtt-port=0', '--metrics-port=0', ...place])
      // The link of an invitation names this host, too.
      origin = new URL(cloud.ready['baseUrl']?.replace('127.0.0.1', 'localhost') ?? '').origin
      const key = await untag('keys', 'create', '--account', 'Hafenkante', '--mode', 'live', '--package', 'DISCOVER')
      merchant = shopper({ baseUrl: cloud.ready['baseUrl'] ?? '', key, fetch })
      for (const tradingName of ['Hafenkante Kai', 'Hafenkante Bremen'])
        await merchant.call('submitStoreRegistration', {
          companyName: 'Hafenkante GmbH',
          tradingName,
          address: { street: 'Kai 1', city: 'Hamburg', zip: '20457', country: 'DE' },
          package: 'GROW',
        })
      chromium = await startChromium()
      page = await (await chromium.browser.newContext({ locale: 'en-GB' })).newPage()
    })
    afterAll(async () => {
      await chromium?.close()
      await cloud?.stop()
      await postgres?.remove()
      rmSync(folder, { recursive: true, force: true })
    })

    it('accepts the link of the command line, and sets up an authenticator app before anything else', async () => {
      await page.goto(await untag('admins', 'invite', '--email', EMAIL))
      await page.getByLabel('Your name').fill('Maria Jansen')
      await page.getByLabel('New password').fill(PASSWORD)
      await page.getByRole('button', { name: 'Accept and sign in' }).click()
      await page.getByText('A second factor is needed').waitFor()
      expect(await violations(page)).toEqual([])
      await page.goto(`${origin}/console/accounts`)
      await page.getByText('A second factor is needed').waitFor()
      await page.getByRole('button', { name: 'Set up an authenticator app' }).click()
      const secret = (await page.locator('main code').first().textContent()) ?? ''
      await page.getByLabel('Six digits of the app').fill(new TOTP({ secret }).generate({ timestamp: Date.now() }))
      await page.getByRole('button', { name: 'Confirm' }).click()
      await page.getByText('Write down these recovery codes').waitFor()
      await page.getByRole('link', { name: 'Go to the start page' }).click()
      await page.getByRole('heading', { name: 'Registrations', level: 1 }).waitFor()
      expect(await untag('admins', 'list')).toContain(EMAIL)
    })

    it('approves one registration and rejects another with the keyboard, and the merchant reads the reason', async () => {
      const card = (name: string) => page.locator('section.card').filter({ hasText: name })
      await card('Hafenkante Kai').getByRole('button', { name: 'Approve' }).first().focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click()
      await page.getByText('Approved. The store is there.').waitFor()
      await card('Hafenkante Bremen').getByRole('button', { name: 'Reject' }).first().focus()
      await page.keyboard.press('Enter')
      await page.getByLabel('Reason for the merchant').fill('Die Anschrift fehlt.')
      await page.getByRole('dialog').getByRole('button', { name: 'Reject' }).click()
      await page.getByText('Rejected. The merchant reads the reason.').waitFor()
      await page.getByText('Nothing waits for review').waitFor()
      expect(await merchant.call('fetchRegistrations', { status: 'rejected' })).toMatchObject({
        registrations: [{ tradingName: 'Hafenkante Bremen', reason: 'Die Anschrift fehlt.' }],
      })
    })

    it('finds the account, sees what another package changes, and changes it', async () => {
      await page.getByRole('link', { name: 'Accounts' }).first().click()
      await page.getByLabel('Name or id').fill('hafen')
      await page.keyboard.press('Enter')
      await page.waitForURL(/q=hafen/)
      await page.getByRole('link', { name: 'Hafenkante', exact: true }).click()
      await page.getByRole('link', { name: 'Change the package: Hafenkante Kai' }).click()
      await page.getByLabel('New package').selectOption('PRIME')
      await page.getByRole('button', { name: 'Show what changes' }).click()
      await page.getByRole('row', { name: 'Package of the account GROW PRIME' }).waitFor()
      await page.getByRole('button', { name: 'Change to PRIME' }).click()
      await page.getByText('The package is changed.').waitFor()
      expect(await merchant.call('fetchStores', {})).toMatchObject({ stores: [{ package: 'PRIME' }] })
      await page.goto(`${origin}/console/audit`)
      await page.getByRole('row', { name: /setStorePackage.*Maria Jansen/ }).waitFor()
    })

    it('reads every page in both languages, light and dark, on a phone and a desktop', async () => {
      await page.goto(`${origin}/console/accounts`)
      const account = (await page.getByRole('link', { name: 'Hafenkante', exact: true }).getAttribute('href')) ?? ''
      const { stores } = (await merchant.call('fetchStores', {})) as { stores: { storeId: string }[] }
      const storageState = await page.context().storageState()
      for (const { lang, ...look } of LOOKS) {
        const options: BrowserContextOptions = { ...look, storageState, reducedMotion: 'reduce' }
        const context = await chromium.browser.newContext(options)
        const other = await context.newPage()
        for (const path of [
          '/console/registrations?status=rejected',
          '/console/registrations?status=approved',
          '/console/accounts?q=hafen',
          account,
          `${account}?store_id=${stores[0]?.storeId}&package=GO`,
          '/console/audit?',
          '/console/profile?',
        ]) {
          await other.goto(`${origin}${path}${path.includes('?') ? '&' : '?'}lang=${lang}`)
          const fits = await other.evaluate('document.documentElement.scrollWidth <= innerWidth')
          expect([path, lang, look, fits, await violations(other)]).toEqual([path, lang, look, true, []])
        }
        await context.close()
      }
    })

    it('is signed out at the next click after the command line removed the person', async () => {
      await untag('admins', 'remove', '--email', EMAIL)
      await page.goto(`${origin}/console/registrations`)
      await page.getByLabel('Password').waitFor()
    })
  })
})
