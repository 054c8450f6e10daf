import { Failure } from '../../platform/foundation/failure.ts'
import type { StreamedResponse } from '../../platform/operations/validation.ts'
import { dayOf } from '../../shop/analytics/store-days.ts'
import type { PageAction } from './page.ts'

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
