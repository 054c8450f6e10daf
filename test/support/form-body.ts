/**
 * Encodes a form as bytes. In Node.js 24 a request with a FormData object fails if the server does not read all of it.
 */
export async function formBody(form: FormData): Promise<{ body: ArrayBuffer; headers: { 'content-type': string } }> {
  const sent = new Response(form)
  return { headers: { 'content-type': sent.headers.get('content-type') ?? '' }, body: await sent.arrayBuffer() }
}

/** A body that arrives after `meanwhile`, which runs when the receiver begins to read. */
export function lateBody(
  body: string | ArrayBuffer,
  meanwhile: () => Promise<unknown>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : new Uint8Array(body)
  return new ReadableStream(
    {
      async pull(controller) {
        await meanwhile()
        controller.enqueue(bytes)
        controller.close()
      },
    },
    { highWaterMark: 0 },
  )
}
