/** Unverified claims of a document, as a hint only. Empty if the document has no readable claims. */
export function decodeUnverifiedClaims(jws: string): Record<string, unknown> {
  try {
    const claims: unknown = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
    return typeof claims === 'object' && claims !== null ? (claims as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
