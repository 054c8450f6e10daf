import { expect, it } from 'vitest'
import { recallsIn } from '../../../cloud/protection/items/recalls.ts'
import { newDatabase } from '../../support/databases.ts'

const EAN = '4012345678901'
const item = { ean: EAN, lot: 'L-1', expiry: null, serial: null }

async function stored(recalls: readonly { lot?: string; storeIds?: string[]; started?: number; ended?: number }[]) {
  const { database } = await newDatabase('sqlite')
  const rows = recalls.map(({ lot, storeIds, started, ended }, n) => ({
    row: {
      recall_id: `rcl_${n}`,
      tenant: 'ten_1',
      stores: storeIds?.length ?? null,
      product_id: 'prd',
      ean: EAN,
      lot: lot ?? null,
      expiry: null,
      serial: null,
      reason: 'Bruch',
      started_ms: started ?? 1,
      started_by: 'key',
      ended_ms: ended ?? null,
      ended_by: null,
      publish_after: null,
      receipts_after: null,
      items: 0,
      sold_items: 0,
    },
    stores: (storeIds ?? []).map((store_id) => ({ recall_id: `rcl_${n}`, store_id })),
  }))
  await database.write(async (db) => {
    for (const { row, stores } of rows) {
      await db.insertInto('product_recall').values(row).execute()
      if (stores.length > 0) await db.insertInto('recall_store').values(stores).execute()
    }
  })
  return {
    in: (store_id: string, atMs?: number) => recallsIn(database.reads, { tenant: 'ten_1', store_id }, atMs),
    close: () => database.close(),
  }
}

it('stops goods in the stores of a recall only', async () => {
  const recalls = await stored([{ lot: 'L-1', storeIds: ['st_1', 'st_2'] }, { lot: 'L-2' }])
  const stops = async (storeId: string, lot: string) => (await recalls.in(storeId)).stop({ item: { ...item, lot } })
  expect([await stops('st_1', 'L-1'), await stops('st_3', 'L-1')]).toEqual([true, false])
  expect([await stops('st_1', 'L-2'), await stops('st_3', 'L-2')]).toEqual([true, true])
  await recalls.close()
})

it('knows which recalls were active at a time', async () => {
  const recalls = await stored([
    { started: 10, ended: 20 },
    { lot: 'L-9', started: 15 },
  ])
  const at = async (atMs?: number) => (await recalls.in('st_1', atMs)).all.length
  expect([await at(9), await at(10), await at(15), await at(20), await at()]).toEqual([0, 1, 2, 1, 1])
  await recalls.close()
})

it('reads what an item does not state from its line', async () => {
  const recalls = await stored([{ lot: 'L-1' }])
  const here = await recalls.in('st_1')
  const unstated = { ...item, lot: null }
  expect([here.stop({ item: unstated }), here.stop({ item: unstated, line: { lot: 'L-1' } })]).toEqual([false, true])
  await recalls.close()
})
