import fc from 'fast-check'
import { z } from 'zod'
import type { Json } from '../scene/served-cloud.ts'

/** The part of a JSON Schema that the fuzzer reads. */
export interface Schema {
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  format?: string
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  exclusiveMaximum?: number
  minItems?: number
  maxItems?: number
  items?: Schema
  prefixItems?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  propertyNames?: Schema
  additionalProperties?: boolean | Schema
  anyOf?: Schema[]
  oneOf?: Schema[]
  allOf?: Schema[]
}

const known = new WeakMap<z.ZodType, Schema>()

/** The JSON Schema of a request. */
export function schemaOf(request: z.ZodType): Schema {
  const found = known.get(request) ?? (z.toJSONSchema(request, { io: 'input', unrepresentable: 'any' }) as Schema)
  known.set(request, found)
  return found
}

/** All schemas that may apply to the value at this path. */
export function schemasAt(schema: Schema, path: readonly (string | number)[]): Schema[] {
  const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  if (choices.length > 0) return choices.flatMap((choice) => schemasAt(choice, path))
  const [step, ...rest] = path
  if (step === undefined) return [schema]
  const below = typeof step === 'number' ? (schema.prefixItems?.[step] ?? schema.items) : schema.properties?.[step]
  const beside = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
  const next = below ?? beside
  return next ? schemasAt(next, rest) : []
}

/**
 * True if an object at this path has a fixed list of field names. Objects of `z.record` have no such list. The schema
 * may still accept other names, so the fuzzer tests whether the cloud rejects other names.
 */
export function isClosed(schema: Schema, path: readonly (string | number)[]): boolean {
  const here = schemasAt(schema, path)
  const isNamed = ({ properties, propertyNames }: Schema) => properties !== undefined && propertyNames === undefined
  const isNoObject = ({ type }: Schema) =>
    type !== undefined && type !== 'object' && !(Array.isArray(type) && type.includes('object'))
  return here.some(isNamed) && here.every((each) => isNamed(each) || isNoObject(each))
}

const LONGEST = 300
/** A few characters of each kind. The full table of fast-check takes seconds to build. */
export const CHARACTERS = fc.constantFrom(
  ...'aZ09 _-.,;:/\\|"\'`<>&%$#@!?*+=~^()[]{}',
  'ß',
  'é',
  'İ',
  'ﷺ',
  '漢',
  '𝒳',
  '👩‍👩‍👧‍👦',
  '\u0301',
  '\u202e',
  '\u2028',
  '\t',
  '\n',
)
const MOST_ITEMS = 3

/** Allowed values of a schema, often at its limits. */
export function valuesOf(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return fc.oneof(...choices.map((choice) => valuesOf(choice, depth)))
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (type === 'string') return textsOf(schema)
  if (type === 'integer' || type === 'number') return numbersOf(schema, type === 'integer')
  if (type === 'boolean') return fc.boolean()
  if (type === 'null') return fc.constant(null)
  if (type === 'array') {
    const { minItems = 0, maxItems = MOST_ITEMS } = schema
    const items = schema.prefixItems
      ? fc.tuple(...schema.prefixItems.map((each) => valuesOf(each, depth + 1)))
      : undefined
    const maxLength = Math.max(minItems, Math.min(maxItems, MOST_ITEMS))
    return items ?? fc.array(valuesOf(schema.items ?? {}, depth + 1), { minLength: minItems, maxLength })
  }
  if (type === 'object' || schema.properties) return objectsOf(schema, depth)
  return fc.jsonValue({ maxDepth: 2 })
}

function objectsOf(schema: Schema, depth: number): fc.Arbitrary<Json> {
  const { properties, additionalProperties: others } = schema
  if (!properties) {
    const values = typeof others === 'object' && depth < 5 ? valuesOf(others, depth + 1) : fc.string()
    const names = schema.propertyNames ? valuesOf(schema.propertyNames) : fc.string()
    return fc.dictionary(names as fc.Arbitrary<string>, values, { maxKeys: 2 })
  }
  const fields = Object.entries(properties).map(([name, each]) => [name, valuesOf(each, depth + 1)] as const)
  return fc.record(Object.fromEntries(fields), { requiredKeys: schema.required ?? [] })
}

function textsOf({ pattern, format, minLength = 0, maxLength = LONGEST }: Schema): fc.Arbitrary<string> {
  const most = Math.max(minLength, Math.min(maxLength, LONGEST))
  if (format === 'date-time')
    return fc
      .date({ min: new Date('2026-10-01T00:00:00Z'), max: new Date('2027-03-01T00:00:00Z'), noInvalidDate: true })
      .map((date) => date.toISOString())
  if (format === 'date')
    return fc
      .date({ min: new Date('2026-10-01T00:00:00Z'), max: new Date('2027-03-01T00:00:00Z'), noInvalidDate: true })
      .map((date) => date.toISOString().slice(0, 10))
  if (format === 'email') return fc.constant('info@laden.example')
  // A constant, because fc.webUrl takes two seconds to build.
  if (format === 'uri')
    return fc.constantFrom('https://laden.example/bild.png', 'http://a.example:8080/?q=%20#x', 'https://ß.example/')
  if (pattern !== undefined) return matching(pattern)
  const atLimit = maxLength <= 20_000 ? [fc.constant('x'.repeat(maxLength))] : []
  return fc.oneof(fc.string({ minLength, maxLength: most, unit: CHARACTERS }), ...atLimit)
}

function matching(pattern: string): fc.Arbitrary<string> {
  try {
    return fc.stringMatching(new RegExp(pattern))
  } catch {
    return fc.string()
  }
}

function numbersOf(schema: Schema, isInteger: boolean): fc.Arbitrary<number> {
  const min = schema.minimum ?? schema.exclusiveMinimum ?? -1e9
  const max = schema.maximum ?? schema.exclusiveMaximum ?? 1e9
  const least = Math.ceil(Math.max(min, Number.MIN_SAFE_INTEGER))
  const most = Math.floor(Math.min(max, Number.MAX_SAFE_INTEGER))
  const whole = fc.oneof(fc.integer({ min: least, max: most }), fc.constantFrom(least, most))
  if (isInteger) return whole
  return fc.oneof(
    whole,
    fc
      .integer({ min: Math.ceil(Math.max(min, -1e6) * 100), max: Math.floor(Math.min(max, 1e6) * 100) })
      .map((cents) => cents / 100),
  )
}
