import type { z } from 'zod'
import type { UserPasskeyRow } from '../persistence/tables/users.ts'
import type { PasskeySite } from './console-address.ts'
import type { NewCredential, SignedCredential } from './passkey-schema.ts'

/** Checks responses of authenticators. The library loads at the first use, because it takes 0.2 s. */

/** Algorithms of COSE: Ed25519, ECDSA with P-256, RSA with SHA-256. */
export const ALGORITHMS = [-8, -7, -257]

type Created = z.output<typeof NewCredential>
type Signed = z.output<typeof SignedCredential>

/** What the response must fit. */
export interface Expected {
  readonly challenge: string
  readonly site: PasskeySite
}

/** The challenge that a response names; undefined if it names none. The response is not verified yet. */
export function challengeOf({ response }: Created | Signed): string | undefined {
  try {
    const data = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString()) as { challenge?: unknown }
    return typeof data.challenge === 'string' ? data.challenge : undefined
  } catch {
    return undefined
  }
}

/**
 * True if the response was made in a frame of a page that is not the console (Web Authentication Level 3 §7). The library
 * does not check it. A browser that does not name the page counts as one in a foreign page.
 */
function isInForeignPage({ response }: Created | Signed, { origin }: PasskeySite): boolean {
  const data = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString()) as Record<string, unknown>
  const isInFrame = data['crossOrigin'] === true || data['topOrigin'] !== undefined
  return isInFrame && data['topOrigin'] !== origin
}

/** What the cloud stores of a new passkey. */
export type VerifiedKey = Pick<UserPasskeyRow, 'credential_id' | 'public_key' | 'counter' | 'backed_up'>

/** Verifies a new passkey; undefined if it does not fit. The cloud does not ask who made the authenticator. */
export async function verifyCreated(
  credential: Created,
  { challenge, site }: Expected,
): Promise<VerifiedKey | undefined> {
  const { verifyRegistrationResponse } = await import('@simplewebauthn/server')
  const { id, rawId, type, response } = credential
  const { clientDataJSON, attestationObject } = response
  try {
    if (isInForeignPage(credential, site) || (await hasCertificates(attestationObject))) return undefined
    const { registrationInfo: found } = await verifyRegistrationResponse({
      response: { id, rawId, type, response: { clientDataJSON, attestationObject }, clientExtensionResults: {} },
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.id,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    })
    if (!found || found.credential.id !== id) return undefined
    return {
      credential_id: id,
      public_key: Buffer.from(found.credential.publicKey).toString('base64url'),
      counter: found.credential.counter,
      backed_up: found.credentialBackedUp ? 1 : 0,
    }
  } catch {
    return undefined
  }
}

/** True unless the attestation has no certificates. The library would fetch revocation lists that they name. */
async function hasCertificates(attestationObject: string): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  const decoded = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url')))
  const format = decoded.get('fmt')
  return format !== 'none' && (format !== 'packed' || decoded.get('attStmt').get('x5c') !== undefined)
}

/** Verifies a signature with a stored passkey; undefined if it does not fit. */
export async function verifySigned(
  credential: Signed,
  passkey: UserPasskeyRow,
  { challenge, site }: Expected,
): Promise<Pick<UserPasskeyRow, 'counter' | 'backed_up'> | undefined> {
  const { verifyAuthenticationResponse } = await import('@simplewebauthn/server')
  const { id, rawId, type, response } = credential
  const { clientDataJSON, authenticatorData, signature } = response
  try {
    if (isInForeignPage(credential, site)) return undefined
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: {
        id,
        rawId,
        type,
        response: { clientDataJSON, authenticatorData, signature },
        clientExtensionResults: {},
      },
      expectedChallenge: challenge,
      expectedOrigin: site.origin,
      expectedRPID: site.id,
      requireUserVerification: true,
      credential: {
        id: passkey.credential_id,
        publicKey: new Uint8Array(Buffer.from(passkey.public_key, 'base64url')),
        counter: passkey.counter,
      },
    })
    if (!verified) return undefined
    return { counter: authenticationInfo.newCounter, backed_up: authenticationInfo.credentialBackedUp ? 1 : 0 }
  } catch {
    return undefined
  }
}
