import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseDigitalLink } from '../../../policy/gs1/product-code.ts'
import { parseElementString } from '../../../policy/gs1/element-string.ts'
import { checkDigit } from '../../../policy/gs1/gtin.ts'

const GS = '\u001d'
const gtins = fc.stringMatching(/^\d{13}$/).map((digits) => digits + checkDigit(digits))
const serials = fc.stringMatching(/^[!"%-?A-Z_a-z]{1,20}$/)
const lots = fc.stringMatching(/^[A-Z0-9]{1,20}$/)
const dates = fc.stringMatching(/^\d\d(?:0[1-9]|1[0-2])[0-2]\d$/)

describe('element strings', () => {
  // GTINs from examples of GS1 (Dal Giardino). The element strings come from public converters of Digital Links.
  test.each([
    ['0109506000134352', { gtin14: '09506000134352' }],
    [`${GS}0109506000134352`, { gtin14: '09506000134352' }],
    [`010541234500001310ABC123${GS}22AJY3095721P49`, { gtin14: '05412345000013', lot: 'ABC123' }],
    [
      `01095060001343521721042610ABC${GS}2112345`,
      { gtin14: '09506000134352', lot: 'ABC', expiry: '210426', serial: '12345' },
    ],
    [`21A/b${GS}0109506000134352`, { gtin14: '09506000134352', serial: 'A/b' }],
    [`0109506000134352310300019510X`, { gtin14: '09506000134352', lot: 'X' }],
    [`0109506000134352240ABC${GS}8008210426`, { gtin14: '09506000134352' }],
    // Prices and discounts, 390n to 395n.
    ['0109506000134352310300123439220299', { gtin14: '09506000134352' }],
    ['010950600013435239222990', { gtin14: '09506000134352' }],
    [`01095060001343523932978599${GS}21ABC`, { gtin14: '09506000134352', serial: 'ABC' }],
    [`0109506000134352394020${GS}39501234`, { gtin14: '09506000134352' }],
  ])('%j', (text, item) => expect(parseElementString(text)).toEqual(item))

  test.each([
    '',
    GS,
    '4006381333931',
    '96385074',
    '0109506000134353',
    '010950600013435',
    '01095060001343521',
    '0109506000134352XX',
    '00123456789012345678',
    `0109506000134352${GS}${GS}`,
    '3074257BF7194E4000001A85',
    '303400000000000000000001',
    '0109506000134352'.padEnd(600, '9'),
  ])('%j is none', (text) => expect(parseElementString(text)).toBeUndefined())

  test('parses the printed form with brackets, and the GTIN alone where fields run into each other', () => {
    expect(parseElementString('(01)09506000134352')).toEqual({ gtin14: '09506000134352' })
    expect(parseElementString('(01)09506000134352(17)261231(10)L(1)(21)S')).toEqual({
      gtin14: '09506000134352',
      lot: 'L(1)',
      expiry: '261231',
      serial: 'S',
    })
    expect(parseElementString('010950600013435221xxxxxxxxxxxxxxxxxxxxx')).toEqual({ gtin14: '09506000134352' })
  })

  test('finds GTIN and serial in any order among other fields', () => {
    fc.assert(
      fc.property(gtins, serials, lots, dates, fc.integer({ min: 0, max: 5 }), (gtin14, serial, lot, date, turn) => {
        const fields = [`01${gtin14}`, `17${date}`, `21${serial}${GS}`, `10${lot}${GS}`]
        const turned = [...fields.slice(turn % 4), ...fields.slice(0, turn % 4)]
          .join('')
          .replace(new RegExp(`${GS}$`), '')
        expect(parseElementString(turned)).toEqual({ gtin14, lot, expiry: date, serial })
      }),
    )
  })

  test('handles any text without throwing or slow matching', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 600 }), (text) => void [parseElementString(text), parseDigitalLink(text)]),
    )
    for (const filler of ['21', GS, '01', '/01/', 'a/'])
      expect(parseDigitalLink(`https://x/${filler.repeat(20_000)}`)).toBeUndefined()
  })
})

describe('Digital Links', () => {
  test.each([
    ['https://id.gs1.org/01/09506000134352', { gtin14: '09506000134352' }],
    ['https://id.gs1.org/gtin/9506000134352', { gtin14: '09506000134352' }],
    ['https://example.com/01/04012345111118/21/987?15=211231', { gtin14: '04012345111118', serial: '987' }],
    ['HTTPS://ID.GS1.ORG/01/09506000134352/21/ABC', { gtin14: '09506000134352', serial: 'ABC' }],
    [
      'https://id.gs1.org/01/614141123452/lot/ABC1/ser/12345?exp=180426',
      { gtin14: '00614141123452', lot: 'ABC1', expiry: '180426', serial: '12345' },
    ],
    [
      'https://shop.example/some/path/01/09506000134352/10/A%2FB/21/32a%2Fb',
      { gtin14: '09506000134352', lot: 'A/B', serial: '32a/b' },
    ],
    ['https://id.gs1.org/01/09506000134352/10/21/21/ABC', { gtin14: '09506000134352', lot: '21', serial: 'ABC' }],
    ['https://id.gs1.org/01/09506000134352/10/21', { gtin14: '09506000134352', lot: '21' }],
    ['https://id.gs1.org/01/09506000134352/21/A%00', { gtin14: '09506000134352' }],
    ['https://id.gs1.org/01/05412345000013/22/AJY3095721P49/10/ABC123', { gtin14: '05412345000013', lot: 'ABC123' }],
  ])('%s', (text, item) => expect(parseDigitalLink(text)).toEqual(item))

  test.each([
    'https://id.gs1.org/00/106141412345678908',
    'https://id.gs1.org/01/09506000134353',
    'https://example.com/',
    'ftp://x/01/09506000134352',
    '0109506000134352',
    'https://id.gs1.org/01/123',
  ])('%s is none', (text) => expect(parseDigitalLink(text)).toBeUndefined())
})
