import { describeApi } from '../../cloud/description/openapi.ts'
import { OPERATION_TABLE } from '../../cloud/operation-table.ts'
import type { ContractDocument } from './breaking-changes.ts'

/** Server URL of the committed document. It has no host, because every installation has its own. */
const SERVER = '/api/v1'
const WIDTH = 120
/** Fields with examples. Each example is written on one line. */
const EXAMPLES: ReadonlySet<string> = new Set(['example', 'value'])

/**
 * Returns docs/reference/openapi.json as a value. Operations and schemas are sorted by name, so that their order in the
 * code does not matter.
 */
export function contractDocument(): ContractDocument & { servers: unknown } {
  const { openApi } = describeApi(OPERATION_TABLE, SERVER)
  const document = JSON.parse(JSON.stringify(openApi)) as ContractDocument & { servers: unknown }
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

/** Formats docs/reference/openapi.json as text. */
export function contractPage(document: ContractDocument): string {
  return `${readableJson(document)}\n`
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
