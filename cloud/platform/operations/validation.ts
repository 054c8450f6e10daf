import { z } from 'zod'
import {
  validationFindings,
  findingMessage,
  pathText,
  type ValidationFinding,
} from '../../../policy/validation-findings.ts'
import { Failure, invalid, type ErrorCode, type ErrorDetail } from '../foundation/failure.ts'
import {
  checkStorable,
  JsonFault,
  parseUntrustedJson,
  UNSTORABLE_TEXT,
  unstorableField,
} from '../../../policy/untrusted-json.ts'

/** A file of a multipart body, in memory. The operation limits its size. */
export class UploadedFile {
  readonly name: string
  readonly bytes: Uint8Array
  constructor(name: string, bytes: Uint8Array) {
    this.name = name
    this.bytes = bytes
  }
  /** Example requests in the documentation contain only the file name. */
  toJSON(): string {
    return this.name
  }
}

/** The file field of a request. A JSON body cannot contain a file. */
export const FileField = z
  .instanceof(UploadedFile, { error: 'must be a file: send multipart/form-data' })
  .meta({ type: 'string', format: 'binary' })

/** A boolean, or the text `true` or `false` from a form. */
export const FormBoolean = z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')])

/** A response whose chunks are produced during sending. */
export interface StreamedResponse {
  readonly contentType: string
  /** File name for browsers. */
  readonly fileName?: string
  readonly chunks: AsyncIterable<string>
}

/** Content type of a streamed response for requests with this `format`. */
export interface ResponseFormat {
  readonly format: string
  readonly contentType: string
  readonly description: string
}

/** Limits of multipart/form-data: text fields become strings, the file an `UploadedFile`. */
export interface Multipart {
  readonly fileField: string
  /** Maximum size of the whole body, bytes. */
  readonly limit: number
  /** True if the operation accepts JSON, too. */
  readonly alsoJson: boolean
}

/** Parses JSON of a caller, with the limits of a request body. Throws 400. */
export function parseCallersJson(text: string, checkText = checkStorable): unknown {
  try {
    return parseUntrustedJson(text, checkText)
  } catch (error) {
    throw error instanceof JsonFault ? refuse(error.field, error.code, error.message) : error
  }
}

/**
 * Parses a request body. Throws 400 for a body that is not an object or exceeds a limit. `rows`: name of the list whose
 * rows the operation checks by `readRow`.
 */
export function parseJsonBody(text: string, rows?: string): Record<string, unknown> {
  const value = text.trim() === '' ? {} : parseCallersJson(text, rows === undefined ? checkStorable : ignoreTexts)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw refuse('', 'not_object', 'the body must be a JSON object')
  const body = value as Record<string, unknown>
  if (rows !== undefined) refuseUnstorable({ ...body, [rows]: undefined })
  return body
}

const ignoreTexts = () => undefined

/** Reads one row of a list whose rows are refused one by one. Throws a 400 that names the field. */
export function readRow<T>(schema: z.ZodType<T>, sent: unknown): T {
  const read = schema.safeParse(sent)
  if (!read.success) {
    const [finding] = validationFindings(read.error.issues, sent)
    throw invalid(finding?.path.join('.') || 'row', finding?.message ?? 'is malformed')
  }
  refuseUnstorable(sent)
  return read.data
}

/** Throws a 400 that names the field whose name or text cannot be stored. */
function refuseUnstorable(value: unknown): void {
  const path = unstorableField(value)
  if (path) throw invalid(path.join('.'), UNSTORABLE_TEXT, 'bad_characters')
}

function refuse(path: string, code: string, message: string): Failure {
  return new Failure('invalid-argument', message, { details: [{ path, code, message }] })
}

/** The Error object of the specification, with our additions (ADR requests). */
export interface ErrorBody {
  error: string
  code: ErrorCode
  reason?: string
  requiredUpgrade?: string
  currentPackage?: string
  details?: ErrorDetail[]
  allowedNext?: readonly string[]
  retryAt?: string
  accounts?: readonly string[]
  flow?: string
  requestId: string
}

/** Converts a failure to the body of an error response. */
export function errorBody(failure: Failure, requestId: string): ErrorBody {
  const { reason, requiredUpgrade, currentPackage, details, allowedNext, retryAt, accounts, flow } = failure.extras
  return {
    error: failure.message,
    code: failure.code,
    ...(reason !== undefined && { reason }),
    ...(requiredUpgrade !== undefined && { requiredUpgrade }),
    ...(currentPackage !== undefined && { currentPackage }),
    ...(details && details.length > 0 && { details }),
    ...(allowedNext && { allowedNext }),
    ...(retryAt !== undefined && { retryAt }),
    ...(accounts && { accounts }),
    ...(flow !== undefined && { flow }),
    requestId,
  }
}

/** The failure that an error body states: a refusal that was stored for the request's Idempotency-Key. */
export function failureOfBody({ error, code, ...extras }: ErrorBody): Failure {
  return new Failure(code, error, extras)
}

/** Parses the input of an operation. Throws a 400 that names each wrong field and the rule that the field breaks. */
export function validate<S extends z.ZodType>(schema: S, input: unknown): z.output<S> {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const details = validationFindings(parsed.error.issues, input).map((finding) => detailOf(finding, schema))
  throw new Failure(
    'invalid-argument',
    details
      .map((d) => d.message)
      .slice(0, 3)
      .join('; '),
    { details },
  )
}

function detailOf(finding: ValidationFinding, schema: z.ZodType): ErrorDetail {
  const { path, code } = finding
  const suggestion =
    code === 'unknown_field' ? closestName(String(path.at(-1)), fieldsAt(schema, path.slice(0, -1))) : undefined
  return {
    path: pathText(path),
    code,
    message: `${findingMessage(finding)}${suggestion ? `; did you mean "${suggestion}"?` : ''}`,
  }
}

/** Names of the fields that the schema has at a path. */
function fieldsAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  const def = schema._zod.def as z.core.$ZodTypeDef & {
    shape?: Record<string, z.core.$ZodType>
    element?: z.core.$ZodType
    innerType?: z.core.$ZodType
    in?: z.core.$ZodType
    options?: z.core.$ZodType[]
    valueType?: z.core.$ZodType
  }
  if (def.innerType) return fieldsAt(def.innerType, path)
  if (def.in) return fieldsAt(def.in, path)
  if (def.options) return def.options.flatMap((option) => fieldsAt(option, path))
  const [step, ...rest] = path
  if (step === undefined) return Object.keys(def.shape ?? {})
  const next = def.shape?.[String(step)] ?? def.element ?? def.valueType
  return next ? fieldsAt(next, rest) : []
}

/**
 * The known name with the fewest edits from a misspelt one. Allows at most two edits, or one for words of at most 4
 * characters.
 */
function closestName(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined
  let bestDistance = word.length <= 4 ? 1 : 2
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), bestDistance)
    if (distance <= bestDistance) {
      if (best !== undefined && distance === bestDistance) continue
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Edits between two names (insert, delete, replace, swap of neighbours), or a number over `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit || a.length > 64) return limit + 1
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (previous[j - 1] ?? 0) + (same ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1)
      row.push(cost)
    }
    before = previous
    previous = row
  }
  return previous[b.length] ?? limit + 1
}
