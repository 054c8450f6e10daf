import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { checkDigit, eanOfGtin14, hasValidCheckDigit, toGtin14 } from '../../../policy/gs1/gtin.ts'

describe('checkDigit', () => {
  // GS1 General Specifications §7.9 (13 and 18 digits) and barcodes printed in TDS and ISBN examples.
  test.each([
    ['629104150021', 3],
    ['37610425002123456', 9],
    ['9501093', 9],
    ['978030640615', 7],
    ['03600029145', 2],
    ['8061414112345', 8],
    ['0000000000000', 0],
  ])('%s → %i', (digits, expected) => expect(checkDigit(digits)).toBe(expected))

  test('detects every single wrong digit', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^\d{12}$/), fc.nat(11), fc.integer({ min: 1, max: 9 }), (digits, at, by) => {
        const wrong = digits.slice(0, at) + ((Number(digits[at]) + by) % 10) + digits.slice(at + 1)
        expect(checkDigit(wrong)).not.toBe(checkDigit(digits))
      }),
    )
  })

  test('throws for characters other than digits', () => {
    expect(() => checkDigit('12a4')).toThrow(/digits/)
  })
})

test('hasValidCheckDigit requires 8, 12, 13 or 14 digits and a correct last one', () => {
  for (const good of ['95010939', '036000291452', '6291041500213', '80614141123458'])
    expect(hasValidCheckDigit(good)).toBe(true)
  for (const bad of [
    '95010938',
    '6291041500212',
    '',
    '0',
    '00',
    '629104150021',
    '62910415002131',
    '6291041500213 ',
    '６291041500213',
  ]) {
    expect(hasValidCheckDigit(bad)).toBe(false)
  }
})

describe('GTIN-14 and EAN', () => {
  test.each([
    ['95010939', '00000095010939', '95010939'],
    ['036000291452', '00036000291452', '0036000291452'],
    ['4006381333931', '04006381333931', '4006381333931'],
    ['04006381333931', '04006381333931', '4006381333931'],
    ['4006381333930', '04006381333930', '4006381333930'], // wrong check digit, accepted
  ])('%s → %s → %s', (gtin, gtin14, ean) => {
    expect(toGtin14(gtin)).toBe(gtin14)
    expect(eanOfGtin14(gtin14)).toBe(ean)
  })

  test('a case of goods has no EAN', () => expect(eanOfGtin14('80614141123458')).toBeUndefined())

  test('reject other lengths and characters', () => {
    const lengths = ['', '1234567', '123456789', '12345678901', '123456789012345']
    for (const bad of [...lengths, '400638133393X', '4006381333931\n', '-4006381333931']) {
      expect(toGtin14(bad)).toBeUndefined()
      expect(eanOfGtin14(bad)).toBeUndefined()
    }
    expect(eanOfGtin14('4006381333931')).toBeUndefined()
  })

  test('convert into each other for units that shops sell', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^(?:[1-9]\d{7}|[1-9]\d{12})$/), (ean) => {
        expect(eanOfGtin14(toGtin14(ean)!)).toBe(ean)
      }),
    )
  })
})
