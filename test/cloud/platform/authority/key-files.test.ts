import fc from 'fast-check'
import { calculateJwkThumbprint, importJWK, SignJWT, type JWK } from 'jose'
import { describe, expect, it } from 'vitest'
import { keysOf, loadKeyFiles, type KeyStorage } from '../../../../cloud/platform/authority/key-files.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { keyId, newKey, thumbprint } from '../../../../policy/documents/keys.ts'
import { openDocument } from '../../../../policy/documents/signed-document.ts'
import { keyStorageInMemory } from '../../../verification/simulation/virtual/key-storage.ts'
import { seededRandom } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { ringOf } from '../../../support/keys.ts'

const ROOT = 'keys/root.json'

function memoryFiles(first: Record<string, string> = {}) {
  const texts = new Map(Object.entries(first))
  return { texts, files: keyStorageInMemory(texts) }
}

const load = (files: KeyStorage, seed = 1) => loadKeyFiles(keysOf(''), files, seededRandom(seed))

describe('root.json', () => {
  it('is created once as a private JWK whose key id begins its thumbprint', async () => {
    const { texts, files } = memoryFiles()
    const { root } = await load(files)
    const jwk = JSON.parse(texts.get(ROOT) ?? '') as JWK
    expect(jwk).toEqual({
      kty: 'OKP',
      crv: 'Ed25519',
      alg: 'EdDSA',
      use: 'sig',
      x: root.x,
      d: jwk.d,
      kid: keyId(root.x),
    })
    expect((await calculateJwkThumbprint(jwk)).startsWith(root.signer.kid)).toBe(true)
    expect(Buffer.from(root.thumbprint)).toEqual(thumbprint(root.x))
    const again = await load(files, 2)
    expect([again.root.x, again.sealingKeys]).toEqual([root.x, (await load(files)).sealingKeys])
  })

  it('is the key of another process that created it first', async () => {
    const { texts, files } = memoryFiles()
    const { root } = await load(files)
    const first = new Map(texts)
    texts.clear()
    const late: KeyStorage = {
      ...files,
      create(file, text) {
        files.create(file, first.get(file) ?? '')
        files.create(file, text)
      },
    }
    expect((await load(late, 2)).root.x).toBe(root.x)
  })

  it('is a key that other programs can sign with', async () => {
    const { texts, files } = memoryFiles()
    const { root } = await load(files)
    const kind = DOCUMENT_KINDS.keys
    const text = await new SignJWT({ aud: 'acc_1.test', iat: 1, exp: 2 })
      .setProtectedHeader({ alg: 'EdDSA', kid: root.signer.kid, typ: kind.typ })
      .sign(await importJWK(JSON.parse(texts.get(ROOT) ?? '') as JWK, 'EdDSA'))
    const record = { kid: keyId(root.x), alg: 'EdDSA', x: root.x, use: 'root', iss: 'root', state: 'active' } as const
    const keys = ringOf({ record, signer: root.signer })
    expect(openDocument(text, kind, { keys, audience: 'acc_1.test' })).toMatchObject({ ok: true })
  })

  it('may have the former format, PKCS #8, and is then not rewritten', async () => {
    const { x, secret } = newKey(seededRandom(7))
    const text = JSON.stringify({ x, secret: secret.toString('base64url') })
    const { texts, files } = memoryFiles({ [ROOT]: `${text}\n` })
    const { root } = await load(files)
    expect([root.x, root.signer.kid]).toEqual([x, keyId(x)])
    expect(texts.get(ROOT)).toBe(`${text}\n`)
  })

  it('stops the start if it is damaged; the error names the file, which is not overwritten', async () => {
    const { texts, files } = memoryFiles()
    await load(files)
    const good = texts.get(ROOT) ?? ''
    const jwk = JSON.parse(good) as Record<string, unknown>
    const stranger = newKey(seededRandom(9)).x
    const damaged = fc.oneof(
      fc.nat(good.length - 1).map((end) => good.slice(0, end)),
      fc.constantFrom('kty', 'crv', 'x', 'd').map((name) => JSON.stringify({ ...jwk, [name]: undefined })),
      fc.constantFrom('', 'AA', stranger, 7, null).map((value) => JSON.stringify({ ...jwk, x: value })),
      fc.constantFrom('', 'AA', 'A'.repeat(43), 7).map((value) => JSON.stringify({ ...jwk, d: value })),
      fc.constantFrom('', '[]', 'null', '{}', '{"x":"AA","secret":""}', `{"kty":"oct","k":"AAAA"}`),
    )
    await fc.assert(
      fc.asyncProperty(damaged, async (text) => {
        const damaged = memoryFiles({ [ROOT]: text })
        await expect(load(damaged.files)).rejects.toThrow(
          'keys/root.json is damaged: restore it from your backup of keys',
        )
        expect(damaged.texts.get(ROOT)).toBe(text)
      }),
      { numRuns: 200 },
    )
  })
})
