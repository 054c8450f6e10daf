import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkDigit, eanOfGtin14 } from '../../../policy/gs1/gtin.ts'
import { isoDate } from '../../../policy/gs1/gs1-fields.ts'
import { readProductCode } from '../../../policy/gs1/product-code.ts'
import { CODES, NO_CODES, UPC_CODES } from '../../support/product-codes.ts'

const read = (text: string) => {
  const result = readProductCode(text)
  return result.ok ? result.code : result.fault
}
const eanOf = (text: string) => {
  const code = read(text)
  return typeof code === 'string' ? code : eanOfGtin14(code.gtin14)
}

describe('a product code', () => {
  test.each([...CODES, ...UPC_CODES])('$what: $text', ({ text, ean, byHand }) => {
    expect(eanOf(text)).toBe(ean)
    expect(read(text)).toMatchObject({ isExact: byHand !== true })
    // What is stored reads as itself.
    expect(eanOf(ean)).toBe(ean)
  })

  test.each(NO_CODES)('%s is none: %s', (_, text, fault) => expect(read(text)).toBe(fault))

  test('may have a wrong check digit only as 8 or 13 digits without a leading zero', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^\d{7,14}$/), (text) => {
        const code = read(text)
        if (typeof code === 'string') return
        const isSound = checkDigit(code.gtin14.slice(0, -1)) === Number(code.gtin14.at(-1))
        if (!isSound) expect(text).toMatch(/^[1-9](?:\d{7}|\d{12})$/)
        expect(code.isExact || !isSound || text.length < 12).toBe(true)
      }),
    )
    expect(read('4006381333932')).toEqual({ gtin14: '04006381333932', isExact: false })
    expect(read('96385075')).toEqual({ gtin14: '00000096385075', isExact: false })
  })

  test('of a case names its GTIN, which has no EAN', () => {
    expect(read('14006381333938')).toEqual({ gtin14: '14006381333938', isExact: true })
    expect(eanOf('(01)14006381333938')).toBeUndefined()
  })

  test('of eight digits with a leading 1 is an EAN-8, and perhaps a UPC-E', () => {
    // 1 123450 2 is the UPC-E of 1 12000 00345 2. As an EAN-8 its check digit would be 0.
    const [upcE, upcA] = ['11234502', '112000003452']
    expect(read(upcE)).toEqual({ gtin14: `000000${upcE}`, otherGtin14: `00${upcA}`, isExact: true })
    expect(read(`]E0${upcE}`)).toEqual({ gtin14: `00${upcA}`, isExact: true })
    expect(read(`]E4${upcE}`)).toEqual({ gtin14: `000000${upcE}`, isExact: false })
  })

  test('of two dimensions has lot, expiry and serial', () => {
    const unit = { gtin14: '04006381333931', lot: 'LOT1', expiry: '261231', serial: 'S/1', isExact: true }
    for (const text of [
      '(01)04006381333931(17)261231(10)LOT1(21)S/1',
      ']d201040063813339311726123110LOT1\u001d21S/1',
      '01040063813339311726123110LOT1|21S/1',
      'https://brand.example/01/04006381333931/10/LOT1/21/S%2F1?17=261231&s=x',
      'https://brand.example/gtin/4006381333931/lot/LOT1/ser/S%2F1?exp=261231#top',
    ])
      expect(read(text)).toEqual(unit)
    expect(read('(01)04006381333931(17)261331(10)A B')).toEqual({ gtin14: '04006381333931', isExact: true })
  })

  test('is read without throwing from any text', () => {
    fc.assert(fc.property(fc.string({ maxLength: 600, unit: 'binary' }), (text) => void readProductCode(text)))
  })
})

test.each([
  ['261231', 2026, '2026-12-31'],
  ['260200', 2026, '2026-02-28'],
  ['280200', 2026, '2028-02-29'],
  ['260230', 2026, undefined],
  ['261300', 2026, undefined],
  // GS1 General Specifications §7.12: 51 to 99 years ahead are the past century, 50 and more behind are the next.
  ['770101', 2026, '1977-01-01'],
  ['760101', 2026, '2076-01-01'],
  ['010101', 2051, '2101-01-01'],
] as const)('GS1 date %s in %i', (text, year, iso) => expect(isoDate(text, year)).toBe(iso))
