import { createHash } from 'node:crypto'
import type { Randomness } from '../../policy/platform.ts'

/** Kinds of secrets of the local API: `pair` for a program, `browser` for a cookie, `link` for a one-time link. */
export type SecretKind = 'pair' | 'browser' | 'link'

/** A new random secret, such as `untag_pair_…`. */
export function newSecret(kind: SecretKind, random: Randomness): string {
  return `untag_${kind}_${Buffer.from(random.bytes(24)).toString('base64url')}`
}

/**
 * Returns the SHA-256 hash in base64url, which the agent stores in place of a secret. One round of hashing suffices,
 * because secrets are random.
 */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/**
 * Returns the address that pairs a browser. The code is in the fragment, which browsers do not send to the server.
 * Therefore link previews cannot use up the code, and request logs do not contain the code.
 */
export function pairingUrl(agentUrl: string, code: string): string {
  return `${agentUrl}/pair#${code}`
}
