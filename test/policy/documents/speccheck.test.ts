import { createPublicKey } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { isSignedBy, publicJwk, publicKeyWeakness } from '../../../policy/documents/keys.ts'
import { NO_JOSE_VECTORS, outsideVectors } from '../../support/outside-vectors.ts'
import { suiteWith } from '../../support/extended.ts'

/**
 * The cases of ed25519-speccheck (Chalkias, Garillot, Nikolaenko, "Taming the many EdDSAs", 2020): signatures on which
 * implementations disagree. Two properties matter here. `publicKeyWeakness` rejects keys with which one signature fits
 * many messages. A signature has no second form.
 */
interface Case {
  message: string
  pub_key: string
  signature: string
}

const x = (hex: string) => Buffer.from(hex, 'hex').toString('base64url')
const verifies = ({ message, pub_key: key, signature }: Case) =>
  isSignedBy(
    Buffer.from(message, 'hex'),
    Buffer.from(signature, 'hex'),
    createPublicKey({ key: { ...publicJwk(x(key)) }, format: 'jwk' }),
  )

/**
 * Result for case 2, which no signer produces. OpenSSL 3.0 (Node.js 20) accepts it, OpenSSL 3.5 (Node.js 24) does not.
 */
const [major = 0, minor = 0] = process.versions.openssl.split('.').map(Number)
const AS_OPENSSL_HAS_IT = major > 3 || minor >= 5 ? 'does not verify' : 'verifies'

const EXPECTED: readonly [number, string, 'key refused' | 'verifies' | 'does not verify'][] = [
  [0, 'small order A and R, S = 0', 'key refused'],
  [1, 'small order A, mixed R', 'key refused'],
  [2, 'honest A, small order R', AS_OPENSSL_HAS_IT],
  [3, 'mixed A and R, good with and without the cofactor', 'verifies'],
  [4, 'good with the cofactor only', 'does not verify'],
  [5, 'good with the cofactor only, when the cofactor is not multiplied out first', 'does not verify'],
  [6, 'S not below the order', 'does not verify'],
  [7, 'S far above the order', 'does not verify'],
  [8, 'non-canonical R', 'does not verify'],
  [9, 'non-canonical R, hashed as it is', 'does not verify'],
  [10, 'non-canonical A', 'key refused'],
  [11, 'non-canonical A, hashed as it is', 'key refused'],
]

describe('ed25519-speccheck', () => {
  suiteWith(NO_JOSE_VECTORS, 'the twelve cases', () =>
    it('have the expected results', () => {
      const cases = outsideVectors<Case[]>('jose/speccheck.json')
      expect(cases).toHaveLength(EXPECTED.length)
      const outcome = (c: Case) =>
        publicKeyWeakness(x(c.pub_key)) !== undefined ? 'key refused' : verifies(c) ? 'verifies' : 'does not verify'
      expect(EXPECTED.map(([i, name]) => [i, name, outcome(cases[i]!)])).toEqual(EXPECTED)
    }),
  )
})
