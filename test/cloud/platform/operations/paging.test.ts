import { expect, it } from 'vitest'
import { toPageWithinText } from '../../../../cloud/platform/operations/paging.ts'

const page = (lengths: readonly number[], limit: number) => {
  const rows = lengths.map((length, n) => ({ id: String(n), length }))
  const { items, nextCursor } = toPageWithinText(
    rows,
    (row) => row.id,
    (row) => row.length,
    { limit },
  )
  return [items.length, nextCursor]
}

it('a page of long texts ends early, but holds at least one row', () => {
  expect(page([10, 10, 10], 2)).toEqual([2, '1'])
  expect(page([10, 10], 2)).toEqual([2, undefined])
  expect(page([400_000, 400_000, 400_000, 10], 3)).toEqual([2, '1'])
  expect(page([3_000_000, 10, 10], 2)).toEqual([1, '0'])
  expect(page([10, 10, 3_000_000], 2)).toEqual([2, '1'])
  expect(page([3_000_000], 2)).toEqual([1, undefined])
})
