import { z } from 'zod'
import type { Operation } from '../../cloud/platform/operations/operation.ts'
import type { Json } from './cloud.ts'

/** One value at or beyond a limit of one field. */
export interface Probe {
  field: string
  what: string
  value: Json
  /** True if the limit allows the value. */
  isAllowed: boolean
}

/** Longest tested text or list. Longer ones would exceed the limit for a whole request. */
const LARGEST = 20_000

/** The limits in an operation's published schema, each with a value at it and one beyond it. */
export function limitsOf(operation: Operation): { required: string[]; probes: Probe[] } {
  const schema = z.toJSONSchema(operation.request, {
    target: 'openapi-3.0',
    io: 'input',
    unrepresentable: 'any',
  }) as Json
  const probes = Object.entries<Json>(schema.properties ?? {}).flatMap(([field, rule]) =>
    probesOf(rule).map((probe) => ({ field, ...probe })),
  )
  return { required: schema.required ?? [], probes }
}

function probesOf(rule: Json): Omit<Probe, 'field'>[] {
  const probes: Omit<Probe, 'field'>[] = []
  const add = (what: string, value: Json, isAllowed: boolean) => probes.push({ what, value, isAllowed })
  if (rule.enum) add('a word that is not in the list', '¿?', false)
  else if (rule.type === 'string') {
    const isFree = rule.pattern === undefined && rule.format === undefined
    if (rule.maxLength <= LARGEST) {
      if (isFree) add(`${rule.maxLength} characters`, 'x'.repeat(rule.maxLength), true)
      add(`${rule.maxLength + 1} characters`, 'x'.repeat(rule.maxLength + 1), false)
    }
    if (rule.minLength > 0) add(`${rule.minLength - 1} characters`, 'x'.repeat(rule.minLength - 1), false)
    if (rule.format === 'date-time') add('no time', 'yesterday', false)
  } else if (rule.type === 'number' || rule.type === 'integer') {
    const step = rule.type === 'integer' ? 1 : 0.01
    const top = typeof rule.exclusiveMaximum === 'boolean' && rule.exclusiveMaximum ? undefined : rule.maximum
    const bottom = typeof rule.exclusiveMinimum === 'boolean' && rule.exclusiveMinimum ? undefined : rule.minimum
    if (rule.maximum < Number.MAX_SAFE_INTEGER) add(`${rule.maximum + step}`, rule.maximum + step, false)
    if (top < Number.MAX_SAFE_INTEGER) add(`${top}`, top, true)
    if (rule.minimum > Number.MIN_SAFE_INTEGER) add(`${rule.minimum - step}`, rule.minimum - step, false)
    if (bottom > Number.MIN_SAFE_INTEGER) add(`${bottom}`, bottom, true)
    if (rule.type === 'integer') add('half of one', 0.5, false)
  } else if (rule.type === 'array') {
    const item =
      Object.keys(rule.items ?? {}).length > 0
        ? rule.items.type === 'object'
          ? {}
          : rule.items.type === 'string'
            ? 'x'
            : 1
        : null
    if (rule.minItems > 0)
      add(
        `${rule.minItems - 1} entries`,
        Array.from({ length: rule.minItems - 1 }, () => item),
        false,
      )
    if (rule.maxItems < 2_000)
      add(
        `${rule.maxItems + 1} entries`,
        Array.from({ length: rule.maxItems + 1 }, () => item),
        false,
      )
  }
  return probes
}
