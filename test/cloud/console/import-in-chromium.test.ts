// @module-tag extended
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkDigit } from '../../../policy/gs1/gtin.ts'
import { listen } from '../../../host/http-server.ts'
import { violations } from '../../support/axe.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { consoleOf, fillConsole } from '../../support/console.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'

const ROWS = 10_000
const WRONG = [17, 4_321, 9_999]

/** A file of products. The rows of `wrong` have no price. */
function fileOf(wrong: readonly number[]) {
  const rows = Array.from({ length: ROWS }, (_, i) => {
    const digits = `400${String(i).padStart(9, '0')}`
    return `${digits}${checkDigit(digits)};Knopf ${i};${wrong.includes(i) ? 'viel' : '1,99'};19`
  })
  const buffer = Buffer.from(['ean;name;price;vat', ...rows].join('\r\n'))
  return { name: 'range.csv', mimeType: 'text/csv', buffer }
}

/** A large import through the console: a check that names the wrong rows, then the corrected file. */
onEveryDatabase('an import in the console', (kind) => {
  describe.skipIf(NO_CHROMIUM)(NO_CHROMIUM ?? 'in Chromium', () => {
    let shop: Shop
    let chromium: TestBrowser
    let stop: () => Promise<void>
    let base: string

    beforeAll(async () => {
      shop = await openShop(kind)
      const { accountId } = await fillConsole(shop)
      const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
      server.serve(consoleOf(shop, accountId, undefined, 'manager'))
      base = `http://127.0.0.1:${server.port}`
      stop = () => server.close()
      chromium = await startChromium()
    })
    afterAll(async () => {
      await chromium?.close()
      await stop?.()
      await shop?.stop()
    })

    // Without scripts the same statements run.
    it.each(kind === 'sqlite' ? [true, false] : [true])(
      'names wrong rows of 10,000, and imports the corrected file (scripts: %s)',
      async (scripts) => {
        const context = await chromium.browser.newContext({ javaScriptEnabled: scripts, reducedMotion: 'reduce' })
        const page = await context.newPage()
        await page.goto(`${base}/console/products?mode=test&store=${shop.storeId}&lang=en`)
        await page.getByRole('link', { name: 'Import a file' }).click()
        const send = async (wrong: readonly number[], what: string) => {
          await page.getByLabel('File', { exact: true }).setInputFiles(fileOf(wrong))
          await page.getByLabel(what).check()
          await page.getByRole('button', { name: 'Send the file' }).click()
        }
        await send(WRONG, 'Check only')
        await page.getByText('The file is checked').waitFor()
        const rows = await page.locator('tbody th').allTextContents()
        // The first row has the names of the columns.
        expect(rows).toEqual(WRONG.map((i) => `Row ${i + 2}`))
        if (scripts) expect(await violations(page)).toEqual([])
        await send([], 'Import')
        await page.getByText('The import is done').waitFor()
        expect(await page.locator('.figure .value').allTextContents()).toEqual(['10,000', '10,000', '0'])
        const { products } = await shop.ok('searchProducts', { storeId: shop.storeId, q: 'Knopf 4321' })
        expect(products).toMatchObject([{ price: 1.99 }])
        await context.close()
      },
    )
  })
})
