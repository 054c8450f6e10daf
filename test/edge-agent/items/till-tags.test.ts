import { expect, it } from 'vitest'
import { namesIn } from '../../../edge-agent/items/till-tags.ts'

const RETURNED = new Set(['returned'] as const)
const table = (count: number) => ({
  get: (name: string) => (name.startsWith('K') ? { info: 1, label: 0 } : undefined),
  namesIn: () => Array.from({ length: count }, (_, n) => `T${n}`),
})
const reports = (names: string[]) => ({
  tag: () => undefined,
  in: (_: unknown, limit: number) => names.slice(0, limit),
})

it('names the stopped items of the table and of reports, without tags that no item has', () => {
  expect(namesIn(table(1), reports(['K1', 'X1']), RETURNED)).toEqual(['K1', 'T0'])
})

it('gives up above 50,000 names, so that a decision never stops the gates', () => {
  const many = Array.from({ length: 60_000 }, (_, n) => `X${n}`)
  expect(namesIn(table(1), reports(many), RETURNED)).toBeUndefined()
  expect(namesIn(table(60_000), reports([]), RETURNED)).toBeUndefined()
})
