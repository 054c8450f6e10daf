import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { deleteSome, DELETED_AT_ONCE } from '../../../../cloud/platform/persistence/delete-some.ts'
import { newDatabase, onEveryDatabase } from '../../../support/databases.ts'

onEveryDatabase('deleteSome', (kind) => {
  it('deletes only rows that match, a limited number at once', async () => {
    const { database, remove } = await newDatabase(kind)
    const rows = Array.from({ length: DELETED_AT_ONCE + 5 }, (_, n) => ({
      store_id: 'st_1',
      code: `c${n}`,
      sale_key: 's',
      stored_ms: n,
    }))
    await database.write((db) =>
      db
        .insertInto('receipt_code')
        .values([...rows, { ...rows[0]!, store_id: 'st_2', stored_ms: 9_000 }])
        .execute(),
    )
    const prune = () =>
      database.write((db) => deleteSome(db, 'receipt_code', ['store_id', 'code', 'sale_key'], sql`stored_ms < 5000`))
    expect([await prune(), await prune(), await prune()]).toEqual([DELETED_AT_ONCE, 5, 0])
    expect(await database.reads.selectFrom('receipt_code').select('store_id').execute()).toEqual([{ store_id: 'st_2' }])
    await database.close()
    await remove()
  })
})
