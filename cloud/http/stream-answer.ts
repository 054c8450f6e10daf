import type { StreamedAnswer } from '../operations/operation.ts'

/** Sends an answer part by part, each made only when the reader has taken the one before. */
export function streamAnswer({ contentType, fileName, chunks }: StreamedAnswer, headers: Readonly<Record<string, string>>, onFailure: (error: unknown) => void): Response {
  const encoder = new TextEncoder()
  const parts = chunks[Symbol.asyncIterator]()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const part = await parts.next()
          if (part.done === true) controller.close()
          else controller.enqueue(encoder.encode(part.value))
        } catch (error) {
          onFailure(error)
          controller.error(error)
        }
      },
      async cancel() {
        await parts.return?.()
      },
    },
    { highWaterMark: 1 },
  )
  const disposition = fileName === undefined ? {} : { 'content-disposition': `attachment; filename="${fileName}"` }
  return new Response(body, { status: 200, headers: { ...headers, ...disposition, 'content-type': contentType, 'cache-control': 'no-store' } })
}
