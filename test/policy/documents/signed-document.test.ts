import { createHmac, createPublicKey } from 'node:crypto'
import fc from 'fast-check'
import { importJWK, jwtVerify, SignJWT, calculateJwkThumbprint } from 'jose'
import { describe, expect, it } from 'vitest'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { isSignedBy, keyId, publicJwk, signBytes } from '../../../policy/documents/keys.ts'
import { openDocument, signDocument, type DocumentErrorCode } from '../../../policy/documents/signed-document.ts'
import { ringOf, testKey } from '../../support/keys.ts'
import { NO_JOSE_VECTORS, outsideVectors } from '../../support/outside-vectors.ts'
import { suiteWith } from '../../support/extended.ts'

const NOW = 1_800_000_000
const token = testKey('token')
const keys = ringOf(token, testKey('policy'), testKey('receipt'))
const kind = DOCUMENT_KINDS.authorization
const expected = { keys, audience: 'dev_1', now: NOW }
const claims = { aud: 'dev_1', iat: NOW, exp: NOW + 300, jti: 'x' }
const good = signDocument(kind, claims, token.signer)
const [header = '', payload = '', signature = ''] = good.split('.')

const b64 = (text: string) => Buffer.from(text).toString('base64url')
const faultOf = (text: string, now = NOW): DocumentErrorCode | 'ok' => {
  const opened = openDocument(text, kind, { ...expected, now })
  return opened.ok ? 'ok' : opened.fault
}
/** Signs these parts without validation. */
const forge = (headerText: string, payloadText: string) => {
  const input = `${b64(headerText)}.${b64(payloadText)}`
  return `${input}.${signBytes(Buffer.from(input), token.signer).toString('base64url')}`
}
const headerText = JSON.stringify({ alg: 'EdDSA', kid: token.record.kid, typ: kind.typ })
const withClaims = (changed: Record<string, unknown>) => forge(headerText, JSON.stringify({ ...claims, ...changed }))

describe('openDocument', () => {
  it('opens documents that signDocument wrote', () => {
    const opened = openDocument(good, kind, expected)
    expect(opened.ok && opened.claims).toMatchObject(claims)
  })

  it.each<[string, string, DocumentErrorCode]>([
    [
      'alg none',
      `${b64(JSON.stringify({ alg: 'none', kid: token.record.kid, typ: kind.typ }))}.${payload}.`,
      'header_not_allowed',
    ],
    ['HS256 with the public key as secret', hs256(), 'header_not_allowed'],
    [
      'alg Ed25519 (RFC 9864) under an EdDSA key',
      forge(headerText.replace('EdDSA', 'Ed25519'), JSON.stringify(claims)),
      'header_not_allowed',
    ],
    ['no kid', forge(JSON.stringify({ alg: 'EdDSA', typ: kind.typ }), JSON.stringify(claims)), 'header_not_allowed'],
    [
      'a kid that is no string',
      forge(JSON.stringify({ alg: 'EdDSA', kid: ['a'], typ: kind.typ }), JSON.stringify(claims)),
      'header_not_allowed',
    ],
    [
      'a kid that is a path',
      forge(headerText.replace(token.record.kid, '../../etc'), JSON.stringify(claims)),
      'header_not_allowed',
    ],
    [
      'a kid that names a property of objects',
      forge(headerText.replace(token.record.kid, '__proto_'), JSON.stringify(claims)),
      'unknown_key',
    ],
    ['a jwk in the header', forge(headerText.replace('}', ',"jwk":{}}'), JSON.stringify(claims)), 'header_not_allowed'],
    ['crit', forge(headerText.replace('}', ',"crit":["exp"]}'), JSON.stringify(claims)), 'header_not_allowed'],
    [
      'a repeated header field',
      forge(headerText.replace('}', ',"alg":"EdDSA"}'), JSON.stringify(claims)),
      'not_canonical',
    ],
    ['another typ', forge(headerText.replace(kind.typ, 'policy+jwt'), JSON.stringify(claims)), 'wrong_kind'],
    ['a key of another use', signDocument(kind, claims, testKey('policy').signer), 'wrong_kind'],
    ['an unknown key', signDocument(kind, claims, testKey('token', { seed: 99 }).signer), 'unknown_key'],
    ['an altered claim', `${header}.${b64(JSON.stringify({ ...claims, jti: 'y' }))}.${signature}`, 'bad_signature'],
    [
      'an altered signature',
      `${header}.${payload}.${signature.replace(/^./, (c) => (c === 'A' ? 'B' : 'A'))}`,
      'bad_signature',
    ],
    ['a cut signature', `${header}.${payload}.${signature.slice(0, -4)}`, 'bad_signature'],
    ['padding', `${header}.${payload}.${signature}==`, 'bad_signature'],
    ['a newline at the end', `${good}\n`, 'bad_signature'],
    ['a space before', ` ${good}`, 'malformed'],
    ['two parts', `${header}.${payload}`, 'malformed'],
    ['four parts', `${good}.${signature}`, 'malformed'],
    ['empty', '', 'malformed'],
    ['over 1,024 characters', good + 'A'.repeat(1_024), 'too_long'],
    ['a repeated claim', forge(headerText, JSON.stringify(claims).replace('}', ',"aud":"dev_1"}')), 'not_canonical'],
    ['spaces in the claims', forge(headerText, JSON.stringify(claims, null, 1)), 'not_canonical'],
    ['claims that are an array', forge(headerText, '[]'), 'malformed'],
    ['claims that are not JSON', forge(headerText, '{'), 'malformed'],
    ['another device', withClaims({ aud: 'dev_2' }), 'wrong_audience'],
    ['several devices', withClaims({ aud: ['dev_1'] }), 'wrong_audience'],
    ['no exp', withClaims({ exp: undefined }), 'claims_invalid'],
    ['exp as text', withClaims({ exp: String(NOW + 300) }), 'claims_invalid'],
    ['exp with a fraction', withClaims({ exp: NOW + 0.5 }), 'claims_invalid'],
    ['exp before iat', withClaims({ exp: NOW - 1 }), 'claims_invalid'],
    ['a negative iat', withClaims({ iat: -1, exp: 10 }), 'claims_invalid'],
    ['an infinite exp', forge(headerText, JSON.stringify(claims).replace(String(NOW + 300), '1e999')), 'not_canonical'],
    ['a life of ten minutes and a second', withClaims({ exp: NOW + 601 }), 'life_too_long'],
    ['issued six seconds ahead', withClaims({ iat: NOW + 6, exp: NOW + 100 }), 'issued_in_future'],
  ])('refuses %s', (_name, text, fault) => {
    expect(faultOf(text)).toBe(fault)
  })

  it('accepts a lifetime of ten minutes and an issue time five seconds ahead', () => {
    expect(faultOf(withClaims({ exp: NOW + 600 }))).toBe('ok')
    expect(faultOf(withClaims({ iat: NOW + 5, exp: NOW + 100 }))).toBe('ok')
  })

  it('expires at exp to the second', () => {
    expect(faultOf(good, NOW + 299)).toBe('ok')
    expect(faultOf(good, NOW + 300)).toBe('expired')
  })

  it.each([
    ['next', 'ok'],
    ['active', 'ok'],
    ['retiring', 'ok'],
    ['retired', 'key_revoked'],
    ['revoked', 'key_revoked'],
  ] as const)('with a key that is %s: %s', (state, answer) => {
    const opened = openDocument(good, kind, { ...expected, keys: ringOf(testKey('token', { state })) })
    expect(opened.ok ? 'ok' : opened.fault).toBe(answer)
  })

  it('accepts one spelling of a token; jose accepts 16 last characters and white space', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const variants = [...alphabet].map((c) => good.slice(0, -1) + c).filter((v) => v !== good)
    expect(variants.map((v) => faultOf(v)).filter((f) => f === 'ok')).toEqual([])
  })

  it('rejects every single changed character', () => {
    fc.assert(
      fc.property(
        fc.nat({ max: good.length - 1 }),
        fc.constantFrom('A', 'b', '0', '-', '_', '.', '=', '\u0000'),
        (at, c) => {
          fc.pre(good[at] !== c)
          expect(faultOf(good.slice(0, at) + c + good.slice(at + 1))).not.toBe('ok')
        },
      ),
      { numRuns: 2_000 },
    )
  })

  it('rejects any other text without throwing', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 400 }), (text) => {
        expect(faultOf(text)).not.toBe('ok')
      }),
      { numRuns: 3_000 },
    )
  })
})

describe('compared with jose, an independent library', () => {
  const publicKey = () => importJWK({ ...publicJwk(token.record.x) }, 'EdDSA')

  it('jose verifies our documents', async () => {
    const { payload: read, protectedHeader } = await jwtVerify(good, await publicKey(), {
      algorithms: ['EdDSA'],
      audience: 'dev_1',
      typ: kind.typ,
      currentDate: new Date(NOW * 1_000),
    })
    expect(read).toEqual(claims)
    expect(Object.keys(protectedHeader)).toEqual(['alg', 'kid', 'typ'])
  })

  it('openDocument opens documents that jose signs', async () => {
    const text = await new SignJWT({ jti: 'x' })
      .setProtectedHeader({ alg: 'EdDSA', kid: token.record.kid, typ: kind.typ })
      .setAudience('dev_1')
      .setIssuedAt(NOW)
      .setExpirationTime(NOW + 60)
      .sign(token.signer.privateKey)
    expect(faultOf(text)).toBe('ok')
  })

  it('agrees about key ids: the first 8 characters of the RFC 7638 thumbprint', async () => {
    expect(keyId(token.record.x)).toBe((await calculateJwkThumbprint({ ...publicJwk(token.record.x) })).slice(0, 8))
    // RFC 8037 A.3
    expect(keyId('11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo')).toBe('kPrK_qmx')
  })
})

function hs256(): string {
  const input = `${b64(JSON.stringify({ alg: 'HS256', kid: token.record.kid, typ: kind.typ }))}.${payload}`
  return `${input}.${createHmac('sha256', Buffer.from(token.record.x, 'base64url')).update(input).digest('base64url')}`
}

interface WycheproofJws {
  testGroups: {
    private?: { kid?: string }
    public?: { kid?: string }
    tests: { tcId: number; jws: unknown; result: string }[]
  }[]
}
interface WycheproofEd25519 {
  testGroups: { publicKeyJwk: { x: string }; tests: { tcId: number; msg: string; sig: string; result: string }[] }[]
}

suiteWith(NO_JOSE_VECTORS, 'Wycheproof', () => {
  it('opens none of the 401 JWS vectors, because none is a document of untag', () => {
    const { testGroups } = outsideVectors<WycheproofJws>('jose/json_web_signature_test.json')
    const texts = testGroups.flatMap((g) =>
      g.tests.map((t) => (typeof t.jws === 'string' ? t.jws : JSON.stringify(t.jws))),
    )
    expect(texts.length).toBe(401)
    for (const each of Object.values(DOCUMENT_KINDS)) {
      expect(texts.filter((t) => openDocument(t, each, { keys, audience: 'joe' }).ok)).toEqual([])
    }
  })

  it('accepts every valid Ed25519 signature and rejects every other', () => {
    const { testGroups } = outsideVectors<WycheproofEd25519>('jose/ed25519_test.json')
    let checked = 0
    for (const { publicKeyJwk, tests } of testGroups) {
      const publicKey = createPublicKey({ key: { ...publicJwk(publicKeyJwk.x) }, format: 'jwk' })
      for (const t of tests) {
        const accepted = isSignedBy(Buffer.from(t.msg, 'hex'), Buffer.from(t.sig, 'hex'), publicKey)
        expect([t.tcId, accepted]).toEqual([t.tcId, t.result === 'valid'])
        checked++
      }
    }
    expect(checked).toBe(151)
  })
})
