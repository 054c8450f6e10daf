import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { renumberItems } from '../../../cloud/protection/items/item-sequence.ts'
import type { Db } from '../../../cloud/platform/persistence/database.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { openQueryPlans } from '../../support/query-plans.ts'
import { openShop } from '../../support/shop.ts'

/** 2^15 items: fewer, and PostgreSQL reads the whole table. */
const DOUBLINGS = 15

onEveryDatabase('the plan of the item sequence', (kind) => {
  it('finds the items by their ids, however many items the store has', async () => {
    const shop = await openShop(kind)
    const plans = openQueryPlans(shop.cloud.db.location)
    try {
      const { epc } = await shop.newItem(shop.products[0])
      const itemId = await shop.cloud.db.database.write((db) => multiply(db, epc))
      const ids = [itemId, ...Array.from({ length: 99 }, (_, i) => `${itemId}${i}`)]
      // Without figures of the tables, SQLite chose the index of the store.
      if (kind === 'postgres') await plans.analyze()
      const read = await plans.of(() => renumberItems(plans.db, shop.storeId, ids))
      const update = read.find((plan) => plan.includes('numbered')) ?? ''
      expect(update).toMatch(
        kind === 'sqlite' ? /SEARCH protected_item USING INDEX \S+ \(item_id=\?\)/ : /protected_item_pkey/,
      )
      expect(update).not.toMatch(/protected_item_by_|Seq Scan/)
    } finally {
      await plans.close()
      await shop.stop()
    }
  })
})

/** Copies an item, so that its store has many items. Returns its id. */
async function multiply(db: Db, epc: string): Promise<string> {
  const { item_id: itemId, ...one } = await db
    .selectFrom('protected_item')
    .selectAll()
    .where('epc', '=', epc)
    .executeTakeFirstOrThrow()
  const others = Object.keys(one).filter((column) => !['epc', 'tag_id', 'tag_id_folded', 'tag_uid'].includes(column))
  const columns = sql.join(others.map((column) => sql.ref(column)))
  for (let i = 0; i < DOUBLINGS; i++)
    await sql`insert into protected_item (item_id, epc, ${columns}) select item_id || ${sql.lit(`-${i}`)},
      epc || ${sql.lit(`-${i}`)}, ${columns} from protected_item where item_id like ${`${itemId}%`}`.execute(db)
  return itemId
}
