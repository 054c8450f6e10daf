import type { z } from 'zod'
import type { Operations } from '../cloud/operation-table.ts'

/** What each operation takes and answers: read off the declarations that the cloud serves. Types alone, nothing at run time. */

export type OperationName = keyof Operations

/** A file of a multipart operation, as a caller has it. */
type Sendable<T> = { [K in keyof T]: FileOr<T[K]> }
type FileOr<F> =
  NonNullable<F> extends { readonly name: string; readonly bytes: Uint8Array } ? Blob | Exclude<F, NonNullable<F>> : F

export type RequestOf<N extends OperationName> = Sendable<z.input<Operations[N]['request']>>
export type AnswerOf<N extends OperationName> = z.output<Operations[N]['response']>

/** Formats of exports that are answered as text. */
type TextFormat = 'csv' | 'ndjson'

/** Those that an operation has; never for most. */
export type TextFormatOf<N extends OperationName> =
  RequestOf<N> extends { format?: infer F } ? Extract<F, TextFormat> : never
/** A request that is answered as text, and one that is answered as JSON. */
export type TextRequestOf<N extends OperationName> = Omit<RequestOf<N>, 'format'> & { format: TextFormatOf<N> }
export type JsonRequestOf<N extends OperationName> = [TextFormatOf<N>] extends [never]
  ? RequestOf<N>
  : Omit<RequestOf<N>, 'format'> & {
      format?: RequestOf<N> extends { format?: infer F } ? Exclude<F, TextFormat> : never
    }

type ListName<A> = {
  [K in keyof A]-?: K extends 'warnings' | 'errors' ? never : NonNullable<A[K]> extends readonly unknown[] ? K : never
}[keyof A]

/** The operations that answer page by page. */
export type PagedName = {
  [N in OperationName]: AnswerOf<N> extends { nextCursor?: string | undefined } ? N : never
}[OperationName]

/** One item of the list that a paged operation answers. */
export type ItemOf<N extends PagedName> = AnswerOf<N>[ListName<AnswerOf<N>>] extends infer List
  ? NonNullable<List> extends readonly (infer Item)[]
    ? Item
    : never
  : never
