import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ROOT } from '../house/sources.ts'

const rows = readFileSync(join(ROOT, 'docs/reference/limits.md'), 'utf8')
  .split('\n')
  .filter((line) => line.includes('](../../'))
  .map((line) => line.slice(2, -2).split(' | '))

describe('docs/reference/limits.md', () => {
  it.each(rows.map(([list = '', limit = '', , code = '']) => ({ list, limit, code })))(
    'names the limit of the code for $list',
    ({ limit, code }) => {
      const file = /\]\(\.\.\/\.\.\/(.*)\)/.exec(code)?.[1] ?? ''
      const text = readFileSync(join(ROOT, file), 'utf8')
      for (const number of limit.match(/\d[\d,]*/g) ?? []) expect(text).toContain(number.replaceAll(',', '_'))
    },
  )

  it('has every table', () => {
    expect(rows.length).toBeGreaterThan(50)
  })
})
