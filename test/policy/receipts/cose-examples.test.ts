import { createPublicKey } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { publicJwk, createSigner } from '../../../policy/documents/keys.ts'
import { decodeReceiptClaims, decodeCbor, encodeCbor } from '../../../policy/receipts/receipt-claims.ts'
import { isCoseSignedBy, parseCose, signCose } from '../../../policy/receipts/receipt-token.ts'

/** Published examples for the formats of a receipt: cose-wg/Examples (eddsa-examples), RFC 9052 and RFC 8392. */
const hex = (text: string) => Uint8Array.from(Buffer.from(text, 'hex'))
const NO_TAG = -1
const NONE = new Uint8Array(0)

/** eddsa-sig-01: key of RFC 8037, protected header `{alg: EdDSA, ctyp: 0}`, unprotected header `{kid: "11"}`. */
const EDDSA = {
  x: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
  d: '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60',
  protectedHeader: 'a201270300',
  payload: '546869732069732074686520636f6e74656e742e',
  signature:
    '7142fd2ff96d56db85bee905a76ba1d0b7321a95c8c4d3607c5781932b7afb8711497dfa751bf40b58b3bcc32300b1487f3db34085eef013bf08f4a44d6fef0d',
  message:
    'd28445a201270300a10442313154546869732069732074686520636f6e74656e742e58407142fd2ff96d56db85bee905a76ba1d0b7321a95c8c4d3607c5781932b7afb8711497dfa751bf40b58b3bcc32300b1487f3db34085eef013bf08f4a44d6fef0d',
}
/** RFC 9052 C.2.1: one ECDSA signature. */
const ECDSA =
  'd28443a10126a10442313154546869732069732074686520636f6e74656e742e58408eb33e4ca31d1c465ab05aac34cc6b23d58fef5c083106c4d25a91aef0b0117e2af9a291aa32e14ab834dc56ed2a223444547e01f11d3b0916e5a4c345cacb36'
/** RFC 8392 A.1: {iss, sub, aud, exp, nbf, iat, cti}. */
const CWT_CLAIMS =
  'a70175636f61703a2f2f61732e6578616d706c652e636f6d02656572696b77037818636f61703a2f2f6c696768742e6578616d706c652e636f6d041a5612aeb0051a5610d9f0061a5610d9f007420b71'
/** RFC 8392 A.3 in the form of cose-wg/Examples: the claims signed with ECDSA. */
const CWT_ECDSA = `d28443a10126a05850${CWT_CLAIMS}58405427c1ff28d23fbad1f29c4c7c6a555e601d6fa29f9179bc3d7438bacaca5acd08c8d4d4f96131680c429a01f85951ecee743a52b9b63632c57209120e1c9e30`

const x = Buffer.from(EDDSA.x, 'hex').toString('base64url')
const publicKey = createPublicKey({ key: { ...publicJwk(x) }, format: 'jwk' })
const own = createSigner(
  x,
  Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.from(EDDSA.d, 'hex')]),
)

describe('COSE_Sign1 of others', () => {
  const cose = {
    kid: '11',
    protectedHeader: hex(EDDSA.protectedHeader),
    payload: hex(EDDSA.payload),
    signature: hex(EDDSA.signature),
  }

  it('eddsa-sig-01 verifies: the Sig_structure is the one of RFC 9052 §4.4', () => {
    expect(isCoseSignedBy(cose, NONE, publicKey)).toBe(true)
    expect(isCoseSignedBy(cose, Uint8Array.of(0), publicKey)).toBe(false)
    expect(isCoseSignedBy({ ...cose, payload: hex(`${EDDSA.payload}00`) }, NONE, publicKey)).toBe(false)
    expect(isCoseSignedBy({ ...cose, protectedHeader: hex('a10127') }, NONE, publicKey)).toBe(false)
  })

  it('signCose with that key writes the same signature layer, tag and order of parts', () => {
    const signed = signCose(hex(EDDSA.payload), NONE, own)
    const parsed = parseCose(signed)
    expect(Buffer.from(signed).toString('hex')).toMatch(/^d2844da201270448/)
    expect(parsed && isCoseSignedBy(parsed, NONE, publicKey)).toBe(true)
  })

  it.each([
    ['eddsa-sig-01: its key id is not signed', EDDSA.message],
    ['RFC 9052 C.2.1: ECDSA', ECDSA],
    ['RFC 8392 A.3: ECDSA, no key id', CWT_ECDSA],
    ['eddsa-sig-01 without its tag', EDDSA.message.slice(2)],
    ['eddsa-sig-01 with a CWT tag (61) around it', `d83d${EDDSA.message}`],
  ])('is no receipt: %s', (_name, message) => {
    expect(parseCose(hex(message))).toBeUndefined()
  })
})

describe('RFC 8392 A.1', () => {
  it('is decoded and encoded byte for byte, with the registered keys', () => {
    const claims = decodeCbor(hex(CWT_CLAIMS), NO_TAG) as Map<number, unknown>
    expect([...claims]).toEqual([
      [1, 'coap://as.example.com'],
      [2, 'erikw'],
      [3, 'coap://light.example.com'],
      [4, 1_444_064_944],
      [5, 1_443_944_944],
      [6, 1_443_944_944],
      [7, hex('0b71')],
    ])
    expect(Buffer.from(encodeCbor(claims)).toString('hex')).toBe(CWT_CLAIMS)
  })

  it('is no receipt: it has more claims and a short cti', () => {
    expect(decodeReceiptClaims(hex(CWT_CLAIMS))).toBeUndefined()
  })
})
