import { randomBytes } from 'node:crypto'
import { expect, it } from 'vitest'
import { codeBits, releasesByCode } from '../../../policy/receipts/code-strength.ts'

/** Which printed codes may release labels: those that can have 40 random bits, if the policy says so (ADR till-sales). */
it.each([
  '4093817265382',
  '9f86d081884c7',
  '9F86D081884C7D65',
  '8F2K4M7QB3X9P',
  'C-01KANX6Y7C3V9Q2M8R5T4W6Z1B',
  'https://shop.example/r?c=b7k2m9x4c1q8z',
  'QWHZPNMRTVKGBXDSFLCJ4',
])('counts 40 bits in %s', (code) => {
  expect([releasesByCode('release', code), releasesByCode('barrier', code)]).toEqual([true, false])
})

it.each([
  ['few digits', '409381726538'],
  ['few letters and digits', '8F2K4M7QB3X9'],
  ['one digit', '0000000000000000'],
  ['digits in order', '1234567890123456789'],
  ['letters in order', 'abcdefghijklmnopqrstuvwxyz0123456789'],
  ['a number that counts', '0000000000000000004711'],
  ['a repeated number', '4711471147114711'],
  ['groups of a till', '20261120-3-4711-8F2K'],
  ['a date before the number', '202611200915300034711'],
  ['a German date before the number', '20112026091500034711'],
  ['words', 'THANKYOUFORBUYING'],
  ['words with a number', 'TILL3N04711'],
  ['a name with a number', 'BON0000000004711'],
  ['signs', '!!!!????####$$$$'],
])('refuses %s', (_, code) => {
  expect(releasesByCode('release', code)).toBe(false)
})

it('finds 40 bits in codes of 8 random bytes, and never more bits than they have', () => {
  let refused = 0
  for (let n = 0; n < 1_000; n++) {
    const hex = randomBytes(8).toString('hex')
    if (!releasesByCode('release', hex)) refused++
    expect(codeBits(hex)).toBeLessThanOrEqual(64)
  }
  expect(refused).toBeLessThan(10)
  expect([codeBits('x'.repeat(128)), codeBits('')]).toEqual([0, 0])
})
