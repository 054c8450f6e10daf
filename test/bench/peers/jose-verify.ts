import { jwtVerify } from 'jose'
import type { KeyRing } from '../../../policy/documents/keys.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'

/** Verifies a token with `jose`, the most common library, with as many of the checks of untag as it supports. */
export async function joseVerify(token: string, keys: KeyRing, audience: string, now: number): Promise<void> {
  await jwtVerify(
    token,
    ({ kid }) => {
      const key = keys.get(kid ?? '')
      if (!key) throw new Error('no such key')
      return key.publicKey
    },
    {
      algorithms: ['EdDSA'],
      audience,
      typ: DOCUMENT_KINDS.authorization.typ,
      requiredClaims: ['iss', 'iat', 'exp', 'jti'],
      maxTokenAge: DOCUMENT_KINDS.authorization.maxLife,
      currentDate: new Date(now * 1_000),
    },
  )
}
