import { Failure } from '../foundation/failure.ts'

const MAX_DEPTH = 32
const MAX_VALUES = 100_000

/**
 * Parses a request body. Limits depth and number of values: JSON.parse accepts nesting that would overflow the stack
 * of later code.
 */
export function parseJsonBody(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = text.trim() === '' ? {} : JSON.parse(text)
  } catch {
    throw new Failure('invalid-argument', 'the body is not valid JSON', {
      details: [{ path: '', code: 'not_json', message: 'the body is not valid JSON' }],
    })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refuse('', 'not_object', 'the body must be a JSON object')
  checkBounds(value)
  return value as Record<string, unknown>
}

function refuse(path: string, code: string, message: string): Failure {
  return new Failure('invalid-argument', message, { details: [{ path, code, message }] })
}

function checkBounds(root: object): void {
  let values = 0
  const stack: { value: unknown; depth: number; name: string }[] = [{ value: root, depth: 1, name: '' }]
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { value, depth, name } = next
    if (++values > MAX_VALUES) throw refuse(name, 'too_many_values', `the body has more than ${MAX_VALUES} values`)
    if (typeof value === 'string') checkText(value, name)
    if (typeof value !== 'object' || value === null) continue
    if (depth > MAX_DEPTH) throw refuse(name, 'too_deep', `the body is nested more than ${MAX_DEPTH} levels deep`)
    for (const [key, child] of Object.entries(value)) {
      checkText(key, key)
      stack.push({ value: child, depth: depth + 1, name: Array.isArray(value) ? name : key })
    }
  }
}

/** Rejects NUL, which PostgreSQL cannot store, and unpaired surrogates, which are not characters. */
function checkText(text: string, name: string): void {
  if (text.includes('\0') || !text.isWellFormed()) {
    throw refuse(name, 'bad_characters', `${name || 'the body'} contains a NUL or an unpaired surrogate`)
  }
}
