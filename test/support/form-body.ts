/**
 * Encodes a form as bytes. In Node.js 24 a request with a FormData object fails if the server does not read all of it.
 */
export async function formBody(form: FormData): Promise<{ body: ArrayBuffer; headers: { 'content-type': string } }> {
  const sent = new Response(form)
  return { headers: { 'content-type': sent.headers.get('content-type') ?? '' }, body: await sent.arrayBuffer() }
}
