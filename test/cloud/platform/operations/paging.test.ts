import { expect, it } from 'vitest'
import { readPageWithinText } from '../../../../cloud/platform/operations/paging.ts'

/** Items and cursor of a page of rows with these lengths, and the numbers of rows that it read. */
async function page(lengths: readonly number[], limit: number) {
  const rows = lengths.map((length, n) => ({ id: String(n), length }))
  const parts: number[] = []
  const { items, nextCursor } = await readPageWithinText(
    async (atMost, last?: (typeof rows)[number]) => {
      const from = last === undefined ? 0 : Number(last.id) + 1
      const part = rows.slice(from, from + atMost)
      parts.push(part.length)
      return part
    },
    (row) => row.id,
    (row) => row.length,
    { limit },
  )
  return { page: [items.length, nextCursor], parts }
}
const rowsOf = (length: number, count: number) => Array.from({ length: count }, () => length)

it.each([
  [[10, 10, 10], 2, [2, '1']],
  [[10, 10], 2, [2, undefined]],
  [[400_000, 400_000, 400_000, 10], 3, [2, '1']],
  [[3_000_000, 10, 10], 2, [1, '0']],
  [[10, 10, 3_000_000], 2, [2, '1']],
  [[3_000_000], 2, [1, undefined]],
  [[0, 0, 3_000_000, 0], 3, [2, '1']],
  [[], 2, [0, undefined]],
  [rowsOf(10, 500), 500, [500, undefined]],
  [rowsOf(10, 501), 500, [500, '499']],
  [[...rowsOf(10, 300), ...rowsOf(400_000, 3)], 500, [302, '301']],
])('a page of long texts ends early, but holds at least one row (case %#)', async (lengths, limit, expected) => {
  expect((await page(lengths, limit)).page).toEqual(expected)
})

it('reads few long rows, also after short ones', async () => {
  expect(await page(rowsOf(500_000, 500), 500)).toEqual({ page: [2, '1'], parts: [20] })
  // 30,000 characters fit 33 times.
  expect(await page(rowsOf(30_000, 500), 500)).toEqual({ page: [33, '32'], parts: [20, 14] })
  const { parts } = await page([...rowsOf(1, 100), ...rowsOf(500_000, 400)], 500)
  expect(parts).toEqual([20, 20, 20, 20, 20, 20])
})
