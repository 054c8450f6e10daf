import { expect, it } from 'vitest'
import { piecesWithoutTag, productHash } from '../../policy/sold-pieces.ts'
import { cameBackAtOnce } from '../../policy/cancelled-lines.ts'
import { sellsGoods, type SaleLine, type SaleTag } from '../../policy/till-sale.ts'

/** For how many pieces of a sale a tag of the same product may pass a gate (`tillSales.passByProduct`). */
const EAN = '4006381333931'
const GTIN = '04006381333931'
const EMPTIES: SaleLine = { name: 'Leergut', quantity: 1, priceUnit: -3_000, vat: 19 }
const EPC = '3034257BF7194E4000000001'
const line = (fields: Partial<SaleLine> = {}): SaleLine => ({
  ean: EAN,
  quantity: 1,
  priceUnit: 990,
  vat: 19,
  ...fields,
})
const UID = '04A1B2C3D4E580'
/** The tag UID is that of another item than the EPC. */
const ofTwoItems = (tag: SaleTag) => ({ [EPC.toLowerCase()]: 'a', [UID.toLowerCase()]: 'b' })[tag.id.toLowerCase()]
const piecesOf = (...lines: SaleLine[]) => Object.fromEntries(piecesWithoutTag({ lines }))

it.each<[string, SaleLine[], number | undefined]>([
  ['each piece of all lines', [line({ quantity: 2 }), line({ priceUnit: 500 })], 3],
  ['no piece whose tag is named', [line({ quantity: 2, epcs: [EPC] })], 1],
  ['none if all tags are named', [line({ epcs: [EPC] })], undefined],
  ['a gift', [line({ priceUnit: 0 })], 1],
  [
    'no piece that the sale takes back, at any price',
    [line({ quantity: 2 }), line({ quantity: -1, priceUnit: 500 })],
    1,
  ],
  ['an exchange by tag', [line(), line({ quantity: -1, epcs: [EPC] })], 1],
  [
    'none if a line without GTIN takes goods back',
    [line(), line({ ean: undefined, name: 'x', quantity: -1 })],
    undefined,
  ],
  ['no piece that a negative price cancels', [line({ quantity: 2 }), line({ priceUnit: -990 })], 1],
  ['pieces beside a discount under their code', [line({ quantity: 2 }), line({ priceUnit: -500 })], 2],
  ['no piece that costs nothing', [line(), line({ priceUnit: -495 }), line({ priceUnit: -495 })], undefined],
  ['a piece with two kinds of tags once', [line({ quantity: 2, epcs: [EPC], tagUids: ['04A1B2C3D4E580'] })], 1],
  ['pieces beside a discount', [line(), line({ ean: undefined, name: 'discount', priceUnit: -100 })], 1],
  ['no weighed goods', [line({ quantity: 0.5 })], undefined],
  ['at most 100', [line({ quantity: 5_000 })], 100],
  ['no scale label', [line({ ean: '2012345001230' })], undefined],
  ['no product id', [line({ productId: 'prd_x' })], undefined],
])('counts %s', (_, lines, count) => {
  expect(piecesOf(...lines)).toEqual(count === undefined ? {} : { [GTIN]: count })
})

it('names a product of each store by another hash', () => {
  expect(productHash('st_1', GTIN)).toMatch(/^[0-9a-f]{32}$/)
  expect(productHash('st_1', GTIN)).not.toBe(productHash('st_2', GTIN))
})

it.each<[string, SaleLine[], number | undefined]>([
  ['no piece', [line({ quantity: 2, epcs: [EPC], tagUids: [UID] })], undefined],
  ['the third piece', [line({ quantity: 3, epcs: [EPC], tagUids: [UID] })], 1],
  ['no piece that they take back', [line({ quantity: 2 }), line({ quantity: -2, epcs: [EPC], tagUids: [UID] })], 2],
])('lets pass beside tags of two kinds of two items: %s', (_, lines, count) => {
  expect(Object.fromEntries(piecesWithoutTag({ lines }, ofTwoItems))).toEqual(
    count === undefined ? {} : { [GTIN]: count },
  )
})

it('cancels two pieces that a line names by tags of two kinds', () => {
  const tags = { epcs: [EPC], tagUids: [UID] }
  const lines = [line({ quantity: 3, ...tags }), line({ quantity: -2, ...tags })]
  expect(cameBackAtOnce({ lines }, ofTwoItems)).toEqual([2, 2])
  expect(cameBackAtOnce({ lines })).toEqual([1, 2])
})

it.each<[string, SaleLine[], boolean]>([
  ['a discount under the code of the product', [line(), line({ priceUnit: -90 })], true],
  ['a discount of the whole price', [line(), line({ priceUnit: -990 })], false],
  ['discounts of the whole price', [line(), line({ priceUnit: -495, quantity: 2 })], false],
  ['one of two pieces that is cancelled', [line({ quantity: 2 }), line({ priceUnit: -990 })], true],
  ['a coupon alone', [line({ priceUnit: -90 })], false],
  ['a return', [line({ quantity: -1 })], false],
  ['a gift', [line({ priceUnit: 0 })], true],
  ['empties that are worth more', [line(), EMPTIES], true],
  ['empties of the same amount', [line(), { ...EMPTIES, priceUnit: -990 }], false],
  ['empties of the whole sale’s amount', [line(), line({ priceUnit: 10 }), { ...EMPTIES, priceUnit: -1_000 }], false],
  ['empties alone', [EMPTIES], false],
  [
    'a cheaper piece in exchange',
    [line(), line({ ean: undefined, name: 'Jacke', quantity: -1, priceUnit: 5_000 })],
    true,
  ],
  ['a cancelled line without a code', [line(), line({ ean: undefined, name: 'Storno', quantity: -1 })], false],
])('finds whether goods leave: %s', (_, lines, isSold) => {
  expect(sellsGoods({ lines })).toBe(isSold)
})
