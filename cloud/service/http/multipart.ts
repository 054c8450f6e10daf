import type { Context } from 'hono'
import { Failure, invalid } from '../../platform/foundation/failure.ts'
import { type Multipart, UploadedFile } from '../../platform/operations/validation.ts'
import { readBytes } from './body.ts'

/** Maximum number of parts in one body. */
const PART_LIMIT = 50
/** Maximum length of the texts of a form beside its file, bytes. */
const TEXTS_LIMIT = 256 * 1024
/** Maximum length of the header of a part, bytes. */
const HEADER_LIMIT = 4_096

/** A parameter of a content type (RFC 9110 §5.6.6), without escaped characters. */
const TYPE_PARAMETER = /[ \t]*;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:([\w!#$%&'*+.^`|~-]+)|"([^"\\]*)")/y
/** A parameter of a part. Browsers write `%22` for a quotation mark, and a backslash as it is. */
const PART_PARAMETER = /[ \t]*;[ \t]*([\w!#$%&'*+.^`|~-]+)=(?:([\w!#$%&'*+.^`|~-]+)|"([^"]*)")/y
/** RFC 2046 §5.1.1, from 4 characters: Node.js searches for shorter delimiters one byte at a time. */
const BOUNDARY = /^[\w'()+,\-./:=? ]{3,69}[\w'()+,\-./:=?]$/

/** True if the content type is multipart/form-data. */
export function isMultipart(c: Context): boolean {
  return /^multipart\/form-data[ \t]*(?:;|$)/i.test(c.req.header('content-type') ?? '')
}

/** The parameters of a header, with names in lower case; undefined if one occurs twice, or another text is among them. */
function parametersOf(text: string, pattern: RegExp): Record<string, string> | undefined {
  const parameters = new Map<string, string>()
  let end = 0
  pattern.lastIndex = 0
  for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
    const [, name = '', token, quoted] = found
    if (parameters.has(name.toLowerCase())) return undefined
    parameters.set(name.toLowerCase(), token ?? quoted ?? '')
    end = pattern.lastIndex
  }
  return /^[ \t]*$/.test(text.slice(end)) ? Object.fromEntries(parameters) : undefined
}

/** Reads the boundary. The type may have one `boundary` and one `charset` of UTF-8. */
function boundaryOf(type: string): string {
  const parameters = parametersOf(type.slice('multipart/form-data'.length), TYPE_PARAMETER)
  const { boundary = '', charset = 'utf-8', ...others } = parameters ?? {}
  const isKnown = Object.keys(others).length === 0 && charset.toLowerCase() === 'utf-8'
  if (!isKnown || !BOUNDARY.test(boundary)) throw badType()
  return boundary
}

function badType(): Failure {
  return new Failure(
    'invalid-argument',
    'the content type must be multipart/form-data; boundary=… with one boundary of 4 to 70 characters',
  )
}

/** Reads a multipart/form-data body: text fields as strings, the file as an `UploadedFile`. Throws 400 or 413. */
export async function readMultipart(c: Context, { fileField, limit }: Multipart): Promise<Record<string, unknown>> {
  const boundary = boundaryOf(c.req.header('content-type') ?? '')
  const bytes = await readBytes(c, limit)
  // A `Map` treats a name such as __proto__ as an ordinary, unknown field.
  const fields = new Map<string, unknown>()
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let texts = 0
  for (const { header, content } of partsOf(body, boundary)) {
    const { name, fileName } = dispositionOf(header)
    if (fileName === undefined && (texts += content.length) > TEXTS_LIMIT)
      throw new Failure('payload-too-large', `texts beside a file have at most ${TEXTS_LIMIT} bytes: send a file`)
    if (fields.has(name)) throw invalid(name, 'is sent twice: send it once')
    if (fileName === undefined) {
      const value = decoded(content)
      if (value.includes('\0')) throw invalid(name, 'contains a NUL')
      if (name === fileField) throw invalid(name, 'must be a file: give its part a filename')
      fields.set(name, value)
    } else fields.set(name, new UploadedFile(fileName, content))
  }
  return Object.fromEntries(fields)
}

const badForm = () => new Failure('invalid-argument', 'the body is not valid multipart/form-data')

const strictly = new TextDecoder('utf-8', { fatal: true })

function decoded(bytes: Uint8Array): string {
  try {
    return strictly.decode(bytes)
  } catch {
    throw badForm()
  }
}

interface Part {
  readonly header: string
  readonly content: Buffer
}

/** Splits a body without copying it (RFC 2046 §5.1.1). */
function partsOf(body: Buffer, boundary: string): Part[] {
  const found: Part[] = []
  const delimiter = Buffer.from(`\r\n--${boundary}`)
  // The first delimiter needs no line end before it.
  const first = delimiter.subarray(2)
  if (!body.subarray(0, first.length).equals(first)) throw badForm()
  let at = first.length
  while (body.toString('latin1', at, at + 2) !== '--') {
    if (found.length === PART_LIMIT) throw new Failure('invalid-argument', `a form has at most ${PART_LIMIT} parts`)
    if (body.toString('latin1', at, at + 2) !== '\r\n') throw badForm()
    const header = body.subarray(at + 2, at + 2 + HEADER_LIMIT)
    const length = header.indexOf('\r\n\r\n')
    if (length < 0) throw new Failure('invalid-argument', `the header of a part must end within ${HEADER_LIMIT} bytes`)
    const from = at + 2 + length + 4
    const end = body.indexOf(delimiter, from)
    if (end < 0) throw badForm()
    found.push({ header: decoded(header.subarray(0, length)), content: body.subarray(from, end) })
    at = end + delimiter.length
  }
  return found
}

/** Name of the field, and of the file if the part is one (RFC 7578 §4.2). Throws 400 for another disposition. */
function dispositionOf(header: string): { name: string; fileName: string | undefined } {
  const lines = header.split('\r\n').filter((line) => /^content-disposition[ \t]*:/i.test(line))
  const [, text] = /^[^:]*:[ \t]*form-data(?=[ \t]*(?:;|$))([^\r\n]*)$/i.exec(lines[0] ?? '') ?? []
  if (lines.length !== 1 || text === undefined) throw badForm()
  const { name, filename, 'filename*': encoded } = parametersOf(text, PART_PARAMETER) ?? {}
  if (name === undefined) throw badForm()
  return { name: unescaped(name), fileName: filename === undefined ? encoded : unescaped(filename) }
}

/** As browsers escape names (HTML, "multipart/form-data encoding algorithm"). */
function unescaped(text: string): string {
  return text.replaceAll('%22', '"').replaceAll(/%0D/gi, '\r').replaceAll(/%0A/gi, '\n')
}
