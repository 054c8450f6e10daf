import { describeApi } from '../../cloud/service/description/openapi.ts'
import { OPERATION_TABLE } from '../../cloud/service/operation-table.ts'
import { describeAgentApi } from '../../edge-agent/http/openapi.ts'
import { breakingChanges, undeclaredChanges, unnamedAdditions, type ContractDocument } from './breaking-changes.ts'
import {
  DENIAL_TEXTS,
  DETAIL_TEXTS,
  EXCEPTION_TEXTS,
  REASON_TEXTS,
  ROW_TEXTS,
  type CodeText,
} from '../../cloud/service/description/codes.ts'

/** Replaces the text between two marks of a page. Throws if the page lacks one of them. */
export function replaceMarked(page: string, open: string, close: string, text: string): string {
  const from = page.indexOf(open) + open.length
  const to = page.indexOf(close, from)
  if (!page.includes(open) || to < 0) throw new Error(`the page lacks the marks ${open} … ${close}`)
  return page.slice(0, from) + text + page.slice(to)
}

/** Server URL of the committed document. It has no host, because every installation has its own. */
const SERVER = '/api/v1'
const WIDTH = 120
/** Fields with examples. Each example is written on one line. */
const EXAMPLES: ReadonlySet<string> = new Set(['example', 'value'])

/**
 * Returns docs/reference/openapi.json as a value. Operations and schemas are sorted by name, so that their order in the
 * code does not matter.
 */
export function contractDocument(): Required<ContractDocument> & { servers: unknown } {
  const { openApi } = describeApi(OPERATION_TABLE, SERVER)
  const document = JSON.parse(JSON.stringify(openApi)) as Required<ContractDocument> & { servers: unknown }
  return {
    ...document,
    paths: sorted(document.paths),
    components: { ...document.components, schemas: sorted(document.components.schemas) },
    'x-webhooks': sorted(document['x-webhooks']),
  }
}

function sorted<T>(byName: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(byName).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** Returns docs/reference/agent-openapi.json as a value. */
export function agentContractDocument(): ContractDocument & { info: { version: string } } {
  return JSON.parse(JSON.stringify(describeAgentApi())) as ContractDocument & { info: { version: string } }
}

/** CHANGELOG.md does not declare a change of an API, or the committed document is damaged. */
export class UndeclaredChange extends Error {}

/**
 * Formats the document of an API. Throws UndeclaredChange if the unreleased section of CHANGELOG.md does not declare
 * each change since the committed document that breaks callers, or does not name each new operation and event.
 */
export function contractPage(
  document: ContractDocument,
  { file, committed, changelog }: Record<'file' | 'committed' | 'changelog', string>,
): string {
  const before = readContract(file, committed)
  const undeclared = undeclaredChanges(breakingChanges(before, document), changelog)
  if (undeclared.length > 0)
    throw new UndeclaredChange(
      `${file}: these changes break callers. Undo them, or add each line to the unreleased section of CHANGELOG.md (text may follow it):\n${undeclared.join('\n')}`,
    )
  const unnamed = unnamedAdditions(before, document, changelog)
  if (unnamed.length > 0)
    throw new UndeclaredChange(
      `${file}: the unreleased section of CHANGELOG.md needs a line that names these operations and events, each in backticks: ${unnamed.join(', ')}`,
    )
  return `${readableJson(document)}\n`
}

function readContract(file: string, text: string): ContractDocument {
  try {
    return JSON.parse(text) as ContractDocument
  } catch {
    throw new UndeclaredChange(`${file} is missing or is no JSON. Restore it: git checkout ${file}`)
  }
}

/** Formats JSON with each value on one line if it fits, so that a changed field changes one line. */
export function readableJson(value: unknown, indent = '', used = 0): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const line = onOneLine(value)
  if (indent !== '' && indent.length + used + line.length < WIDTH) return line
  const inner = `${indent}  `
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  const children = Array.isArray(value)
    ? value.map((child: unknown) => inner + readableJson(child, inner))
    : Object.entries(value).map(([name, child]) => {
        const key = `${JSON.stringify(name)}: `
        return inner + key + (EXAMPLES.has(name) ? onOneLine(child) : readableJson(child, inner, key.length))
      })
  return children.length === 0 ? `${open}${close}` : `${open}\n${children.join(',\n')}\n${indent}${close}`
}

function onOneLine(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(onOneLine).join(', ')}]`
  const fields = Object.entries(value).map(([name, child]) => `${JSON.stringify(name)}: ${onOneLine(child)}`)
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`
}

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
