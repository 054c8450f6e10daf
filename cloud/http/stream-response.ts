import type { StreamedResponse } from '../operations/body-formats.ts'

/** Sends a response part by part. Produces the next part only when the client has received the previous parts. */
export function streamResponse(
  { contentType, fileName, chunks }: StreamedResponse,
  headers: Readonly<Record<string, string>>,
  onFailure: (error: unknown) => void,
): Response {
  const encoder = new TextEncoder()
  const parts = chunks[Symbol.asyncIterator]()
  /** True if the client has disconnected. This may happen while a part is produced. */
  let hasLeft = false
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const part = await parts.next()
          if (hasLeft) return
          if (part.done === true) controller.close()
          else controller.enqueue(encoder.encode(part.value))
        } catch (error) {
          onFailure(error)
          if (!hasLeft) controller.error(error)
        }
      },
      async cancel() {
        hasLeft = true
        await parts.return?.()
      },
    },
    { highWaterMark: 1 },
  )
  const disposition = fileName === undefined ? {} : { 'content-disposition': `attachment; filename="${fileName}"` }
  return new Response(body, {
    status: 200,
    headers: { ...headers, ...disposition, 'content-type': contentType, 'cache-control': 'no-store' },
  })
}
