import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../support/chromium.ts'
import { temporaryFolder } from '../support/databases.ts'
import { COMMAND } from '../support/processes.ts'

const IS_FULL = process.env['UNTAG_TEST_FULL'] === 'true'

/** A person carries unpaid goods past the simulated reader of `untag start`, and a guard handles it on a phone. */
describe.skipIf(NO_CHROMIUM ?? !IS_FULL)(
  `an alarm at the gate, in the console (${NO_CHROMIUM ?? 'in Chromium'})`,
  () => {
    let start: ChildProcess
    let chromium: TestBrowser
    let page: Page

    beforeAll(async () => {
      const data = join(temporaryFolder('alarm-in-console'), 'demo')
      const ports = ['--port', '0', '--mqtt-port', '0', '--edge-port', '0']
      start = spawn(process.execPath, [COMMAND, 'start', ...ports, '--data', data], {
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      chromium = await startChromium()
      const ready = await readyLine(start)
      const context = await chromium.browser.newContext({ viewport: { width: 390, height: 844 }, locale: 'en' })
      page = await context.newPage()
      await page.goto(ready['consoleUrl'] ?? '')
      await page.locator('input[name=email]').fill(ready['consoleUser'] ?? '')
      await page.locator('input[name=password]').fill(ready['consolePassword'] ?? '')
      await page.locator('form:has(input[name=password]) button[type=submit]').click()
      const origin = new URL(ready['consoleUrl'] ?? '').origin
      const stream = page.waitForResponse((response) => response.url().includes('/console/live?') && isOfAlarms(page))
      await page.waitForURL((url) => url.pathname === '/console')
      const storeId = await storeOfGate(ready)
      await page.goto(`${origin}/console/alarms?mode=test&store=${storeId}`)
      await stream
    }, 90_000)
    afterAll(async () => {
      await chromium?.close()
      start?.kill('SIGKILL')
    })

    const isOfAlarms = (of: Page) => of.url().includes('/console/alarms')
    const open = () =>
      page
        .locator('article[data-alarm].alarm')
        .evaluateAll((cards) => cards.map((card) => card.getAttribute('data-alarm')))
    const figure = (label: string) => page.locator('.figure').filter({ hasText: label }).locator('.value').innerText()

    it('appears by itself, the newest first, sounds, is acknowledged, disposed of and counted', async () => {
      const before = await open()
      const recorded = Number(await figure('Recorded in 24 hours'))
      await page.evaluate(
        `addEventListener('untag:alarm', () => (globalThis.rings = (globalThis.rings ?? 0) + 1), true)`,
      )
      start.stdin?.write('u')
      await expect.poll(async () => (await open()).length, { timeout: 20_000 }).toBe(before.length + 1)
      const [first] = await open()
      start.stdin?.write('u')
      await expect.poll(async () => (await open()).length, { timeout: 20_000 }).toBe(before.length + 2)
      const [second, ...older] = await open()
      expect(second).not.toBe(first)
      expect(older).toEqual([first, ...before])
      await expect.poll(() => page.evaluate('globalThis.rings')).toBe(2)

      const card = page.locator(`article[data-alarm="${second}"]`)
      expect(await card.innerText()).toMatch(/€[\d.]+[\s\S]*No receipt fits/)
      await card.getByRole('button', { name: 'I take care of it' }).click()
      await card.getByText('takes care').waitFor()
      expect(await open()).toEqual(older)
      // Two taps: the menu, and the cause.
      await card.getByRole('button', { name: 'Record the cause' }).click()
      await card.getByLabel('Value of recovered goods').fill('12,50')
      await card.getByRole('button', { name: 'Theft' }).click()
      await page.getByText('The cause is recorded').waitFor()
      await expect.poll(() => card.count()).toBe(0)
      expect(Number(await figure('Recorded in 24 hours'))).toBe(recorded + 1)
      const row = page.getByRole('row').nth(1)
      expect(await row.innerText()).toMatch(/Theft[\s\S]*€12\.50/)
    }, 60_000)
  },
)

/** The fields of the `ready` line. */
function readyLine({ stdout }: ChildProcess): Promise<Record<string, string>> {
  return new Promise((resolve) => {
    createInterface({ input: stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (line.startsWith('ready ')) resolve(JSON.parse(line.slice('ready '.length)) as Record<string, string>)
    })
  })
}

/** The store with the simulated gate. */
async function storeOfGate({ baseUrl, key }: Record<string, string>): Promise<string> {
  const response = await fetch(`${baseUrl}/fetchStores`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: '{}',
  })
  const { stores } = (await response.json()) as { stores: { storeId: string; securityTagMode: string }[] }
  return stores.find(({ securityTagMode }) => securityTagMode === 'rfid')!.storeId
}
