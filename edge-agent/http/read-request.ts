import type { Context } from 'hono'
import type { z } from 'zod'
import { validationFindings, findingMessage, pathText } from '../../policy/validation-findings.ts'
import { REPORT_BYTES_LIMIT } from '../../policy/journal.ts'
import { checkStorable, JsonFault, parseUntrustedJson } from '../../policy/untrusted-json.ts'
import { fail } from './fail.ts'

/** Maximum size of a JSON body, bytes. */
const BODY_LIMIT = 16 * 1024
/** Maximum size of a sale, void or return, bytes. */
export const SALE_BODY_LIMIT = REPORT_BYTES_LIMIT
/** Maximum size of a notice about sales of tills, bytes. */
export const TILL_NOTICE_LIMIT = 96 * 1024
/** Maximum faults in one answer. */
export const DETAILS_LIMIT = 20

/** Returns the JSON body of a request, or an error answer. Does not read a body whose Content-Length is too large. */
export async function readBody<S extends z.ZodType>(
  c: Context,
  schema: S,
  limit = BODY_LIMIT,
): Promise<z.output<S> | Response> {
  if (!/^application\/json *(;|$)/i.test(c.req.header('content-type') ?? ''))
    return fail(c, 415, 'unsupported-media-type', 'send application/json')
  if (!isShortBody(c, limit)) return failTooLarge(c, limit)
  let value: unknown
  try {
    value = parseUntrustedJson(await c.req.text(), checkStorable)
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error
    const { field: path, code, message } = error
    return fail(c, 400, 'invalid-argument', message, [{ path, code, message }])
  }
  return checked(c, schema, value)
}

/** The answer to a body that is longer than `limit`, bytes, or does not announce its length. */
export function failTooLarge(c: Context, limit: number): Response {
  return fail(c, 413, 'payload-too-large', `send a Content-Length of at most ${limit}`)
}

/** True if the request announces a body of at most `limit`. */
export function isShortBody(c: Context, limit = BODY_LIMIT): boolean {
  const announced = c.req.header('content-length') ?? ''
  return /^\d{1,9}$/.test(announced) && Number(announced) <= limit
}

/** Returns the query of a request, or an error answer. */
export function readQuery<S extends z.ZodType>(c: Context, schema: S): z.output<S> | Response {
  return checked(c, schema, c.req.query())
}

function checked<S extends z.ZodType>(c: Context, schema: S, value: unknown): z.output<S> | Response {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const details = validationFindings(parsed.error.issues, value)
    .slice(0, DETAILS_LIMIT)
    .map((finding) => ({ path: pathText(finding.path), code: finding.code, message: findingMessage(finding) }))
  const error = details.map(({ message }) => message).slice(0, 3)
  return fail(c, 400, 'invalid-argument', error.join('; '), details)
}
