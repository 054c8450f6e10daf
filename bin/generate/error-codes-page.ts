import {
  DENIAL_TEXTS,
  DETAIL_TEXTS,
  EXCEPTION_TEXTS,
  REASON_TEXTS,
  ROW_TEXTS,
  type CodeText,
} from '../../cloud/service/description/codes.ts'
import { replaceMarked } from './contract-page.ts'

/** The codes of each table, by the name of the table in its mark. */
export const CODE_TABLES: Readonly<Record<string, readonly CodeText[]>> = {
  reasons: REASON_TEXTS,
  details: DETAIL_TEXTS,
  rows: ROW_TEXTS,
  denials: DENIAL_TEXTS,
  exceptions: EXCEPTION_TEXTS,
}

/** Replaces the tables of codes in docs/reference/errors.md. */
export function errorCodesPage(page: string): string {
  return Object.entries(CODE_TABLES).reduce((text, [name, codes]) => {
    const rows = codes.map((each) => `| \`${each.code}\` | ${each.text} |`)
    const table = ['| code | what happened, what to do |', '|---|---|', ...rows].join('\n')
    return replaceMarked(text, `<!-- codes:${name} -->`, '<!-- /codes -->', `\n${table}\n`)
  }, page)
}
