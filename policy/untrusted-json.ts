/**
 * Limits of JSON from outside: request bodies, and answers of tills, ERP systems, payment providers and devices. To
 * parse and check a million values takes seconds, in which the process serves no other caller.
 */
const MAX_DEPTH = 32
const MAX_VALUES = 50_000
/** Limits that an answer of a system with long lists needs. */
export interface JsonLimits {
  /** Values of the whole body. */
  readonly maxValues?: number
  /** Values of one list. */
  readonly maxItems?: number
  /** Characters of one text. */
  readonly maxText?: number
}
/** The largest object of a valid body has 500 fields: the categories of a policy. */
const MAX_FIELDS = 1_000

type JsonFaultCode =
  | 'not_json'
  | 'too_many_values'
  | 'too_deep'
  | 'too_many_fields'
  | 'text_too_long'
  | 'bad_characters'

/** JSON that is invalid or exceeds a limit. */
export class JsonFault extends Error {
  override name = 'JsonFault'
  readonly code: JsonFaultCode
  /** Name of the nearest field; empty if there is none. */
  readonly field: string
  constructor(code: JsonFaultCode, field: string, message: string) {
    super(message)
    this.code = code
    this.field = field
  }
}

/**
 * Parses JSON from outside. Throws a `JsonFault`. Counts the values before it parses them. Limits the depth, because
 * JSON.parse accepts nesting that would overflow the stack of later code. Limits the fields of each object, because the
 * schemas take up to 20 µs for each. `checkText` receives each name and text, and the nearest field.
 */
export function parseUntrustedJson(
  text: string,
  checkText?: (text: string, field: string) => void,
  { maxValues = MAX_VALUES, maxItems = maxValues, maxText = Infinity }: JsonLimits = {},
): unknown {
  if (hasTooManyValues(text, maxValues))
    throw new JsonFault('too_many_values', '', `the body has more than ${maxValues} values`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new JsonFault('not_json', '', 'the body is not valid JSON')
  }
  checkBounds(value, { maxItems, maxText }, checkText)
  return value
}

/** PostgreSQL rejects NUL, and UTF-8 cannot represent an unpaired surrogate. */
export const isStorableText = (text: string): boolean => !text.includes('\0') && text.isWellFormed()
export const UNSTORABLE_TEXT = 'contains a NUL or an unpaired surrogate'

/** `checkText` for texts that are stored. */
export function checkStorable(text: string, field: string): void {
  if (!isStorableText(text)) throw new JsonFault('bad_characters', field, `${field || 'the body'} ${UNSTORABLE_TEXT}`)
}

/** Path of the first field whose name or text cannot be stored; undefined if there is none. */
export function unstorableField(value: unknown): string[] | undefined {
  if (typeof value === 'string') return isStorableText(value) ? undefined : []
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, child] of Object.entries(value)) {
    const path = isStorableText(key) ? unstorableField(child) : []
    if (path !== undefined) return [key, ...path]
  }
  return undefined
}

/** Like `parseUntrustedJson`; undefined if the text is not JSON or exceeds a limit. */
export function readUntrustedJson(text: string, limits?: JsonLimits): unknown {
  try {
    return parseUntrustedJson(text, undefined, limits)
  } catch (error) {
    if (error instanceof JsonFault) return undefined
    throw error
  }
}

const [QUOTE, COMMA, BRACKET, BACKSLASH, BRACE] = Array.from('",[\\{', (sign) => sign.charCodeAt(0))

/** In valid JSON, each value but the first follows a comma, or is the first one in a list or an object. */
function hasTooManyValues(text: string, maxValues: number): boolean {
  if (text.length <= maxValues) return false
  let values = 0
  for (let at = 0; at < text.length; at++) {
    const sign = text.charCodeAt(at)
    if (sign === QUOTE) at = endOfText(text, at)
    else if ((sign === COMMA || sign === BRACKET || sign === BRACE) && ++values > maxValues) return true
  }
  return false
}

/** Position of the quotation mark that ends the text which begins at `from`, or the length of the JSON. */
function endOfText(text: string, from: number): number {
  for (let at = from + 1; ; at++) {
    at = text.indexOf('"', at)
    if (at < 0) return text.length
    let backslashes = 0
    while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return at
  }
}

function checkBounds(
  root: unknown,
  { maxItems, maxText }: { maxItems: number; maxText: number },
  checkText: ((text: string, field: string) => void) | undefined,
): void {
  const stack: { value: unknown; depth: number; name: string }[] = [{ value: root, depth: 1, name: '' }]
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { value, depth, name } = next
    if (typeof value === 'string') {
      if (value.length > maxText)
        throw new JsonFault('text_too_long', name, `a text of the body has more than ${maxText} characters`)
      checkText?.(value, name)
    }
    if (typeof value !== 'object' || value === null) continue
    if (depth > MAX_DEPTH)
      throw new JsonFault('too_deep', name, `the body is nested more than ${MAX_DEPTH} levels deep`)
    if (Array.isArray(value) && value.length > maxItems)
      throw new JsonFault('too_many_values', name, `a list of the body has more than ${maxItems} values`)
    const fields = Object.entries(value)
    if (fields.length > MAX_FIELDS && !Array.isArray(value))
      throw new JsonFault('too_many_fields', name, `an object of the body has more than ${MAX_FIELDS} fields`)
    for (const [key, child] of fields) {
      checkText?.(key, key)
      stack.push({ value: child, depth: depth + 1, name: Array.isArray(value) ? name : key })
    }
  }
}
