import fc from 'fast-check'
import type { z } from 'zod'
import { CHARACTERS, isClosed, schemaOf, valuesOf } from './schemas.ts'
import type { Json } from '../scene/served-cloud.ts'

/** Change to a valid request. */
export interface Plan {
  /** Schema fields to set, with allowed values. */
  readonly extras: readonly { readonly field: string; readonly value: unknown }[]
  readonly edits: readonly Edit[]
}

type Edit = { readonly at: number } & (
  | { readonly how: 'set'; readonly value: unknown }
  | { readonly how: 'remove' | 'list' | 'wrap' | 'repeat' }
  | { readonly how: 'unknown'; readonly name: string; readonly value: unknown }
)

export const NO_PLAN: Plan = { extras: [], edits: [] }

/** A body after its plan was applied. */
export interface Planned {
  readonly body: Json
  /** Name of an added field that the schema does not allow. */
  readonly unknownField: string | undefined
}

type Path = readonly (string | number)[]

const HOSTILE: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  -0.5,
  0.001,
  1e308,
  -1e308,
  5e-324,
  2 ** 31,
  -(2 ** 31) - 1,
  2 ** 53,
  2 ** 63,
  '',
  ' ',
  '\u0000',
  'a\u0000b',
  '\ud800',
  'a\udfffb',
  '\u202e\u0007',
  '👩‍👩‍👧‍👦',
  'ß'.repeat(129),
  'x'.repeat(5_000),
  "' OR 1=1 --",
  '<script>alert(1)</script>',
  '%00%s%n',
  '../../etc/passwd',
  '${7*7}{{7*7}}',
  'st_ZZZZZZZZZZZZZZZZZZZZZZZZZZ',
  'NaN',
  '-1',
  '1e9',
  '2026-02-30T00:00:00Z',
  '9999-12-31T23:59:59+14:00',
  '0000-01-01T00:00:00Z',
  '2026-11-20T09:00:00.123456789Z',
  '2026-11-20',
  'javascript:alert(1)',
  'http://[::1]:1/',
  'http://169.254.169.254/',
  [],
  [[]],
  [null],
  {},
  { length: 1e9 },
  { $ne: null },
  { toString: 1, valueOf: 1 },
]

const NAMES = [
  'nonsense',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '',
  'storeID',
  'a.b',
  '0',
  'ß',
  'x'.repeat(300),
]

function nested(depth: number): unknown {
  let value: unknown = 1
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value }
  return value
}

const hostile: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...HOSTILE) },
  { weight: 1, arbitrary: fc.constantFrom(10, 31, 40, 2_000).map(nested) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: fc.string({ unit: CHARACTERS, maxLength: 40 }) },
)

const at = fc.nat(5_000)
const edit: fc.Arbitrary<Edit> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ at, how: fc.constant('set' as const), value: hostile }) },
  {
    weight: 2,
    arbitrary: fc.record({
      at,
      how: fc.constantFrom('remove' as const, 'list' as const, 'wrap' as const, 'repeat' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ at, how: fc.constant('unknown' as const), name: fc.constantFrom(...NAMES), value: hostile }),
  },
)

/** Adds one unknown field and changes nothing else. */
export const ONE_UNKNOWN: fc.Arbitrary<Plan> = fc
  .record({ at, name: fc.constantFrom(...NAMES), value: hostile })
  .map((field) => ({ extras: [], edits: [{ ...field, how: 'unknown' as const }] }))

const plans = new WeakMap<z.ZodType, fc.Arbitrary<Plan>>()

/** Makes plans for requests with this schema. fast-check shrinks a plan until it changes nothing. */
export function plansFor(request: z.ZodType): fc.Arbitrary<Plan> {
  const made = plans.get(request) ?? makePlans(request)
  plans.set(request, made)
  return made
}

function makePlans(request: z.ZodType): fc.Arbitrary<Plan> {
  const fields = Object.entries(schemaOf(request).properties ?? {})
  const extra = fields.map(([field, schema]) => fc.record({ field: fc.constant(field), value: valuesOf(schema) }))
  const noExtras = fc.constant<Plan['extras']>([])
  const extras = extra.length === 0 ? noExtras : fc.array(fc.oneof(...extra), { maxLength: 3 })
  const edits = fc.array(edit, { maxLength: 2 })
  return fc.oneof(
    fc.record({ extras, edits: fc.constant<Edit[]>([]) }),
    fc.record({ extras: noExtras, edits }),
    fc.record({ extras, edits }),
  )
}

/** Applies a plan to a copy of the request. */
export function carryOut(base: Json, { extras, edits }: Plan, request: z.ZodType): Planned {
  const body = structuredClone(base)
  for (const { field, value } of extras) put(body, field, structuredClone(value))
  for (const each of edits) if (each.how !== 'unknown') change(body, each)
  // Unknown fields come last, because another edit could remove them.
  let unknownField: string | undefined
  for (const each of edits) if (each.how === 'unknown') unknownField = addUnknown(body, each, request) ?? unknownField
  return { body, unknownField }
}

function change(body: Json, edit: Exclude<Edit, { how: 'unknown' }>): void {
  const places = placesIn(body)
  const path = places[edit.at % Math.max(1, places.length)]
  if (!path) return
  const parent = valueAt(body, path.slice(0, -1)) as Json
  const step = String(path.at(-1))
  const value = parent[step]
  if (edit.how === 'set') put(parent, step, structuredClone(edit.value))
  else if (edit.how === 'remove') {
    if (Array.isArray(parent)) parent.splice(Number(step), 1)
    else delete parent[step]
  } else if (edit.how === 'list') put(parent, step, [value])
  else if (edit.how === 'wrap') put(parent, step, { value })
  else put(parent, step, Array.isArray(value) ? [...value, ...structuredClone(value)] : [value, value])
}

function addUnknown(
  body: Json,
  { at: n, name, value }: Edit & { how: 'unknown' },
  request: z.ZodType,
): string | undefined {
  const objects = [[], ...placesIn(body)].filter((path) => isPlain(valueAt(body, path)))
  const path = objects[n % objects.length] ?? []
  const object = valueAt(body, path) as Json
  const isKnown = Object.hasOwn(object, name) || Object.hasOwn(namesAt(request, path), name)
  if (isKnown) return undefined
  put(object, name, structuredClone(value))
  return isClosed(schemaOf(request), path) ? name : undefined
}

function namesAt(request: z.ZodType, path: Path): Json {
  let schema = schemaOf(request)
  for (const step of path) schema = (typeof step === 'number' ? schema.items : schema.properties?.[step]) ?? {}
  return schema.properties ?? {}
}

/** Defines the field, so that `__proto__` becomes a normal field too. */
function put(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true })
}

/** Paths of all values in the body, in order. */
function placesIn(value: unknown, path: Path = []): Path[] {
  if (path.length > 6 || typeof value !== 'object' || value === null) return []
  const steps = Array.isArray(value) ? value.slice(0, 20).map((_, i) => i) : Object.keys(value).slice(0, 60)
  return steps.flatMap((step) => {
    const here = [...path, step]
    return [here, ...placesIn((value as Record<string | number, unknown>)[step], here)]
  })
}

function valueAt(body: unknown, path: Path): unknown {
  let value = body
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = (value as Record<string | number, unknown>)[step]
  }
  return value
}

const isPlain = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)
