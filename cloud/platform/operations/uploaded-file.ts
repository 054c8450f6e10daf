import { z } from 'zod'

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
