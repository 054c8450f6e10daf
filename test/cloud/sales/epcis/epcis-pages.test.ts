import { expect, it } from 'vitest'
import { findStore } from '../../../../cloud/platform/stores/queries.ts'
import type { ReadContext } from '../../../../cloud/platform/operations/operation.ts'
import { readEvents, type SourceEntry } from '../../../../cloud/sales/epcis/read-events.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { newEan, openShop } from '../../../support/shop.ts'

onEveryDatabase('the pages of exportEpcisEvents', (kind) => {
  it('have the sales of some 2,000 units, of at least one purchase', async () => {
    const shop = await openShop(kind)
    try {
      const ean = newEan()
      await shop.ok('insertProduct', { storeId: shop.storeId, ean, name: 'Knopf', price: 0.01, vat: 19, tagged: false })
      const bought: string[] = []
      for (const quantity of [900, 900, 900, 2_000, 900, 100]) {
        const lines = Array.from({ length: quantity / 100 }, () => ({ ean, quantity: 100 }))
        bought.push((await shop.buy(lines)).transactionId)
      }
      const { reads } = shop.cloud.db.database
      const pages: string[][] = []
      const reading = {
        read: async (work: (call: { db: typeof reads }) => Promise<unknown>) => {
          const page = await work({ db: reads })
          if (Array.isArray(page)) pages.push((page as SourceEntry[]).map(({ id }) => id))
          return page
        },
      } as unknown as ReadContext
      const store = await findStore(reads, shop.storeId)
      if (!store) throw new Error('no store')
      const filter = { storeId: shop.storeId, type: 'checkout.completed' as const }
      const range = { below: Number.MAX_SAFE_INTEGER, sinceMs: 0 }
      const read: string[] = []
      for await (const { id } of readEvents(reading, store, filter, range, undefined)) read.push(id)
      expect(read.slice(-6)).toEqual(bought)
      const own = pages.map((page) => page.filter((id) => bought.includes(id)).length).filter((count) => count > 0)
      expect(own).toEqual([2, 1, 1, 2])
    } finally {
      await shop.stop()
    }
  })
})
