import { Failure } from '../../platform/foundation/failure.ts'
import type { StreamedResponse } from '../../platform/operations/validation.ts'
import { dayOf } from '../../shop/analytics/store-days.ts'
import type { PageAction } from './page.ts'
import type { Language } from '../../../policy/page-language.ts'
import { STORE_TIME_ZONE } from '../../../policy/store-time-zone.ts'
import { csvCell } from '../../shop/analytics/export-operations.ts'

type Streamed = StreamedResponse & { close(): void }

/** Length below which a file may turn out to have nothing in it, in characters. */
const SHORT = 4_096

/** Endings of files, by the content type of the answer. */
const ENDINGS: readonly (readonly [type: string, ending: string])[] = [
  ['text/csv', 'csv'],
  ['application/x-ndjson', 'ndjson'],
  ['application/ld+json', 'jsonld'],
]

/**
 * The answer of an operation as a file. It always has a name: without one the browser would show the JSON in place of the
 * console. Throws `not-found` if the action finds nothing in it.
 */
export async function asDownload(
  streamed: Streamed,
  { download }: Pick<PageAction, 'download'>,
  { operation, input, nowMs }: { operation: string; input: Record<string, unknown>; nowMs: number },
): Promise<Streamed> {
  const day = dayOf(nowMs)
  const ending = ENDINGS.find(([type]) => streamed.contentType.startsWith(type))?.[1] ?? 'json'
  const name = download?.name(input, day) ?? streamed.fileName ?? `${operation}-${day}.${ending}`
  const chunks = download ? await unlessNothing(streamed, download.isNothing) : streamed.chunks
  // The name is in a header, and a file system takes it: an id of a customer may have any character.
  return { ...streamed, chunks, fileName: name.replaceAll(/[^\w.-]+/g, '_') }
}

/** Reads the beginning, because an answer that has begun cannot become a message any more. */
async function unlessNothing(
  { chunks, close }: Streamed,
  isNothing: (text: string) => boolean,
): Promise<AsyncIterable<string>> {
  const parts = chunks[Symbol.asyncIterator]()
  let text = ''
  try {
    while (text.length < SHORT) {
      const part = await parts.next()
      if (part.done !== true) text += part.value
      else if (isNothing(text)) throw new Failure('not-found', 'nothing is in the file')
      else break
    }
  } catch (error) {
    close()
    await parts.return?.()
    throw error
  }
  return begunWith(text, parts)
}

async function* begunWith(text: string, parts: AsyncIterator<string>): AsyncGenerator<string> {
  try {
    yield text
    for (let part = await parts.next(); part.done !== true; part = await parts.next()) yield part.value
  } finally {
    await parts.return?.()
  }
}

/** A cell: text, a number, an amount, a time, or nothing. */
export type CsvValue = string | number | { readonly cents: number } | { readonly ms: number } | undefined

/** Separators that Excel and LibreOffice of this language expect. */
const SEPARATORS = { en: { cell: ',', decimal: '.' }, de: { cell: ';', decimal: ',' } } as const

/** Without the mark, Excel reads the file in the character set of the machine. */
const BYTE_ORDER_MARK = '\uFEFF'

/** The Swedish format is ISO 8601, which spreadsheets of all languages read as a date. */
const time = new Intl.DateTimeFormat('sv-SE', { timeZone: STORE_TIME_ZONE, dateStyle: 'short', timeStyle: 'medium' })

/** A file that spreadsheets of the user's language open in columns, with times of the store's clock. */
export function csvFile(language: Language, rows: readonly (readonly CsvValue[])[]): string {
  const { cell, decimal } = SEPARATORS[language]
  const text = (value: CsvValue) => {
    if (value === undefined || typeof value === 'string') return csvCell(value)
    if (typeof value === 'number') return String(value).replace('.', decimal)
    return 'ms' in value ? csvCell(time.format(value.ms)) : (value.cents / 100).toFixed(2).replace('.', decimal)
  }
  return BYTE_ORDER_MARK + rows.map((row) => `${row.map(text).join(cell)}\r\n`).join('')
}
