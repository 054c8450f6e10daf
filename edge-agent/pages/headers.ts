import { createHash } from 'node:crypto'
import { STYLE } from './style/style.ts'

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64')

/**
 * What a page may do: run the one program with this nonce, and talk to its own agent. Only the
 * program sends forms, so that no code ever appears in an address.
 */
export function pageHeaders(nonce: string): Record<string, string> {
  const allowed = [
    "default-src 'none'",
    `script-src 'nonce-${nonce}'`,
    `style-src 'sha256-${STYLE_HASH}'`,
    "connect-src 'self'",
    'img-src data:',
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
