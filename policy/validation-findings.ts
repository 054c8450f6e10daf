import type { z } from 'zod'

/** What is wrong in one place of an input, in words that say what would be right. */
export interface ValidationFinding {
  path: readonly PropertyKey[]
  /** `missing`, `unknown_field`, or zod's own. */
  code: string
  /** Without the path. */
  message: string
}

type Issue = z.core.$ZodIssue
type Choice = z.core.$ZodIssueInvalidUnion

/** What zod says of a choice, and of a rule that has no words of its own. */
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

/** The findings behind the issues of a schema that was given `value`. */
export function validationFindings(issues: readonly Issue[], value: unknown): ValidationFinding[] {
  return issues.flatMap((issue) => findingsOfIssue(issue, value))
}

function findingsOfIssue(issue: Issue, value: unknown): ValidationFinding[] {
  const { path, code } = issue
  if (code === 'unrecognized_keys')
    return issue.keys.map((key) => ({ path: [...path, key], code: 'unknown_field', message: `unknown field "${key}"` }))
  if (code === 'invalid_type' && issue.message.includes('received undefined'))
    return [{ path, code: 'missing', message: `is missing (${issue.expected})` }]
  if (code === 'invalid_value' && valueAt(value, path) === undefined)
    return [{ path, code: 'missing', message: `is missing (${listed(issue.values.map(shown))})` }]
  if (code === 'invalid_union' && (issue.message === GENERIC_MESSAGE || discriminators(issue)))
    return findingsOfUnion(issue, value)
  return [{ path, code, message: issue.message.replace(/^Invalid input: /, '') }]
}

/** Of several forms none fits: what is wrong with the one that was meant, or what each of them would be. */
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
  if (valueAt(value, path) === undefined) return [{ path, code: 'missing', message: `is missing (${expected})` }]
  return [{ path, code, message: `must be ${expected}` }]
}

/** The words by which zod tells the forms apart, where it was none of them. */
function discriminators(issue: Choice): readonly unknown[] | undefined {
  return 'options' in issue ? issue.options : undefined
}

/** The forms that the value comes nearest to: of its type, then with the fewest fields that they do not know. */
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

/** `a, b or c`. */
function listed(items: readonly string[]): string {
  return items.length < 2 ? (items[0] ?? 'something else') : `${items.slice(0, -1).join(', ')} or ${items.at(-1)}`
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (inner, step) => (inner as Record<PropertyKey, unknown> | null | undefined)?.[step],
    value,
  )
}

/** A path as people write it: `items[0].vat`. */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((step, i) => (typeof step === 'number' ? `[${step}]` : i === 0 ? String(step) : `.${String(step)}`))
    .join('')
}

/** A finding as one sentence. */
export function findingMessage({ path, code, message }: ValidationFinding): string {
  if (code === 'unknown_field') return path.length > 1 ? `${message} in ${pathText(path.slice(0, -1))}` : message
  const where = pathText(path) || 'the body'
  return code === 'missing' ? `${where} ${message}` : `${where}: ${message}`
}
