import { afterEach, expect, it, vi } from 'vitest'
import { isRecalled, recallReader } from '../../../cloud/protection/items/recalls.ts'
import { newDatabase } from '../../support/databases.ts'
import { countStatements } from '../../support/count-statements.ts'

afterEach(() => void vi.restoreAllMocks())

const STORES = JSON.stringify(Array.from({ length: 1_000 }, (_, n) => `st_${n}`))
const recallsOf = (lot: string) =>
  Array.from({ length: 500 }, () => ({ store_ids: STORES, ean: '4012345678901', lot, expiry: null, serial: null }))
const item = { ean: '4012345678901', lot: 'L-1', expiry: null, serial: null }

it('reads the stores of a recall only if lot, expiry and serial match, and once for all goods', () => {
  const parse = vi.spyOn(JSON, 'parse')
  const [others, same] = [recallsOf('L-2'), recallsOf('L-1')]
  for (let unit = 0; unit < 50; unit++) {
    expect(isRecalled(others, { storeId: 'st_999', item })).toBe(false)
    expect(isRecalled(same, { storeId: 'st_x', item })).toBe(false)
    expect(isRecalled(same, { storeId: 'st_999', item })).toBe(true)
  }
  expect(parse).toHaveBeenCalledTimes(same.length)
})

it('reads the recalls of an EAN once for a call', async () => {
  const { database } = await newDatabase('sqlite')
  const read = recallReader(database.reads, 'ten_1')
  const count = await countStatements(async () => {
    for (let n = 0; n < 10; n++) for (const ean of ['4012345678901', '4012345678918']) await read(ean)
  })
  expect(count).toBe(2)
  await database.close()
})
