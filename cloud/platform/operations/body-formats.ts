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
