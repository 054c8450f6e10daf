import { expect, it, vi } from 'vitest'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { verificationKey } from '../../../policy/documents/keys.ts'
import { openDocument, signDocument } from '../../../policy/documents/signed-document.ts'
import { seededRandom } from '../../verification/simulation/virtual/virtual-platform.ts'
import { testKey } from '../../support/keys.ts'

it('10,000 unknown key ids cause no signature check, and at most 256 headers are cached', () => {
  const token = testKey('token')
  const kind = DOCUMENT_KINDS.authorization
  const key = verificationKey(token.record)
  let checked = 0
  const counted = {
    ...key,
    get publicKey() {
      checked++
      return key.publicKey
    },
  }
  const expected = { keys: new Map([[key.kid, counted]]), audience: 'dev_1', now: 1_000 }
  const good = signDocument(kind, { aud: 'dev_1', iat: 1_000, exp: 1_060 }, token.signer)
  const rest = good.slice(good.indexOf('.'))
  const random = seededRandom(3)
  const remembered = new Set<Map<unknown, unknown>>()
  const set = vi.spyOn(Map.prototype, 'set')
  let largest = 0
  for (let n = 0; n < 10_000; n++) {
    const kid = Buffer.from(random.bytes(6)).toString('base64url')
    const header = Buffer.from(JSON.stringify({ alg: 'EdDSA', kid, typ: kind.typ })).toString('base64url')
    expect(openDocument(header + rest, kind, expected)).toMatchObject({ ok: false, fault: 'unknown_key' })
    const map = set.mock.contexts.at(-1) as Map<unknown, unknown>
    expect(set.mock.calls.at(-1)?.[0]).toBe(header)
    remembered.add(map)
    largest = Math.max(largest, map.size)
    set.mockClear()
  }
  set.mockRestore()
  expect(checked).toBe(0)
  expect(remembered.size).toBe(1)
  expect(largest).toBe(256)
  expect(openDocument(good, kind, expected)).toMatchObject({ ok: true })
  expect(checked).toBe(1)
})
