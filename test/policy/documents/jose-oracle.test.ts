import fc from 'fast-check'
import { base64url, decodeJwt, decodeProtectedHeader, errors, jwtVerify, type JWTPayload } from 'jose'
import { expect, it } from 'vitest'
import { DOCUMENT_KINDS, type DocumentKind, type DocumentKindName } from '../../../policy/documents/kinds.ts'
import { KEY_STATES, KEY_USES, signBytes, type KeyState, type Signer } from '../../../policy/documents/keys.ts'
import { ISSUED_AHEAD_TOLERANCE, openDocument } from '../../../policy/documents/signed-document.ts'
import { ringOf, testKey } from '../../support/keys.ts'

/**
 * jose is the oracle of the parser. `openDocument` must accept exactly the texts that jose verifies and that also keep
 * the stricter rules of untag. This test implements these rules a second time, on the values that jose decodes.
 */
const NOW = 1_800_000_000
const AUDIENCE = 'dev_1'
const KINDS = Object.keys(DOCUMENT_KINDS) as DocumentKindName[]
/** One key for each use and state. The key `stranger` is not in the key ring. */
const owned = KEY_USES.flatMap((use, n) =>
  KEY_STATES.map((state, m) => testKey(use, { state, seed: 1_000 + n * 10 + m })),
)
const stranger = testKey('token', { seed: 9_999 })
const keys = ringOf(...owned)
const counts: ReadonlySet<KeyState> = new Set(['next', 'active', 'retiring'])

async function joseAccepts(text: string, kind: DocumentKind): Promise<JWTPayload | undefined> {
  try {
    const { payload } = await jwtVerify(
      text,
      ({ kid }) => {
        const key = keys.get(kid ?? '')
        if (!key || key.use !== kind.use || !counts.has(key.state)) throw new errors.JWKSNoMatchingKey()
        return key.publicKey
      },
      {
        algorithms: ['EdDSA'],
        audience: AUDIENCE,
        typ: kind.typ,
        requiredClaims: ['iat', 'exp'],
        currentDate: new Date(NOW * 1_000),
      },
    )
    return payload
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined
    throw error
  }
}

/** The stricter rules of untag. */
function keepsOurRules(text: string, kind: DocumentKind): boolean {
  const header = decodeProtectedHeader(text)
  const claims = decodeJwt(text)
  const { aud, iat = -1, exp = -1 } = claims
  const part = (value: object) => base64url.encode(JSON.stringify(value))
  const signature = base64url.encode(base64url.decode(text.split('.')[2] ?? ''))
  return (
    text.length <= kind.maxLength &&
    text === `${part(header)}.${part(claims)}.${signature}` &&
    Object.keys(header).length === 3 &&
    header.typ === kind.typ &&
    aud === AUDIENCE &&
    Number.isSafeInteger(iat) &&
    Number.isSafeInteger(exp) &&
    iat >= 0 &&
    iat <= NOW + ISSUED_AHEAD_TOLERANCE &&
    exp > iat &&
    exp - iat <= kind.maxLife
  )
}

const b64 = (text: string) => Buffer.from(text).toString('base64url')
function sign(header: string, claims: string, by: Signer): string {
  const input = `${b64(header)}.${b64(claims)}`
  return `${input}.${signBytes(Buffer.from(input), by).toString('base64url')}`
}

/** Mostly valid values, so that many texts have only one error. */
const mostly = <T>(good: T, ...others: T[]) =>
  fc.oneof({ weight: 12, arbitrary: fc.constant(good) }, { weight: 1, arbitrary: fc.constantFrom(...others) })

/** A signed text of this kind, whose contents may be invalid. */
const signedText = (kind: DocumentKind) => {
  const own = owned.filter(({ record }) => record.use === kind.use && counts.has(record.state))
  return fc
    .record({
      by: fc.oneof({ weight: 12, arbitrary: fc.constantFrom(...own) }, fc.constantFrom(...owned, stranger)),
      alg: mostly('EdDSA', 'Ed25519', 'none', 'HS256', 'eddsa'),
      typ: mostly<unknown>(kind.typ, 'JWT', `application/${kind.typ}`, kind.typ.toUpperCase(), undefined),
      more: mostly<unknown>(
        {},
        { crit: ['exp'] },
        { crit: [] },
        { b64: true },
        { cty: 'JWT' },
        { jwk: {} },
        { kid: 'x' },
      ),
      aud: mostly<unknown>(AUDIENCE, 'dev_2', [AUDIENCE], undefined),
      iat: mostly<unknown>(NOW, NOW - 20, NOW + 5, NOW + 6, -1, NOW + 0.5, undefined, String(NOW)),
      exp: mostly<unknown>(
        NOW + 30,
        NOW,
        NOW + 1,
        NOW + kind.maxLife,
        NOW + kind.maxLife + 1,
        NOW + 0.5,
        undefined,
        null,
      ),
      claims: fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 }),
      rewrite: mostly<(text: string) => string>(
        (text) => text,
        (text) => `${text} `,
        (text) => text.replace(':', ': '),
        (text) => text.replace('}', ',"aud":"dev_1"}'),
        (text) => text.replace('"', String.raw`"\u0061`),
        (text) => text.replace(String(NOW), `${NOW}.0`),
        () => '[]',
        () => '{',
      ),
    })
    .map(({ by, alg, typ, more, rewrite, claims, ...common }) =>
      sign(
        JSON.stringify({ alg, kid: by.record.kid, typ, ...(more as object) }),
        rewrite(JSON.stringify({ ...claims, ...common })),
        by.signer,
      ),
    )
}

/** Removes, inserts and replaces characters. */
const mutation = fc
  .record({
    at: fc.nat(2_000),
    remove: fc.nat(2),
    insert: fc.oneof(
      fc.constantFrom('', '.', '=', ' ', '\n', 'A', '_', '+', '/', '\0', 'é'),
      fc.string({ maxLength: 3 }),
    ),
  })
  .map(({ at, remove, insert }) => (text: string) => {
    const where = at % (text.length + 1)
    return text.slice(0, where) + insert + text.slice(where + remove)
  })
/** The last character of a signature has 4 spare bits: a lenient decoder decodes 16 characters to the same bytes. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const respelling = fc
  .integer({ min: 1, max: 15 })
  .map((by) => (text: string) => text.slice(0, -1) + (ALPHABET[(ALPHABET.indexOf(text.at(-1) ?? '') & ~15) + by] ?? ''))
const mutations = fc.oneof(
  { weight: 4, arbitrary: fc.constant<((text: string) => string)[]>([]) },
  { weight: 2, arbitrary: fc.array(mutation, { minLength: 1, maxLength: 2 }) },
  { weight: 1, arbitrary: respelling.map((change) => [change]) },
)

it('openDocument accepts exactly the documents that jose verifies and our stricter rules allow', async () => {
  const seen = { ours: 0, joseAlone: 0, neither: 0 }
  const texts = fc
    .constantFrom(...KINDS)
    .chain((name) => fc.tuple(fc.constant(DOCUMENT_KINDS[name]), signedText(DOCUMENT_KINDS[name]), mutations))
  await fc.assert(
    fc.asyncProperty(texts, async ([kind, signed, changes]) => {
      const text = changes.reduce((changed, change) => change(changed), signed)
      const opened = openDocument(text, kind, { keys, audience: AUDIENCE, now: NOW })
      const payload = await joseAccepts(text, kind)
      seen[opened.ok ? 'ours' : payload ? 'joseAlone' : 'neither']++
      expect(opened.ok).toBe(payload !== undefined && keepsOurRules(text, kind))
      if (opened.ok) expect(opened.claims).toEqual(payload)
    }),
    { numRuns: 2_000 },
  )
  // Each of the three results must be frequent, or the comparison proves little.
  expect(Math.min(seen.ours, seen.joseAlone, seen.neither)).toBeGreaterThan(50)
})
