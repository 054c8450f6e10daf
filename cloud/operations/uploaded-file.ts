import { z } from 'zod'

/** A file out of a multipart body, whole: never larger than its operation takes. */
export class UploadedFile {
  readonly name: string
  readonly bytes: Uint8Array
  constructor(name: string, bytes: Uint8Array) {
    this.name = name
    this.bytes = bytes
  }
  /** In documentation. */
  toJSON(): string {
    return this.name
  }
}

/** The file field of a request. JSON cannot make one. */
export const FileField = z
  .instanceof(UploadedFile, { error: 'must be a file: send multipart/form-data' })
  .meta({ type: 'string', format: 'binary' })

/** Yes or no, also as the text that a form sends. */
export const FormBoolean = z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')])
