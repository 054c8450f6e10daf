import fc from 'fast-check'
import { expect, it } from 'vitest'
import { closest, didYouMean } from '../../policy/closest.ts'

const KNOWN = ['fetchStores', 'fetchStore', 'fetchProduct', 'insertProduct', 'backup', 'doctor']

it('finds a word despite a typo, swapped letters, case, or a missing part', () => {
  expect(closest('fetchProdcut', KNOWN)[0]).toBe('fetchProduct')
  expect(closest('FETCHSTORES', KNOWN)[0]).toBe('fetchStores')
  expect(closest('docter', KNOWN)).toEqual(['doctor'])
  expect(closest('product', KNOWN)).toEqual(['fetchProduct', 'insertProduct'])
  expect(didYouMean('backpu', KNOWN)).toBe('; did you mean backup?')
})

it('suggests nothing that is far away', () => {
  expect(closest('zzzzzz', KNOWN)).toEqual([])
  expect(didYouMean('', KNOWN)).toBe('')
})

it('finds every word with one letter replaced, and answers at most the limit', () => {
  fc.assert(
    fc.property(fc.constantFrom(...KNOWN), fc.nat(), fc.constantFrom('q', 'x'), (word, at, letter) => {
      const i = at % word.length
      expect(closest(`${word.slice(0, i)}${letter}${word.slice(i + 1)}`, KNOWN, 6)).toContain(word)
      expect(closest(word, KNOWN, 1)).toHaveLength(1)
    }),
  )
})
