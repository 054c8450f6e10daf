import type { Hono } from 'hono'
import { staticDocument } from './static-document.ts'

const SHAPE =
  '<path d="M8 7v11a8 8 0 0 0 16 0V7" fill="none" stroke="currentColor" stroke-width="4.4" stroke-linecap="round"/><circle cx="16" cy="7.2" r="2.9" fill="#2fb6a8"/>'

/** The mark of untag as a file, for the browser’s tab: a `u` whose pin lifts off, on a tile. */
export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#102a31"/><g color="#fff" transform="translate(3.2 3.6) scale(.8)">${SHAPE}</g></svg>`

/** Serves the icon of all pages. Browsers ask for `/favicon.ico` on pages that name no icon, such as JSON. */
export function iconRoutes(app: Hono): void {
  const icon = staticDocument(ICON, 'image/svg+xml', { 'cache-control': 'public, max-age=86400' })
  for (const path of ['/icon.svg', '/favicon.ico']) app.get(path, (c) => icon.answer(c))
}
