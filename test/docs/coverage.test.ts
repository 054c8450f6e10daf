import { join } from 'node:path'
import { expect, it } from 'vitest'
import { OPERATION_TABLE } from '../../cloud/operations/table.ts'
import { ROOT } from '../house/sources.ts'
import { coverage, coveragePage } from './coverage-page.ts'

const found = coverage()
const all = [...found.specified, ...found.decided, ...found.own, ...found.events]

it('has an own test for every operation and every event that is there', () => {
  expect(all.filter(({ sources, tests }) => sources.length > 0 && tests.length === 0).map(({ name }) => name)).toEqual(
    [],
  )
})

it('finds every operation of the table, each once', () => {
  const there = all
    .filter(({ name, sources }) => OPERATION_TABLE.has(name) && sources.length > 0)
    .map(({ name }) => name)
  expect(there.sort()).toEqual([...OPERATION_TABLE.keys()].sort())
})

it('is told by the page as it is', async () => {
  await expect(coveragePage(found)).toMatchFileSnapshot(join(ROOT, 'docs/coverage.md'))
})
