import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import type { Context, Hono } from 'hono'
import { readFileSync, existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/**
 * A compiled script of the cloud's pages. Tests run the sources, so they use the script of the last build. `path`: from
 * the folder `cloud`.
 */
export function ownScript(path: string): string {
  const here = import.meta.dirname
  const folder = existsSync(join(here, 'static-document.ts')) ? join(here, '../../../dist/cloud') : join(here, '../..')
  const file = join(folder, path)
  return existsSync(file) ? `(() => {${readFileSync(file, 'utf8').replace(/^export \{\};?$/m, '')}})()` : ''
}

/** The text of a browser file beside the entry of an installed package. */
export function packageFile(name: string, file: string): string {
  const entry = createRequire(import.meta.url).resolve(name)
  return readFileSync(join(entry, '..', file), 'utf8')
}

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

const SHAPE =
  '<path d="M8 7v11a8 8 0 0 0 16 0V7" fill="none" stroke="currentColor" stroke-width="4.4" stroke-linecap="round"/><circle cx="16" cy="7.2" r="2.9" fill="#2fb6a8"/>'

/** The mark of untag as a file, for the browser’s tab: a `u` whose pin lifts off, on a tile. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#102a31"/><g color="#fff" transform="translate(3.2 3.6) scale(.8)">${SHAPE}</g></svg>`

/** Serves the icon of all pages. Browsers ask for `/favicon.ico` on pages that name no icon, such as JSON. */
export function iconRoutes(app: Hono): void {
  const icon = staticDocument(ICON, 'image/svg+xml', { 'cache-control': 'public, max-age=86400' })
  for (const path of ['/icon.svg', '/favicon.ico']) app.get(path, (c) => icon.answer(c))
}
