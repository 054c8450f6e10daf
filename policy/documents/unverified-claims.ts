import { readUntrustedJson } from '../untrusted-json.ts'

/** Unverified claims of a document, as a hint only. Empty if the document has no readable claims. */
export function decodeUnverifiedClaims(jws: string): Record<string, unknown> {
  const claims = readUntrustedJson(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
  return typeof claims === 'object' && claims !== null ? (claims as Record<string, unknown>) : {}
}
