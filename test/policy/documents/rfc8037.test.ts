import { createPrivateKey, createPublicKey } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import {
  isSignedBy,
  keyId,
  publicJwk,
  signBytes,
  createSigner,
  thumbprint,
  publicKeyWeakness,
} from '../../../policy/documents/keys.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { ringOf } from '../../support/keys.ts'

/** The values of RFC 8037, Appendix A. */
const X = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo'
const D = 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A'
const SIGNING_INPUT = 'eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc'
const SIGNATURE = 'hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg'

const secret = createPrivateKey({ key: { kty: 'OKP', crv: 'Ed25519', d: D, x: X }, format: 'jwk' }).export({
  format: 'der',
  type: 'pkcs8',
})
const publicKey = createPublicKey({ key: { ...publicJwk(X) }, format: 'jwk' })

describe('RFC 8037 Appendix A', () => {
  it('A.1, A.2: private and public key have the format of untag', () => {
    expect(publicKeyWeakness(X)).toBeUndefined()
    expect(createPublicKey(createSigner(X, secret).privateKey).export({ format: 'jwk' })).toMatchObject({
      kty: 'OKP',
      crv: 'Ed25519',
      x: X,
    })
  })

  it('A.3: the key id is the beginning of the thumbprint', () => {
    expect(thumbprint(X).toString('base64url')).toBe('kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k')
    expect(keyId(X)).toBe('kPrK_qmx')
  })

  it('A.4: signs to the same bytes', () => {
    expect(signBytes(Buffer.from(SIGNING_INPUT), createSigner(X, secret)).toString('base64url')).toBe(SIGNATURE)
  })

  it('A.5: verifies the signature and rejects changed ones', () => {
    const signature = Buffer.from(SIGNATURE, 'base64url')
    expect(isSignedBy(Buffer.from(SIGNING_INPUT), signature, publicKey)).toBe(true)
    expect(isSignedBy(Buffer.from(`${SIGNING_INPUT}A`), signature, publicKey)).toBe(false)
    for (let bit = 0; bit < 512; bit++) {
      const changed = Uint8Array.from(signature)
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(isSignedBy(Buffer.from(SIGNING_INPUT), changed, publicKey)).toBe(false)
    }
  })

  it('the JWS is rejected as a document even under a trusted key, because it names no key and no kind', () => {
    const record = { kid: keyId(X), alg: 'EdDSA', x: X, use: 'token', iss: 'acc_1.test', state: 'active' } as const
    const keys = ringOf({ record, signer: createSigner(X, secret) })
    for (const kind of Object.values(DOCUMENT_KINDS))
      expect(openDocument(`${SIGNING_INPUT}.${SIGNATURE}`, kind, { keys, audience: 'x' })).toMatchObject({
        ok: false,
        fault: 'header_not_allowed',
      })
  })
})
