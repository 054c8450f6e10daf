import { join } from 'node:path'
import { expect, it } from 'vitest'
import { OPERATION_TABLE } from '../../cloud/operation-table.ts'
import { EVENT_TYPES } from '../../cloud/webhooks/event-types.ts'
import { ROOT } from '../house/sources.ts'
import { coverage, coveragePage } from './coverage-page.ts'

const found = coverage()
const all = [...found.specified, ...found.decided, ...found.own, ...found.events]

it('has a separate test for every operation and every event', () => {
  expect(
    all.filter(({ sources, tests }) => sources.length > 0 && tests.length === 0).map(({ name }) => name),
    'test/cloud needs a test that calls each operation by its name, beside the tests of all operations',
  ).toEqual([])
})

it('finds a sender of every declared event', () => {
  expect(
    found.events.filter(({ name, sources }) => EVENT_TYPES.has(name) && sources.length === 0).map(({ name }) => name),
    'emit each event with `call.emit`, or remove it from cloud/webhooks/*-events.ts',
  ).toEqual([])
})

it('finds each operation of the table once', () => {
  const there = all
    .filter(({ name, sources }) => OPERATION_TABLE.has(name) && sources.length > 0)
    .map(({ name }) => name)
  expect(there.sort()).toEqual([...OPERATION_TABLE.keys()].sort())
})

it('equals test/coverage.md', async () => {
  await expect(
    coveragePage(found),
    'Write test/coverage.md again: npx vitest run test/docs/coverage.test.ts -u',
  ).toMatchFileSnapshot(join(ROOT, 'test/coverage.md'))
})
