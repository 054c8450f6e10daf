/** A form as it goes over the wire. Requests that hold the form itself fail within Node.js 24 when nobody reads them to their end. */
export async function formBody(form: FormData): Promise<{ body: ArrayBuffer; headers: { 'content-type': string } }> {
  const sent = new Response(form)
  return { headers: { 'content-type': sent.headers.get('content-type') ?? '' }, body: await sent.arrayBuffer() }
}
