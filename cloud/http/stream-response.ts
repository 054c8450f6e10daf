import type { Timers } from '../../policy/platform.ts'
import type { StreamedResponse } from '../operations/body-formats.ts'

/** Maximum time that a client takes for one part, ms. A part has at most some hundred kilobytes. */
const PART_MS = 60_000

/**
 * Sends a response part by part. Produces the next part only when the client has received the previous parts. Cuts a
 * client that takes too long for a part. Calls `close` once when the response ends in any way.
 */
export function streamResponse(
  { contentType, fileName, chunks, close }: StreamedResponse & { close(): void },
  headers: Readonly<Record<string, string>>,
  timers: Timers,
  onFailure: (error: unknown) => void,
): Response {
  const encoder = new TextEncoder()
  const parts = chunks[Symbol.asyncIterator]()
  /** True if the response has ended: all is sent, or the client has left. This may happen while a part is produced. */
  let isOver = false
  let stopWaiting = () => {}

  async function end(): Promise<void> {
    if (isOver) return
    isOver = true
    stopWaiting()
    close()
    await parts.return?.()
  }

  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        stopWaiting()
        try {
          const part = await parts.next()
          if (isOver) return
          if (part.done === true) {
            controller.close()
            return await end()
          }
          stopWaiting = timers.after(PART_MS, () => {
            controller.error(new Error('the client reads too slowly'))
            void end()
          })
          controller.enqueue(encoder.encode(part.value))
        } catch (error) {
          onFailure(error)
          if (!isOver) controller.error(error)
          await end()
        }
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  )
  const disposition = fileName === undefined ? {} : { 'content-disposition': `attachment; filename="${fileName}"` }
  return new Response(body, {
    status: 200,
    headers: { ...headers, ...disposition, 'content-type': contentType, 'cache-control': 'no-store' },
  })
}
