import type { Context, Hono } from 'hono'
import { IMAGE_NAME, IMAGE_TYPES, type ImageStore } from '../../platform/foundation/ports.ts'

/** Serves images by their content hash. Images never change, so caches may keep them forever. */
export function imageRoutes(app: Hono, images: ImageStore, isTooFast: (c: Context) => boolean): void {
  app.get('/images/:name', async (c) => {
    if (isTooFast(c)) return c.text('too many requests', 429, { 'retry-after': '1' })
    const name = c.req.param('name')
    if (!IMAGE_NAME.test(name)) return c.notFound()
    const etag = `"${name}"`
    const headers = {
      'cache-control': 'public, max-age=31536000, immutable',
      etag,
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
      'cross-origin-resource-policy': 'cross-origin',
    }
    if (c.req.header('if-none-match') === etag) return c.body(null, 304, headers)
    const bytes = await images.get(name)
    if (!bytes) return c.notFound()
    return c.body(bytes as Uint8Array<ArrayBuffer>, 200, {
      ...headers,
      'content-type': IMAGE_TYPES[name.slice(44)] ?? 'application/octet-stream',
    })
  })
}
