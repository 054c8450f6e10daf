import type { Context } from 'hono'
import type { Language } from '../../../policy/page-language.ts'
import { secretsEqual } from '../../../policy/secrets-equal.ts'
import { Failure } from '../../platform/foundation/failure.ts'
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

/** Fields of a sent form. Texts are trimmed. */
export class FormFields {
  readonly #fields: URLSearchParams

  constructor(fields: URLSearchParams) {
    this.#fields = fields
  }

  /** The text of a field; undefined if it is missing or empty. */
  text(name: string): string | undefined {
    const text = this.#fields.get(name)?.replaceAll('\r\n', '\n').trim()
    return text === '' ? undefined : text
  }

  /** A number, also with a decimal comma. A text that is no number stays a text, so that the operation rejects it. */
  number(name: string): number | string | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    return /^-?\d{1,12}(?:[.,]\d{1,6})?$/.test(text) ? Number(text.replace(',', '.')) : text
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

  /** The fields as they were sent, without those of the frame and without passwords and PINs. */
  values(): Record<string, string> {
    const isKept = (name: string) => !name.startsWith('_') && !/password|pin|code/i.test(name)
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

/** Codes whose messages are sentences of our own rules. All are English. */
const OWN_RULES: ReadonlySet<string> = new Set(['invalid'])

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
  for (const { path, code, message } of details)
    errors[action?.fieldOf?.(path) ?? path.split(/[.[]/)[0] ?? path] ??= textOf(path, code, message)
  const isField = failure.code === 'invalid-argument' && details.length > 0
  const why = isField || reason === undefined ? '' : ` (${failure.message})`
  // The session itself was checked before: a form with a code or password contains a wrong one.
  const hasSecret = form.text('code') !== undefined || form.text('password') !== undefined
  const isWrongSecret = failure.code === 'unauthenticated' && hasSecret
  const known = isWrongSecret
    ? texts.errors.wrongSecret
    : reason === 'alarm_disposed'
      ? texts.errors.alarm_disposed
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
  if (fields.size > FIELDS_LIMIT) throw new Failure('invalid-argument', `the form has more than ${FIELDS_LIMIT} fields`)
  return new FormFields(fields)
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
