const CHUNK = 64 * 1024

/** A body that delivers bytes as long as it is read, up to `limit`. `sent` returns the number of delivered bytes. */
export function endlessBody(limit: number): { body: ReadableStream<Uint8Array>; sent(): number } {
  let sent = 0
  const body = new ReadableStream<Uint8Array>(
    {
      pull(to) {
        if (sent >= limit) return to.close()
        to.enqueue(new Uint8Array(CHUNK).fill(0x20))
        sent += CHUNK
      },
    },
    { highWaterMark: 0 },
  )
  return { body, sent: () => sent }
}

/** Request options for such a body, without a declared length. */
export function endlessRequest(
  body: ReadableStream<Uint8Array>,
  headers: Record<string, string> = {},
  method = 'POST',
): RequestInit {
  return { method, headers, body, duplex: 'half' } as RequestInit
}
