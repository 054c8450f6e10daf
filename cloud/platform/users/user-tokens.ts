import { hash } from 'node:crypto'
import type { Randomness } from '../../../policy/platform.ts'

const PREFIXES = { session: 'untag_us_', invitation: 'untag_ui_' } as const
const FORM = /^untag_u[si]_[\w-]{43}$/

/** Makes a token of 256 random bits. */
export function newUserToken(use: keyof typeof PREFIXES, random: Randomness): string {
  return `${PREFIXES[use]}${Buffer.from(random.bytes(32)).toString('base64url')}`
}

/** True if a text has the form of such a token. For all other texts, no database query is needed. */
export function isUserToken(use: keyof typeof PREFIXES, text: string): boolean {
  return text.startsWith(PREFIXES[use]) && FORM.test(text)
}

/** Hash for the database. One round of SHA-256 is enough, because tokens hold 256 random bits. */
export function hashOfUserToken(token: string): string {
  return hash('sha256', token, 'base64url')
}
