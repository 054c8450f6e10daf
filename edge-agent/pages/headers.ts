import { createHash } from 'node:crypto'
import { STYLE } from './style/style.ts'

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

/**
 * Response headers of a page. The page may run only the script with this nonce and may call only its own agent. The
 * page's script sends the forms, so that codes never appear in an address.
 */
export function pageHeaders(nonce: string): Record<string, string> {
  const allowed = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'sha256-${STYLE_HASH}'`,
    "connect-src 'self'",
    "img-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'content-security-policy': allowed.join('; '),
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
    vary: 'Accept, Accept-Language, Cookie',
  }
}
