import { describe, expect, it } from 'vitest'
import { base32 } from '../../../policy/base32.ts'
import { DOCUMENT_KINDS, type DocumentKindName } from '../../../policy/documents/kinds.ts'
import { KEY_USES, publicJwk, signBytes, type Signer } from '../../../policy/documents/keys.ts'
import { openDocument, signDocument } from '../../../policy/documents/signed-document.ts'
import {
  encodeReceiptClaims,
  receiptEntry,
  receiptIdentity,
  decodeCbor,
  encodeCbor,
} from '../../../policy/receipts/receipt-claims.ts'
import { parseCose, openReceipt, RECEIPT_LIFE, signReceipt } from '../../../policy/receipts/receipt-token.ts'
import { Tagged } from 'cborg'
import { readSources } from '../../house/sources.ts'
import { ringOf, testKey } from '../../support/keys.ts'

const NOW = 1_800_000_000
const keysByUse = Object.fromEntries(KEY_USES.map((use) => [use, testKey(use)])) as Record<
  (typeof KEY_USES)[number],
  ReturnType<typeof testKey>
>
const keys = ringOf(...Object.values(keysByUse))
const attacker = testKey('token', { seed: 666 })
const KINDS = Object.keys(DOCUMENT_KINDS) as DocumentKindName[]

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const sign = (header: object, claims: object, by: Signer) => {
  const input = `${part(header)}.${part(claims)}`
  return `${input}.${signBytes(Buffer.from(input), by).toString('base64url')}`
}

/** Header fields from which a lax library takes a key, an instruction, or another encoding of the payload. */
const jwk = publicJwk(attacker.record.x)
const FIELDS: [string, object][] = [
  ['jwk', { jwk }],
  ['jku', { jku: 'https://evil.example/keys' }],
  ['x5u', { x5u: 'https://evil.example/cert' }],
  ['x5c', { x5c: ['MIIB'] }],
  ['x5t', { x5t: 'AAAA' }],
  ['x5t#S256', { 'x5t#S256': 'AAAA' }],
  ['crit', { crit: ['exp'] }],
  ['crit with b64', { crit: ['b64'], b64: false }],
  ['an empty crit', { crit: [] }],
  ['b64', { b64: false }],
  ['zip', { zip: 'DEF' }],
  ['enc', { enc: 'A256GCM' }],
  ['cty', { cty: 'JWT' }],
]

describe.each(KINDS)('a %s document', (name) => {
  const kind = DOCUMENT_KINDS[name]
  const { signer, record } = keysByUse[kind.use]
  const claims = { aud: 'x', iat: NOW, exp: NOW + 30 }
  const open = (text: string) => {
    const opened = openDocument(text, kind, { keys, audience: 'x', now: NOW })
    return opened.ok ? 'ok' : opened.fault
  }
  const header = { alg: 'EdDSA', kid: record.kid, typ: kind.typ }

  it('is rejected with jwk, jku, x5c, crit or any other header field, although a valid key signed it', () => {
    expect(open(sign(header, claims, signer))).toBe('ok')
    for (const [what, field] of FIELDS)
      expect([what, open(sign({ ...header, ...field }, claims, signer))]).toEqual([what, 'header_not_allowed'])
  })

  it('is rejected with a key in its header, under the id of a known key or of that key', () => {
    for (const kid of [record.kid, attacker.record.kid])
      expect(open(sign({ ...header, kid, jwk }, claims, attacker.signer))).toBe('header_not_allowed')
    expect(open(sign({ ...header, kid: attacker.record.kid }, claims, attacker.signer))).toBe('unknown_key')
    expect(open(sign(header, claims, attacker.signer))).toBe('bad_signature')
  })

  it('is rejected as any other kind of document, and with a key of any other use', () => {
    const text = sign(header, claims, signer)
    for (const other of KINDS.filter((each) => each !== name)) {
      const opened = openDocument(text, DOCUMENT_KINDS[other], { keys, audience: 'x', now: NOW })
      expect([other, opened.ok ? 'ok' : opened.fault]).toEqual([other, 'wrong_kind'])
    }
    for (const use of KEY_USES.filter((each) => each !== kind.use))
      expect([use, open(signDocument(kind, claims, keysByUse[use].signer))]).toEqual([use, 'wrong_kind'])
  })
})

describe('a receipt', () => {
  const { signer, record } = keysByUse.receipt
  const AAD = Buffer.from('untag-receipt-1')
  const STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z18'
  const cti = receiptIdentity(Buffer.alloc(32, 7), 'pur_1')
  const claims = {
    storeId: STORE,
    exp: NOW + RECEIPT_LIFE,
    cti,
    units: 1,
    riskClass: 0,
    policyVersion: 1,
    entries: [receiptEntry(cti, 'epc', '3034007D00011C400000000B')],
  }
  const payload = encodeReceiptClaims(claims)
  const kid = Buffer.from(record.kid)
  const GOOD: [number, unknown][] = [
    [1, -8],
    [4, kid],
  ]
  /** Labels of RFC 9052 §3.1 and RFC 9360. */
  const [CRIT, TYPE, X5CHAIN, X5U] = [2, 3, 33, 35]
  const make = (fields: [number, unknown][], unprotected: [number, unknown][] = [], by: Signer = signer) => {
    const head = encodeCbor(new Map(fields))
    const signature = signBytes(encodeCbor(['Signature1', head, AAD, payload]), by)
    return encodeCbor(new Tagged(18, [head, new Map(unprotected), payload, signature]))
  }
  const verdict = (bytes: Uint8Array) => {
    const opened = openReceipt(base32.encode(bytes), { keys, storeId: STORE, now: NOW })
    return opened.ok ? 'ok' : opened.fault
  }

  it('is built by this test in the same way as by the cloud', () => {
    expect(base32.encode(make(GOOD))).toBe(signReceipt(claims, signer))
    expect(verdict(make(GOOD))).toBe('ok')
    expect(decodeCbor(make(GOOD), 18)).toBeInstanceOf(Tagged)
  })

  it.each<[string, Uint8Array]>([
    ['crit in its protected header', make([...GOOD, [CRIT, [4]]])],
    ['crit that names an unknown label', make([...GOOD, [CRIT, [-70_001]], [-70_001, 1]])],
    ['a content type', make([...GOOD, [TYPE, 'application/json']])],
    ['a certificate chain', make([...GOOD, [X5CHAIN, Buffer.from('30', 'hex')]])],
    ['the address of a certificate', make([...GOOD, [X5U, 'https://evil.example/cert']])],
    ['crit in its unprotected header', make(GOOD, [[CRIT, [4]]])],
    ['a key id in its unprotected header', make(GOOD, [[4, kid]])],
    ['a certificate in its unprotected header', make(GOOD, [[X5CHAIN, Buffer.from('30', 'hex')]])],
    ['its key id in the unprotected header alone', make([[1, -8]], [[4, kid]])],
    ['no algorithm', make([[4, kid]])],
    [
      'ES256 as its algorithm',
      make([
        [1, -7],
        [4, kid],
      ]),
    ],
    [
      'an algorithm as text',
      make([
        [1, 'EdDSA'],
        [4, kid],
      ]),
    ],
    [
      'a key id that is text',
      make([
        [1, -8],
        [4, record.kid],
      ]),
    ],
  ])('is refused with %s, although a receipt key signed it', (_, bytes) => {
    expect(parseCose(bytes)).toBeUndefined()
    expect(verdict(bytes)).toBe('malformed')
  })

  it('is rejected under a key of each other use', () => {
    for (const use of KEY_USES.filter((each) => each !== 'receipt')) {
      const { signer: by, record: other } = keysByUse[use]
      expect([
        use,
        verdict(
          make(
            [
              [1, -8],
              [4, Buffer.from(other.kid)],
            ],
            [],
            by,
          ),
        ),
      ]).toEqual([use, 'wrong_kind'])
    }
  })
})

describe('signatures', () => {
  const sources = readSources(['policy', 'device-drivers', 'edge-agent', 'cloud', 'clients', 'host', 'bin'])
  const using = (pattern: RegExp) => sources.filter(({ code }) => pattern.test(code)).map(({ path }) => path)

  it('are verified by openDocument and openReceipt only: there is no second parser with other rules', () => {
    expect(using(/\bisSignedBy\(/)).toEqual([
      'policy/documents/keys.ts',
      'policy/documents/signed-document.ts',
      'policy/receipts/receipt-token.ts',
    ])
    expect(using(/\bisCoseSignedBy\(/)).toEqual(['policy/receipts/receipt-token.ts'])
    expect(
      sources
        .filter(({ text }) => /import \{[^}]*\b(?:verify|createVerify)\b[^}]*\} from 'node:crypto'/.test(text))
        .map(({ path }) => path),
    ).toEqual(['policy/documents/keys.ts'])
    expect(sources.filter(({ text }) => /from '(?:jsonwebtoken|hono\/(?:jwt|jwk))'/.test(text))).toEqual([])
    const fromJose = sources.flatMap(({ path, text }) => {
      const [, names = ''] = /import \{([^}]*)\} from 'jose'/.exec(text) ?? []
      return names === ''
        ? []
        : [
            `${path}: ${names
              .split(',')
              .map((name) => name.trim())
              .join(' ')}`,
          ]
    })
    expect(fromJose).toEqual([
      'edge-agent/identity/identity.ts: exportJWK importPKCS8',
      'edge-agent/trust/verify/open-claims.ts: decodeProtectedHeader',
      'cloud/platform/authority/key-files.ts: base64url calculateJwkThumbprint exportJWK importJWK',
      'cloud/shop/push/sender.ts: SignJWT',
      'clients/typescript/verify-token.ts: createRemoteJWKSet customFetch errors jwtVerify type JWTPayload',
    ])
  })
})
