import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Context } from 'hono'

/** A text that does not change while the process runs. */
export interface StaticDocument {
  answer(c: Context): Response
}

/** Serves a text with an ETag, compressed if the client accepts gzip. It is compressed at the first such request. */
export function staticDocument(
  text: string,
  contentType: string,
  headers: Readonly<Record<string, string>> = {},
): StaticDocument {
  const plain = new TextEncoder().encode(text)
  let packed: Uint8Array<ArrayBuffer> | undefined
  const hash = createHash('sha256').update(plain).digest('base64url').slice(0, 22)
  return {
    answer(c) {
      const isPacked = takesGzip(c.req.header('accept-encoding'))
      // One ETag for each encoding (RFC 9110 §8.8.3.3).
      const etag = isPacked ? `"${hash}-gzip"` : `"${hash}"`
      const common = {
        etag,
        'cache-control': 'no-cache',
        vary: 'accept-encoding',
        'x-content-type-options': 'nosniff',
        ...headers,
      }
      const known = c.req
        .header('if-none-match')
        ?.split(',')
        .map((tag) => tag.trim().replace(/^W\//, ''))
      if (known?.includes(etag) === true || known?.includes('*') === true)
        return new Response(null, { status: 304, headers: common })
      const body = isPacked ? (packed ??= new Uint8Array(gzipSync(plain))) : plain
      return new Response(body, {
        headers: { ...common, 'content-type': contentType, ...(isPacked && { 'content-encoding': 'gzip' }) },
      })
    },
  }
}

function takesGzip(header: string | undefined): boolean {
  const gzip = header?.split(',').find((coding) => /^\s*(?:gzip|\*)\s*(?:;|$)/i.test(coding))
  return gzip !== undefined && !/;\s*q=0(?:\.0*)?\s*$/i.test(gzip)
}
