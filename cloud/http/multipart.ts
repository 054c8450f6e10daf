import type { Context } from 'hono'
import { Failure, invalid } from '../foundation/failure.ts'
import type { Multipart } from '../operations/body-formats.ts'
import { UploadedFile } from '../operations/uploaded-file.ts'
import { readBytes } from './body.ts'

/** Maximum number of parts in one body. */
const PART_LIMIT = 50

/** True if the content type is multipart/form-data. */
export function isMultipart(c: Context): boolean {
  return /^multipart\/form-data *(;|$)/i.test(c.req.header('content-type') ?? '')
}

/** Reads a multipart/form-data body: text fields as strings, the file as an `UploadedFile`. Throws 400 or 413. */
export async function readMultipart(c: Context, { fileField, limit }: Multipart): Promise<Record<string, unknown>> {
  const type = c.req.header('content-type') ?? ''
  const bytes = await readBytes(c, limit)
  checkParts(bytes, type)
  const form = await new Response(bytes as Uint8Array<ArrayBuffer>, { headers: { 'content-type': type } })
    .formData()
    .catch(() => {
      throw new Failure('invalid-argument', 'the body is not valid multipart/form-data')
    })
  // A `Map` treats a name such as __proto__ as an ordinary, unknown field.
  const fields = new Map<string, unknown>()
  for (const [name, value] of form) {
    if (fields.has(name)) throw invalid(name, 'is sent twice: send it once')
    if (typeof value === 'string') {
      if (value.includes('\0') || !value.isWellFormed()) throw invalid(name, 'contains a NUL or an unpaired surrogate')
      if (name === fileField) throw invalid(name, 'must be a file: give its part a filename')
      fields.set(name, value)
    } else fields.set(name, new UploadedFile(value.name, new Uint8Array(await value.arrayBuffer())))
  }
  return Object.fromEntries(fields)
}

/** Limits the parts before parsing, because a small body can hold very many empty parts. */
function checkParts(bytes: Uint8Array, type: string): void {
  const boundary = /boundary=(?:"([^"]{1,70})"|([^;\s]{1,70}))/i.exec(type)
  const delimiter = Buffer.from(`--${boundary?.[1] ?? boundary?.[2] ?? ''}`)
  if (!boundary) throw new Failure('invalid-argument', 'multipart/form-data needs a boundary in its content type')
  const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let parts = 0
  for (let at = body.indexOf(delimiter); at >= 0; at = body.indexOf(delimiter, at + delimiter.length)) {
    if (++parts > PART_LIMIT + 1) throw new Failure('invalid-argument', `a form has at most ${PART_LIMIT} parts`)
  }
}
