import type { Context } from 'hono'
import type { Language } from '../../../policy/page-language.ts'
import { secretsEqual } from '../../../policy/secrets-equal.ts'
import { Failure, invalid } from '../../platform/foundation/failure.ts'
import { parseCallersJson, UploadedFile, type Multipart } from '../../platform/operations/validation.ts'
import { readMultipart } from '../../service/http/multipart.ts'
import type { ConsoleTexts } from '../texts/catalogue.ts'

/** Maximum number of fields of a form. */
const FIELDS_LIMIT = 200

/** Hidden fields that the frame adds to each form. */
export const FRAME_FIELDS = {
  csrf: '_csrf',
  key: '_key',
  action: '_action',
  form: '_form',
  mode: '_mode',
  store: '_store',
} as const

/** A number, also with a decimal comma. A text that is no number stays a text, so that the operation rejects it. */
export function numberOf(text: string): number | string {
  return /^-?\d{1,12}(?:[.,]\d{1,6})?$/.test(text) ? Number(text.replace(',', '.')) : text
}

/** JSON in a field. A text that is none, or exceeds a limit, stays a text, so that the operation names the field. */
export function jsonOf(text: string): unknown {
  try {
    return parseCallersJson(text)
  } catch {
    return text
  }
}

/** Fields of a sent form. Texts are trimmed. */
export class FormFields {
  readonly #fields: URLSearchParams
  readonly #files: ReadonlyMap<string, UploadedFile>

  constructor(fields: URLSearchParams, files: ReadonlyMap<string, UploadedFile> = new Map()) {
    this.#fields = fields
    this.#files = files
  }

  /** A file; undefined if none was chosen, for which browsers send an empty one. */
  file(name: string): UploadedFile | undefined {
    const file = this.#files.get(name)
    return file && file.bytes.length > 0 ? file : undefined
  }

  /** The text of a field; undefined if it is missing or empty. */
  text(name: string): string | undefined {
    const text = this.#fields.get(name)?.replaceAll('\r\n', '\n').trim()
    return text === '' ? undefined : text
  }

  /** A number as `numberOf` reads it; undefined if the field is missing or empty. */
  number(name: string): number | string | undefined {
    const text = this.text(name)
    return text === undefined ? undefined : numberOf(text)
  }

  /** True if a checkbox is set. */
  isSet(name: string): boolean {
    return this.#fields.has(name)
  }

  /** Names of the fields, each once. */
  names(): string[] {
    return [...new Set(this.#fields.keys())]
  }

  /** All values of a field. */
  all(name: string): string[] {
    return this.#fields.getAll(name)
  }

  /** The fields as they were sent, without those of the frame and without passwords, PINs and credentials. */
  values(): Record<string, string> {
    const isKept = (name: string) =>
      !name.startsWith('_') &&
      !/password|code|^s\..*(?:secret|token|key)/i.test(name) &&
      // Not `mapping`.
      !/\bpin|Pin/.test(name)
    return Object.fromEntries([...this.#fields].filter(([name]) => isKept(name)))
  }
}

/** Values and errors of the form that was sent. Empty if none was rejected. */
export interface FormState {
  /** The form's `_form`, which tells apart forms of one action. */
  readonly id: string | undefined
  readonly values: Readonly<Record<string, string>>
  /** Error text by name of the field. */
  readonly errors: Readonly<Record<string, string>>
  /** Heading of the message. */
  readonly title: string | undefined
  /** What happened, and what to do. */
  readonly message: string | undefined
}

export const NO_FORM: FormState = { id: undefined, values: {}, errors: {}, title: undefined, message: undefined }

/**
 * Hidden field of forms that change one thing: its time of change when the form was made. Operations refuse another value
 * than the stored one, so a second editor sees that the first was faster.
 */
export const VERSION = 'updatedAt'

/** Codes whose messages are sentences of our own rules. All are English. */
const OWN_RULES: ReadonlySet<string> = new Set(['invalid'])

/** Codes of faults in a file whose message quotes a column. */
const COLUMN_CODES: ReadonlySet<string> = new Set(['missing_column', 'unknown_column', 'repeated_column'])

/** 400 of the console about one field, whose texts the console has for this code. */
export function wrongField(path: string, code: keyof ConsoleTexts['errors']['fields']): Failure {
  return new Failure('invalid-argument', `${path}: ${code}`, { details: [{ path, code, message: code }] })
}

/** State of a form that an operation rejected. `action`: what the form was for. */
export function rejectedForm(
  form: FormFields,
  failure: Failure,
  { texts, language }: { texts: ConsoleTexts; language: Language },
  action?: {
    readonly operation: { readonly changes: boolean } | ((at: never) => unknown)
    notFound?(texts: ConsoleTexts): string
    fieldOf?(path: string): string
  },
): FormState {
  const { details = [], reason } = failure.extras
  const byCode: Readonly<Record<string, string>> = texts.errors.fields
  const textOf = (path: string, code: string, message: string) =>
    (code === 'too_small' && /password/i.test(path) ? texts.signIn.passwordTooShort : byCode[code]) ??
    (language === 'en' && OWN_RULES.has(code) ? message : texts.errors.fields.other)
  const errors: Record<string, string> = {}
  for (const { path, code, message } of details) {
    const column = COLUMN_CODES.has(code) ? /"([^"]{1,60})"/.exec(message)?.[1] : undefined
    const text = `${textOf(path, code, message)}${column === undefined ? '' : ` (${column})`}${limitOf(path, code, message, texts)}`
    errors[action?.fieldOf?.(path) ?? path.split(/[.[]/)[0] ?? path] ??= text
    // A form whose field contains a list finds the entry by the whole path.
    errors[path] ??= text
  }
  const isField = failure.code === 'invalid-argument' && details.length > 0
  // A fault of a value that the form has no field for is in the message: no field can be marked.
  const isMarked = form.names().some((name) => errors[name] !== undefined)
  const unmarked = isField && !isMarked ? ` (${[...new Set(Object.values(errors))].join(' ')})` : ''
  const why = isField || reason === undefined ? unmarked : ` (${failure.message})`
  // The session itself was checked before: a form with a code or password contains a wrong one.
  const hasSecret = form.text('code') !== undefined || form.text('password') !== undefined
  const isWrongSecret = failure.code === 'unauthenticated' && hasSecret
  const known = isWrongSecret
    ? texts.errors.wrongSecret
    : reason === 'alarm_disposed' || reason === 'package_changed'
      ? texts.errors[reason]
      : details.some(({ path, code }) => path === VERSION && code === 'system_field')
        ? texts.errors.changedMeanwhile
        : failure.code === 'not-found'
          ? action?.notFound?.(texts)
          : undefined
  const text = known ?? `${texts.errors.codes[failure.code]}${why}`
  return {
    id: form.text(FRAME_FIELDS.form),
    values: form.values(),
    errors,
    // A form that only looks something up saves nothing.
    title:
      typeof action?.operation === 'object' && !action.operation.changes
        ? texts.errors.problem.title
        : texts.errors.form,
    message: text,
  }
}

/** Parses the body of a form. Throws 400 or 415. */
export function parseForm(c: Context, body: Uint8Array): FormFields {
  const type = c.req.header('content-type') ?? ''
  if (!/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type))
    throw new Failure('unsupported-media-type', 'send the form as application/x-www-form-urlencoded')
  const fields = new URLSearchParams(new TextDecoder().decode(body))
  // PostgreSQL cannot store it, and no field of a browser has one.
  for (const [name, value] of fields) if (value.includes('\0')) throw invalid(name, 'contains a NUL')
  if (fields.size > FIELDS_LIMIT) throw new Failure('invalid-argument', `the form has more than ${FIELDS_LIMIT} fields`)
  return new FormFields(fields)
}

/** Reads a form with a file, of at most the limit of the operation that takes the file. Throws 400 or 413. */
export async function readUpload(c: Context, multipart: Multipart): Promise<FormFields> {
  const fields = new URLSearchParams()
  const files = new Map<string, UploadedFile>()
  for (const [name, value] of Object.entries(await readMultipart(c, multipart)))
    if (value instanceof UploadedFile) files.set(name, value)
    else fields.set(name, String(value))
  return new FormFields(fields, files)
}

/**
 * True if a page of this console sent the form: the form contains the secret of the session, and the browser names no
 * other origin.
 */
export function isOwnForm(c: Context, form: FormFields, csrfToken: string): boolean {
  const site = c.req.header('sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false
  return secretsEqual(csrfToken, form.text(FRAME_FIELDS.csrf))
}

/** The limit that a value breaks, if the operation names one, such as `must have at most 120 characters`. */
function limitOf(path: string, code: string, message: string, { errors }: ConsoleTexts): string {
  // The text about short passwords names the limit itself.
  if (code !== 'too_big' && (code !== 'too_small' || /password/i.test(path))) return ''
  const [, bound, limit] = /\b(at least|at most) (\d+)(?: (?:character|entr|piece)\w*)?$/.exec(message) ?? []
  if (limit === undefined) return ''
  return ` ${bound === 'at most' ? errors.atMost(limit) : errors.atLeast(limit)}`
}
