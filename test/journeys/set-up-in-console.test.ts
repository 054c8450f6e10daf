// @module-tag extended
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { realPlatform } from '../../host/platform.ts'

import { RelayBoard } from '../../simulators/devices/modbus.ts'
import { serveTcp, type TcpService } from '../../simulators/devices/serve.ts'
import { violations } from '../support/axe.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../support/chromium.ts'
import { startConsoleJourney, type ConsoleJourney } from '../support/console-journey.ts'

const SIZES = [
  [1280, 800],
  [390, 844],
  [1024, 600],
] as const

/** A manager makes codes in the console of `untag start`, and a technician adds a relay board at its agent. */
describe.skipIf(NO_CHROMIUM)(`the set-up of a device (${NO_CHROMIUM ?? 'in Chromium'})`, () => {
  let shop: ConsoleJourney
  let chromium: TestBrowser
  let board: RelayBoard
  let service: TcpService
  let context: BrowserContext

  beforeAll(async () => {
    board = new RelayBoard({ platform: realPlatform() })
    service = await serveTcp({ port: 0, serve: (link) => board.serve(link) })
    shop = await startConsoleJourney('sqlite', 'set-up-in-console')
    chromium = await startChromium()
    context = await chromium.browser.newContext({ viewport: { width: 1280, height: 800 } })
    const page = await context.newPage()
    await shop.signIn(page)
    await page.goto(shop.pairingUrl)
    await page.waitForURL(/\/station/)
    await page.close()
  })
  afterAll(async () => {
    await chromium?.close()
    await shop?.stop()
    await service?.close()
  })

  /** Every size is accessible and fits. */
  async function isClean(page: Page, name: string): Promise<void> {
    const folder = process.env['UNTAG_SCREENSHOTS']
    for (const [width, height] of SIZES) {
      await page.setViewportSize({ width, height })
      expect([name, width, await violations(page)]).toEqual([name, width, []])
      const isWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
      expect([name, width, isWide]).toEqual([name, width, false])
      if (folder) await page.screenshot({ path: `${folder}/${name}-${width}.png`, fullPage: true })
    }
  }

  it.each(['en', 'de'] as const)(
    'makes an enrolment code and a set-up code, with which the agent adds, uses and tests a board at once (%s)',
    async (lang) => {
      const page = await context.newPage()
      const devices = `${shop.origin}/console/agents?mode=test&store=${shop.storeId}&lang=${lang}`
      await page.goto(devices)
      await page.locator('form:has(input[name=name]) button[type=submit]').click()
      const command = await page.locator('.command pre').first().innerText()
      expect(command).toMatch(/^untag edge enrol --cloud http\S+\/api\/v1 --code \S{34}$/)
      await page.getByRole('img', { name: lang === 'en' ? 'QR code of the command' : 'QR-Code des Befehls' }).waitFor()
      await isClean(page, `enrolment-${lang}`)
      await page.goto(devices)
      await isClean(page, `devices-${lang}`)
      await page.locator('form:has(input[name=_action][value=setup]) button[type=submit]').click()
      const code = await page.locator('.big-code').innerText()

      const technician = await context.newPage()
      await technician.goto(`${shop.agentUrl}/setup?lang=${lang}`)
      await technician.fill('#address', `127.0.0.1:${service.port}`)
      await technician.keyboard.press('Enter')
      const form = technician.locator('[data-slot="search-entry"] form')
      await form.locator('[data-code]').fill(code)
      await form.locator('[data-name]').fill(`Vitrine ${lang}`)
      await form.locator('[data-type]').selectOption('cabinet_unlocker')
      const field = (path: string) => form.locator(`[data-path="${path}"] :is(input, select)`)
      await field('output').fill(lang === 'en' ? '1' : '2')
      await field('confirmInput').fill('')
      // A setting that other devices make necessary is in sight before it is missed.
      await field('opensInEmergency').waitFor({ state: 'visible' })
      await form.locator('button[type=submit]').click()
      // The gate of the demonstration has a fire panel, so each lock must say what it does in a fire.
      const missing = await form.locator('[data-path=opensInEmergency] .field-fault').innerText()
      expect(missing).toMatch(lang === 'en' ? /^Please fill in this field\.$/ : /^Bitte dieses Feld ausfüllen\.$/)
      await isClean(technician, `setup-fault-${lang}`)
      await field('opensInEmergency').selectOption('false')
      await form.locator('[data-code]').fill('AAAA-AAAA-AAAA')
      await form.locator('button[type=submit]').click()
      const wrong = await form.locator('[data-code-field] .field-fault').innerText()
      expect(wrong).toMatch(lang === 'en' ? /^This code is wrong/ : /^Dieser Code ist falsch/)
      expect(await form.locator('[data-code]').getAttribute('aria-invalid')).toBe('true')
      await form.locator('[data-code]').fill(code)
      await form.locator('button[type=submit]').click()
      await technician
        .locator('[data-added][data-tone=good]')
        .filter({ hasText: `Vitrine ${lang}` })
        .waitFor()
      await isClean(technician, `setup-added-${lang}`)
      const tests = technician
        .locator('[data-tests]')
        .filter({ has: technician.locator('[data-test=release]') })
        .last()
      expect(await tests.locator('[data-test]').count()).toBe(1)
      await tests.locator('[data-test=release]').click()
      await expect.poll(() => board.log.filter(({ on }) => on).map(({ coil }) => coil)).toContain(lang === 'en' ? 1 : 2)

      await page.goto(devices)
      const row = page.locator('tr').filter({ hasText: `Vitrine ${lang}` })
      await expect
        .poll(async () => (await page.reload(), await row.innerText()), { timeout: 30_000, interval: 2_000 })
        .toMatch(lang === 'en' ? /Ready/ : /Bereit/)
      await page.close()
      await technician.close()
    },
  )
})
