import { createHash } from 'node:crypto'
import type { Randomness } from '../../policy/platform.ts'

/** Kinds of secrets of the local API: `pair` for a program, `browser` for a cookie, `link` for a one-time link. */
export type SecretKind = 'pair' | 'browser' | 'link'

/** A new random secret, such as `untag_pair_…`. */
export function newSecret(kind: SecretKind, random: Randomness): string {
  return `untag_${kind}_${Buffer.from(random.bytes(24)).toString('base64url')}`
}

/** SHA-256 in base64url: how the agent stores secrets. They are random, so one round is enough. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

/**
 * The address that pairs a browser. The code is in the fragment, which browsers do not send. So link previews cannot use it up, and request
 * logs do not contain it.
 */
export function pairingUrl(agentUrl: string, code: string): string {
  return `${agentUrl}/pair#${code}`
}
