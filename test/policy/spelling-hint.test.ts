import fc from 'fast-check'
import { expect, it } from 'vitest'
import { closestNames, spellingHint } from '../../policy/fold-text.ts'

const KNOWN = ['fetchStores', 'fetchStore', 'fetchProduct', 'insertProduct', 'backup', 'doctor']

it('finds a name despite a typo, swapped letters, case, or a missing part', () => {
  expect(closestNames('fetchProdcut', KNOWN)[0]).toBe('fetchProduct')
  expect(closestNames('FETCHSTORES', KNOWN)[0]).toBe('fetchStores')
  expect(closestNames('docter', KNOWN)).toEqual(['doctor'])
  expect(closestNames('product', KNOWN)).toEqual(['fetchProduct', 'insertProduct'])
  expect(spellingHint('backpu', KNOWN)).toBe('; did you mean backup?')
})

it('finds a name to which a word was added, and one of which a word was left out', () => {
  expect(spellingHint('store-id', ['store', 'data'])).toBe('; did you mean store?')
  expect(spellingHint('storeId', ['store', 'data'])).toBe('; did you mean store?')
  expect(spellingHint('store-id', ['stores', 'data'])).toBe('; did you mean stores?')
  expect(spellingHint('store', ['storeId', 'data'])).toBe('; did you mean storeId?')
  expect(spellingHint('storeid-list', ['store'])).toBe('')
})

it('suggests no distant name', () => {
  expect(closestNames('zzzzzz', KNOWN)).toEqual([])
  expect(spellingHint('', KNOWN)).toBe('')
})

it('finds every name with one letter replaced, and returns at most the limit', () => {
  fc.assert(
    fc.property(fc.constantFrom(...KNOWN), fc.nat(), fc.constantFrom('q', 'x'), (name, at, letter) => {
      const i = at % name.length
      expect(closestNames(`${name.slice(0, i)}${letter}${name.slice(i + 1)}`, KNOWN, 6)).toContain(name)
      expect(closestNames(name, KNOWN, 1)).toHaveLength(1)
    }),
  )
})
