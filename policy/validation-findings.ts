import type { z } from 'zod'

/** An error in an input. The message says what is expected. */
export interface ValidationFinding {
  path: readonly PropertyKey[]
  /** `missing`, `unknown_field`, or a code of zod other than `custom`. */
  code: string
  /** Without the path. */
  message: string
}

type Issue = z.core.$ZodIssue
type Choice = z.core.$ZodIssueInvalidUnion

/** Zod's message for unions, and for rules without a message. */
const GENERIC_MESSAGE = 'Invalid input'

const TYPE_NAMES: Readonly<Record<string, readonly string[]>> = {
  string: ['a text'],
  number: ['a number'],
  int: ['a whole number'],
  boolean: ['true', 'false'],
  object: ['an object'],
  record: ['an object'],
  array: ['a list'],
}

/** Maximum number of findings. A hostile body has an issue for each of 100,000 values. */
const FINDINGS_LIMIT = 20

/** Converts the first of zod's issues about `value` to at most 20 findings. */
export function validationFindings(issues: readonly Issue[], value: unknown): ValidationFinding[] {
  return issues
    .slice(0, FINDINGS_LIMIT)
    .flatMap((issue) => findingsOfIssue(issue, value))
    .slice(0, FINDINGS_LIMIT)
}

function findingsOfIssue(issue: Issue, value: unknown): ValidationFinding[] {
  const { path } = issue
  // A rule of ours. Its message says what is wrong.
  const code = issue.code === 'custom' ? 'invalid_value' : issue.code
  if (issue.code === 'unrecognized_keys')
    return issue.keys
      .slice(0, FINDINGS_LIMIT)
      .map((key) => ({ path: [...path, key], code: 'unknown_field', message: `unknown field "${key}"` }))
  if (issue.code === 'invalid_type' && issue.message.includes('received undefined'))
    return [{ path, code: 'missing', message: `is missing: expected ${listed(expectedValues(issue))}` }]
  if (issue.code === 'invalid_value' && valueAt(value, path) === undefined)
    return [{ path, code: 'missing', message: `is missing: expected ${listed(issue.values.map(shown))}` }]
  if (issue.code === 'invalid_union' && (issue.message === GENERIC_MESSAGE || discriminators(issue)))
    return findingsOfUnion(issue, value)
  return [{ path, code, message: ruleOf(issue) }]
}

/** Beginnings of the library's own texts. Other messages are of our schemas. */
const TEXT_OF_ZOD = /^(?:Invalid |Too big: |Too small: |Unrecognized )/

/** The rule that a value breaks, as the end of a sentence about it: `must have at most 120 characters`. */
export function ruleOf(issue: Issue): string {
  if (!TEXT_OF_ZOD.test(issue.message)) return issue.message
  switch (issue.code) {
    case 'too_big':
      return sizeRule(
        issue.origin,
        issue.exact ? 'exactly' : issue.inclusive === false ? 'less than' : 'at most',
        issue.maximum,
      )
    case 'too_small':
      return sizeRule(
        issue.origin,
        issue.exact ? 'exactly' : issue.inclusive === false ? 'more than' : 'at least',
        issue.minimum,
      )
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_format':
      return formatRule(issue)
    case 'invalid_type':
    case 'invalid_value':
      return typeRule(issue)
    case 'invalid_key': {
      const [inner] = issue.issues
      return inner ? `this name ${ruleOf(inner)}` : 'is no valid name'
    }
    default:
      return issue.message.replace(/^Invalid input: /, '')
  }
}

/** What a size counts, for one and for several. */
const COUNTED: Readonly<Record<string, readonly [one: string, many: string]>> = {
  string: ['character', 'characters'],
  array: ['entry', 'entries'],
  set: ['entry', 'entries'],
  map: ['entry', 'entries'],
  object: ['field', 'fields'],
  file: ['byte', 'bytes'],
}

function sizeRule(origin: string, bound: string, limit: number | bigint): string {
  const counted = COUNTED[origin]
  if (!counted) return `must be ${bound} ${limit}`
  if (bound === 'at least' && Number(limit) === 1) return 'must not be empty'
  return `must have ${bound} ${limit} ${counted[Number(limit) === 1 ? 0 : 1]}`
}

/** What a text of a format is, with an example. */
const FORMATS: Readonly<Record<string, string>> = {
  email: 'an e-mail address such as name@shop.example',
  url: 'an address such as https://shop.example/path',
  datetime: 'a time such as 2026-11-30T12:00:00Z',
  date: 'a day such as 2026-11-30',
  time: 'a time of day such as 12:00:00',
  uuid: 'a UUID such as 0190f2b4-7a3e-7c1d-8f00-5d2c9e6a1b34',
  base64: 'base64',
  base64url: 'base64url',
}

function formatRule(issue: Extract<Issue, { code: 'invalid_format' }>): string {
  const { prefix, suffix, includes, pattern } = issue as Issue & {
    prefix?: unknown
    suffix?: unknown
    includes?: unknown
    pattern?: unknown
  }
  if (typeof prefix === 'string') return `must begin with "${prefix}"`
  if (typeof suffix === 'string') return `must end with "${suffix}"`
  if (typeof includes === 'string') return `must contain "${includes}"`
  const format = FORMATS[issue.format]
  if (format !== undefined) return `must be ${format}`
  return typeof pattern === 'string' ? `must match the pattern ${pattern}` : `must be a valid ${issue.format}`
}

const RECEIVED: Readonly<Record<string, string>> = {
  string: 'a text',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
}

function typeRule(issue: Extract<Issue, { code: 'invalid_type' | 'invalid_value' }>): string {
  const rule = `must be ${listed(expectedValues(issue))}`
  const [, received = ''] = /received (\w+)$/.exec(issue.message) ?? []
  // Zod calls a broken number a number.
  const isUnclear = received === '' || (received === 'number' && rule.endsWith('number'))
  return issue.code === 'invalid_value' || isUnclear ? rule : `${rule}, not ${RECEIVED[received] ?? received}`
}

/** Reports why no variant of a union fits: the errors of the closest variant, or what the variants require. */
function findingsOfUnion(issue: Choice, value: unknown): ValidationFinding[] {
  const { path, code } = issue
  const options = issue.errors
  const [closest, ...others] = closestOptions(options)
  if (closest && others.length === 0)
    return validationFindings(
      closest.map((inner) => ({ ...inner, path: [...path, ...inner.path] })),
      value,
    )
  if (closest) {
    const needs = [closest, ...others].map((option) => missingIn(option).join(' and ')).filter((names) => names !== '')
    if (needs.length > 0) return [{ path, code, message: `needs ${[...new Set(needs)].join(', or ')}` }]
  }
  const expected = listed(discriminators(issue)?.map(shown) ?? [...new Set(options.flat().flatMap(expectedValues))])
  if (valueAt(value, path) === undefined)
    return [{ path, code: 'missing', message: `is missing: expected ${expected}` }]
  return [{ path, code, message: `must be ${expected}` }]
}

/** Values of the discriminator, if none of them matched. */
function discriminators(issue: Choice): readonly unknown[] | undefined {
  return 'options' in issue ? issue.options : undefined
}

/** Variants of the value's type with the fewest unknown fields. */
function closestOptions(options: readonly (readonly Issue[])[]): (readonly Issue[])[] {
  const near = options.filter((option) => option.every((inner) => inner.path.length > 0 || !isOfType(inner)))
  const unknown = (option: readonly Issue[]) =>
    option.reduce(
      (sum, inner) => sum + (inner.code === 'unrecognized_keys' && inner.path.length === 0 ? inner.keys.length : 0),
      0,
    )
  const least = Math.min(...near.map(unknown))
  return near.filter((option) => unknown(option) === least)
}

function isOfType({ code }: Issue): boolean {
  return code === 'invalid_type' || code === 'invalid_value' || code === 'invalid_union'
}

function missingIn(option: readonly Issue[]): string[] {
  return option.flatMap((inner) =>
    inner.path.length === 1 && inner.code === 'invalid_type' && inner.message.includes('received undefined')
      ? [String(inner.path[0])]
      : [],
  )
}

function expectedValues(issue: Issue): readonly string[] {
  if (issue.code === 'invalid_value') return issue.values.map(shown)
  if (issue.code === 'invalid_type') return TYPE_NAMES[issue.expected] ?? [issue.expected]
  return issue.code === 'invalid_union' ? issue.errors.flat().flatMap(expectedValues) : []
}

function shown(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : String(value)
}

/** Lists the items as `a, b or c`. */
function listed(items: readonly string[]): string {
  return items.length < 2 ? (items[0] ?? 'something else') : `${items.slice(0, -1).join(', ')} or ${items.at(-1)}`
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, step) => (inner as Record<PropertyKey, unknown> | null | undefined)?.[step],
    value,
  )
}

/** Formats a path: `items[0].vat`. */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((step, i) => (typeof step === 'number' ? `[${step}]` : i === 0 ? String(step) : `.${String(step)}`))
    .join('')
}

/** Formats a finding as one sentence. */
export function findingMessage({ path, code, message }: ValidationFinding): string {
  if (code === 'unknown_field') return path.length > 1 ? `${message} in ${pathText(path.slice(0, -1))}` : message
  const where = pathText(path) || 'the body'
  return code === 'missing' ? `${where} ${message}` : `${where}: ${message}`
}
