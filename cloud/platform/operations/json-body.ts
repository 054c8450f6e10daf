import { JsonFault, parseUntrustedJson } from '../../../policy/untrusted-json.ts'
import { Failure } from '../foundation/failure.ts'

/** Parses a request body. Throws 400 for a body that is not an object or exceeds a limit. */
export function parseJsonBody(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = text.trim() === '' ? {} : parseUntrustedJson(text, checkText)
  } catch (error) {
    throw error instanceof JsonFault ? refuse(error.field, error.code, error.message) : error
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refuse('', 'not_object', 'the body must be a JSON object')
  return value as Record<string, unknown>
}

function refuse(path: string, code: string, message: string): Failure {
  return new Failure('invalid-argument', message, { details: [{ path, code, message }] })
}

/** Rejects NUL, which PostgreSQL cannot store, and unpaired surrogates, which are not characters. */
function checkText(text: string, field: string): void {
  if (text.includes('\0') || !text.isWellFormed())
    throw new JsonFault('bad_characters', field, `${field || 'the body'} contains a NUL or an unpaired surrogate`)
}
