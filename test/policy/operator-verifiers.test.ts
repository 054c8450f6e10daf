import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import {
  findCardIndex,
  matchesVerifier,
  newBadgeVerifier,
  newPinVerifier,
  newStoreKey,
  publishedVerifier,
  storeKeyId,
} from '../../policy/operator-verifiers.ts'

const { random } = virtualPlatform()
const [storeKey, otherKey] = [newStoreKey(random), newStoreKey(random)]

describe('published verifiers', () => {
  const base = newPinVerifier('471108', random)
  const published = publishedVerifier(base, storeKey)

  it('accept the PIN with the store key', () => {
    expect(matchesVerifier(published, '471108', storeKey)).toBe(true)
    expect(matchesVerifier(published, '471109', storeKey)).toBe(false)
  })

  it('accept no PIN with the key of another store or with an earlier key', () => {
    expect(matchesVerifier(published, '471108', otherKey)).toBe(false)
    expect(matchesVerifier(published, '471108', '')).toBe(false)
  })

  it('do not contain the base verifier, which a search for PINs would need', () => {
    expect(published).toEqual({ ...base, key: expect.any(String) })
    expect(published.key).not.toBe(base.key)
    expect(matchesVerifier(base, '471108', storeKey)).toBe(false)
  })

  it('can be published under another store key without the PIN', () => {
    const changed = publishedVerifier(base, otherKey)
    expect(changed.key).not.toBe(published.key)
    expect(matchesVerifier(changed, '471108', otherKey)).toBe(true)
    expect(matchesVerifier(changed, '471108', storeKey)).toBe(false)
  })

  it('find a card only with the right store key', () => {
    const card = publishedVerifier(newBadgeVerifier('04A1B2C3', random), storeKey)
    expect(findCardIndex([undefined, published, card], '04A1B2C3', storeKey)).toBe(2)
    expect(findCardIndex([undefined, published, card], '04A1B2C3', otherKey)).toBe(-1)
  })

  it('reject a verifier with too high a cost', () => {
    expect(matchesVerifier({ ...published, n: 1 << 20 }, '471108', storeKey)).toBe(false)
  })
})

describe('store keys', () => {
  it('have 256 bits and an id that does not reveal them', () => {
    expect(Buffer.from(storeKey, 'base64url')).toHaveLength(32)
    expect(storeKeyId(storeKey)).toMatch(/^[\w-]{16}$/)
    expect(storeKeyId(storeKey)).not.toBe(storeKeyId(otherKey))
    expect(storeKey).not.toContain(storeKeyId(storeKey))
    expect(storeKeyId(randomBytes(32).toString('base64url'))).not.toBe(storeKeyId(storeKey))
  })
})
