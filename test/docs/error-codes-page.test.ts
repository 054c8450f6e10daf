import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  DENIAL_TEXTS,
  DETAIL_TEXTS,
  EXCEPTION_TEXTS,
  REASON_TEXTS,
  ROW_TEXTS,
  type CodeText,
} from '../../cloud/description/codes.ts'
import { ROOT } from '../house/sources.ts'

const FILE = join(ROOT, 'docs/reference/errors.md')
const TABLES: Readonly<Record<string, readonly CodeText[]>> = {
  reasons: REASON_TEXTS,
  details: DETAIL_TEXTS,
  rows: ROW_TEXTS,
  denials: DENIAL_TEXTS,
  exceptions: EXCEPTION_TEXTS,
}

/** Replaces each table between its marks by the table from cloud/description/codes.ts. */
function withTables(page: string): string {
  return page.replaceAll(
    /(<!-- codes:(\w+) -->\n)[\s\S]*?(<!-- \/codes -->)/g,
    (_, begin: string, name: string, end: string) => {
      const rows = (TABLES[name] ?? []).map(({ code, text }) => `| \`${code}\` | ${text} |`)
      return [`${begin}| code | what happened, what to do |`, '|---|---|', ...rows, end].join('\n')
    },
  )
}

describe('docs/reference/errors.md', () => {
  const page = readFileSync(FILE, 'utf8')

  it('has the tables of the code (write them: npx vitest run test/docs/error-codes-page.test.ts -u)', async () => {
    for (const name of Object.keys(TABLES)) expect(page).toContain(`<!-- codes:${name} -->`)
    await expect(withTables(page)).toMatchFileSnapshot(FILE)
  })

  it('explains each code in at most two short sentences', () => {
    for (const { code, text } of Object.values(TABLES).flat())
      for (const sentence of text.split(/(?<=[.;:])\s/))
        expect(sentence.split(' ').length, `${code}: ${sentence}`).toBeLessThanOrEqual(25)
  })
})
