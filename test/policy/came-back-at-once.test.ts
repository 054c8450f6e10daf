import { expect, it } from 'vitest'
import { cameBackAtOnce } from '../../policy/cancelled-lines.ts'
import { type SaleLine } from '../../policy/till-sale.ts'

const [shirt, vest] = ['urn:epc:id:sgtin:4012345.066666.1', 'urn:epc:id:sgtin:4012345.066666.2']
const line = (quantity: number, priceUnit: number, fields: Partial<SaleLine> = {}): SaleLine => ({
  quantity,
  priceUnit,
  vat: 19,
  ...fields,
})

it.each<[string, SaleLine[], number[]]>([
  ['nothing', [line(2, 100, { ean: '4006381333931' })], [0]],
  ['cancelled pieces', [line(3, 100, { ean: '4006381333931' }), line(-2, 100, { ean: '04006381333931' })], [2, 2]],
  ['more than was sold', [line(1, 100, { name: 'Tüte' }), line(-3, 100, { name: 'Tüte' })], [1, 3]],
  ['pieces of two lines', [line(1, 100), line(1, 100), line(-2, 100)], [1, 1, 2]],
  ['another price', [line(1, 100, { name: 'Buch' }), line(-1, 90, { name: 'Buch' })], [0, 1]],
  ['another product', [line(1, 100, { productId: 'a' }), line(-1, 100, { productId: 'b' })], [0, 1]],
  ['another VAT rate', [line(1, 100), line(-1, 100, { vat: 7 })], [0, 1]],
  ['goods of another sale by their tag', [line(1, 100, { epcs: [shirt] }), line(-1, 100, { epcs: [vest] })], [0, 1]],
  ['a tag', [line(2, 100, { epcs: [shirt, vest] }), line(-1, 80, { epcs: [vest] })], [1, 1]],
  ['a tag by a negative price', [line(1, 100, { epcs: [shirt] }), line(1, -100, { epcs: [shirt] })], [1, 1]],
  ['a discount', [line(1, 500), line(1, -50), line(-1, -50)], [0, 1, 1]],
  ['empties', [line(1, 500), line(4, -25)], [0, 0]],
  [
    'a piece by a negative price',
    [line(3, 100, { ean: '4006381333931' }), line(2, -100, { ean: '04006381333931' })],
    [2, 2],
  ],
  [
    'a tagged piece by a negative price',
    [line(1, 100, { name: 'Buch', epcs: [shirt] }), line(1, -100, { name: 'Buch' })],
    [1, 1],
  ],
  [
    'a piece once',
    [line(1, 100, { productId: 'a' }), line(2, -100, { productId: 'a' }), line(-1, 100, { productId: 'a' })],
    [1, 0, 1],
  ],
  [
    'a line with a negative price',
    [line(1, 100, { productId: 'a' }), line(1, -100, { productId: 'a' }), line(-1, -100, { productId: 'a' })],
    [0, 1, 1],
  ],
  ['a discount on a product', [line(1, 100, { productId: 'a' }), line(1, -10, { productId: 'a' })], [0, 0]],
  ['empties of a deposit', [line(1, 25, { name: 'Pfand' }), line(1, -25, { name: 'Pfand' })], [0, 0]],
  ['the same weight', [line(0.5, 300), line(0.7, 300), line(-0.5, 300)], [0.5, 0, 0.5]],
])('a sale takes back %s', (_, lines, expected) => {
  expect(cameBackAtOnce({ lines })).toEqual(expected)
})
