import { expect, it } from 'vitest'
import { rowMaker } from '../../../../cloud/platform/persistence/sqlite.ts'

it('makes rows with any names of columns', () => {
  const columns = ['a', '"', "it's", 'count(*)', '}; throw 1', 'constructor', '\u2028', '']
  const row = rowMaker(columns)(columns.map((_, i) => i))
  expect(Object.entries(row)).toEqual(columns.map((column, i) => [column, i]))
})

it('keeps the last of two columns with one name', () => {
  expect(rowMaker(['a', 'b', 'a'])([1, 2, 3])).toEqual({ a: 3, b: 2 })
})

it('refuses a column that a literal cannot set', () => {
  expect(() => rowMaker(['__proto__'])).toThrow('__proto__')
})
