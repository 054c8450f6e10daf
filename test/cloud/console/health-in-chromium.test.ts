// @module-tag extended
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listen } from '../../../host/http-server.ts'
import { firstIdAt } from '../../../policy/ids.ts'
import { agentTopic } from '../../../policy/mqtt-topics.ts'
import { NO_CHROMIUM, startChromium, type TestBrowser } from '../../support/chromium.ts'
import { consoleOf } from '../../support/console.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { insertFleet } from '../../support/fleet.ts'
import { openShop, type Shop } from '../../support/shop.ts'

onEveryDatabase('one agent of 500', (kind) => {
  describe.skipIf(NO_CHROMIUM)(NO_CHROMIUM ?? 'in Chromium', () => {
    const late = firstIdAt('agt', 1)
    let shop: Shop
    let chromium: TestBrowser
    let stop: () => Promise<void>
    let base: string

    beforeAll(async () => {
      shop = await openShop(kind)
      const { database } = shop.cloud.db
      const { tenant } = await database.reads
        .selectFrom('store')
        .select('tenant')
        .where('store_id', '=', shop.storeId)
        .executeTakeFirstOrThrow()
      const well = Array.from({ length: 499 }, (_, n) => ({
        agentId: firstIdAt('agt', 1_000 + n),
        storeId: n % 2 === 0 ? shop.storeId : shop.otherStoreId,
      }))
      await database.write(async (db) => {
        await db.updateTable('store').set({ document_version: 7, min_agent: '0.9.0' }).execute()
        const one = { agentId: late, storeId: shop.otherStoreId, name: 'Kasse 7', behind: 2, release: '0.8.3' }
        await insertFleet(db, shop.cloud.platform.clock.wall(), [one, ...well])
      })
      const server = await listen({ host: '127.0.0.1', port: 0, flag: 'port' })
      server.serve(consoleOf(shop, tenant.split('.')[0] ?? '', undefined, 'owner'))
      base = `http://127.0.0.1:${server.port}`
      stop = () => server.close()
      chromium = await startChromium()
    })
    afterAll(async () => {
      await chromium?.close()
      await stop?.()
      await shop?.stop()
    })

    it('is found by the count, says why it is behind, and leaves the page when it is upgraded', async () => {
      const page = await chromium.browser.newPage()
      await page.goto(`${base}/console/health?mode=test&store=all&lang=de`)
      await page.getByRole('link', { name: /Zurück: alte Regeln\s*1\s*von 500 Agenten/ }).click()
      await page.waitForURL('**/console/health?state=behind')
      const row = page.locator('tbody tr')
      expect(await row.count()).toBe(1)
      const text = await row.innerText()
      expect(text).toContain('Kasse 7')
      expect(text).toContain('Er benutzt Version 5 der Regeln, die Filiale hat 7.')
      expect(text).toContain('Seine Version 0.8.3 ist zu alt für diese Regeln; sie brauchen 0.9.0.')

      // Its next report shows that it has the rules. The page changes without a reload.
      await page.evaluate('window.isSamePage = true')
      const { messages } = shop.cloud.cloud
      const address = { storeId: shop.otherStoreId, agentId: late }
      const reported = () => {
        const observedAt = new Date(shop.cloud.platform.clock.wall()).toISOString()
        const state = { online: true, observedAt, policyVersion: 7 }
        messages.hooks.onMessage(address, agentTopic(address.storeId, late, 'state'), JSON.stringify(state))
      }
      reported()
      await messages.settled()
      await page.getByText('Kein Agent ist in diesem Zustand').waitFor()
      expect(await page.evaluate('window.isSamePage')).toBe(true)
      expect(await page.getByRole('link', { name: /In Ordnung\s*500\s*von 500 Agenten/ }).count()).toBe(1)
    })
  })
})
