import { fieldsOf } from '../../cloud/service/description/fields.ts'
import type { DescribedApi, DescribedOperation } from './described-operations.ts'

const NAME_WIDTH = 34

/** Lists all operations by area, one operation on each line. */
export function listOperations({ operations }: DescribedApi): string {
  const areas = [...new Set([...operations.values()].map((o) => o.area))]
  const sections = areas.map((area) => {
    const rows = [...operations.values()]
      .filter((o) => o.area === area)
      .map(({ name, summary }) => `  ${name.padEnd(NAME_WIDTH)} ${summary}`)
    return [area, ...rows].join('\n')
  })
  return `${sections.join('\n\n')}\n\nuntag api OPERATION --help shows the fields of an operation.\n`
}

/** Describes the request and the response of an operation. */
export function describeOperation(operation: DescribedOperation, { components }: DescribedApi): string {
  const fields = fieldsOf(operation.request, components, true)
  const rows = fields.map(({ name, type, required, limits, description }) => {
    const notes = [required && !name.includes('.') ? 'needed' : '', limits, description].filter((note) => note !== '')
    return `${`  --${name.replaceAll('[]', '.0')} ${shown(type)}`.padEnd(NAME_WIDTH + 4)} ${notes.join('; ')}`.trimEnd()
  })
  const answer = [
    ...operation.answerBases.map((base) => `  all fields of ${base}`),
    ...operation.answer.map(({ name, type }) => `  ${name}: ${type}`),
  ]
  const parts = [
    `untag api ${operation.name}: ${operation.summary}`,
    ...(operation.description === operation.summary ? [] : ['', operation.description]),
    '',
    `Package ${operation.minimumPackage}; called with ${callersOf(operation)}.`,
    '',
    ...(rows.length > 0 ? rows : ['  (no fields)']),
    "  --json '{…}' or --json @FILE".padEnd(NAME_WIDTH + 4) + ' the whole request; single fields override it',
    '',
    'Response:',
    ...answer,
    '',
    `Example: untag api ${operation.name}${exampleOf(operation.example)}`,
    '',
  ]
  return parts.join('\n')
}

function callersOf({ callers, roles }: DescribedOperation): string {
  const lowest = roles.at(-1)
  const users = lowest === undefined ? [] : [lowest === 'viewer' ? 'any user' : `a user (${lowest} or higher)`]
  return [...callers.map((caller) => CALLERS[caller] ?? caller), ...users].join(', ')
}

const CALLERS: Readonly<Record<string, string>> = {
  secret: 'a secret key',
  publishable: 'a publishable key',
  admin: 'an admin key',
  agent: 'an agent’s login',
  anyone: 'no key',
}

function shown(type: string): string {
  return type.includes('|') ? type.replaceAll(' | ', '|') : type.toUpperCase()
}

function exampleOf(example: Readonly<Record<string, unknown>>): string {
  const simple = Object.values(example).every((value) => typeof value !== 'object')
  if (!simple) return ` --json '${JSON.stringify(example)}'`
  return Object.entries(example)
    .map(([name, value]) => ` --${name} ${quoted(String(value))}`)
    .join('')
}

function quoted(text: string): string {
  return /^[\w.:/@+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
