import type { z } from 'zod'
import type { Operations } from '../cloud/service/operation-table.ts'

/** Request and response types of the operations, from the declarations that the cloud serves. */

export type OperationName = keyof Operations

/** Replaces the files of a multipart request by `Blob`. */
type Sendable<T> = { [K in keyof T]: FileOr<T[K]> }
type FileOr<F> =
  NonNullable<F> extends { readonly name: string; readonly bytes: Uint8Array } ? Blob | Exclude<F, NonNullable<F>> : F

export type RequestOf<N extends OperationName> = Sendable<z.input<Operations[N]['request']>>
export type AnswerOf<N extends OperationName> = z.output<Operations[N]['response']>

/** Formats of text exports. */
type TextFormat = 'csv' | 'ndjson'

/** Text formats of an operation; `never` if it has none. */
export type TextFormatOf<N extends OperationName> =
  RequestOf<N> extends { format?: infer F } ? Extract<F, TextFormat> : never
/** Requests with a text response, and those with a JSON response. */
export type TextRequestOf<N extends OperationName> = Omit<RequestOf<N>, 'format'> & { format: TextFormatOf<N> }
export type JsonRequestOf<N extends OperationName> = [TextFormatOf<N>] extends [never]
  ? RequestOf<N>
  : Omit<RequestOf<N>, 'format'> & {
      format?: RequestOf<N> extends { format?: infer F } ? Exclude<F, TextFormat> : never
    }

type ListName<A> = {
  [K in keyof A]-?: K extends 'warnings' | 'errors' ? never : NonNullable<A[K]> extends readonly unknown[] ? K : never
}[keyof A]

/** Operations with several pages. */
export type PagedName = {
  [N in OperationName]: AnswerOf<N> extends { nextCursor?: string | undefined } ? N : never
}[OperationName]

/** Item type of a paged operation. */
export type ItemOf<N extends PagedName> = AnswerOf<N>[ListName<AnswerOf<N>>] extends infer List
  ? NonNullable<List> extends readonly (infer Item)[]
    ? Item
    : never
  : never
