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
  return [{ path, code, message: issue.message.replace(/^Invalid input: /, '') }]
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
