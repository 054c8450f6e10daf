import { describe, expect, it } from 'vitest'
import { newKey, publicKeyWeakness } from '../../../policy/documents/keys.ts'
import { seededRandom } from '../../verification/simulation/virtual/virtual-platform.ts'

const x = (hex: string) => Buffer.from(hex, 'hex').toString('base64url')

describe('publicKeyWeakness', () => {
  it('finds no weakness in new keys', () => {
    for (let seed = 0; seed < 200; seed++) expect(publicKeyWeakness(newKey(seededRandom(seed)).x)).toBeUndefined()
  })

  // The eight points of small order and their non-canonical spellings, as libsodium lists them.
  it.each([
    '0000000000000000000000000000000000000000000000000000000000000000',
    '0000000000000000000000000000000000000000000000000000000000000080',
    '0100000000000000000000000000000000000000000000000000000000000000',
    '0100000000000000000000000000000000000000000000000000000000000080',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
    '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
    'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
    'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
    'ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  ])('refuses %s', (hex) => {
    expect(publicKeyWeakness(x(hex))).toBeDefined()
  })

  it.each(['', 'AAAA', 'not base64url!', x('00'.repeat(33))])('rejects a text that is no key: %s', (text) => {
    expect(publicKeyWeakness(text)).toBeDefined()
  })
})
