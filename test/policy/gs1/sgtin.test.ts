import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toGtin14 } from '../../../policy/gs1/gtin.ts'
import { decodeSgtin, encodeSgtin, splitGtin14, type Sgtin } from '../../../policy/gs1/sgtin.ts'
import { anySgtin, SET_82 } from './arbitraries.ts'
import { VECTORS } from './vectors.ts'

const SCHEMES = ['sgtin-96', 'sgtin-198'] as const
const HEX_96 = '3074257BF7194E4000001A85'
const HEX_198 = '3666C4409047E159B2C2BF100000000000000000000000000000'
const ITEM: Sgtin = { scheme: 'sgtin-96', filter: 3, companyPrefix: '0614141', itemReference: '812345', serial: '6789' }

/** Writes an SGTIN-96 or -198 bit by bit from raw field values, which may be out of range. */
function rawHex(
  header: number,
  partition: number,
  prefixBits: number,
  prefix: number,
  item: number,
  serial: string,
): string {
  const bin = (value: number, count: number) => value.toString(2).padStart(count, '0')
  const bits =
    bin(header, 8) + '001' + bin(partition, 3) + bin(prefix, prefixBits) + bin(item, 44 - prefixBits) + serial
  return bits
    .match(/.{4}/g)!
    .map((nibble) => Number.parseInt(nibble, 2).toString(16))
    .join('')
    .toUpperCase()
}
const raw96 = (partition: number, prefixBits: number, prefix: number, item: number) =>
  rawHex(0x30, partition, prefixBits, prefix, item, '1'.padStart(38, '0'))
const raw198 = (codes: number[], padding = '0000000000') =>
  rawHex(
    0x36,
    5,
    24,
    614141,
    12345,
    codes
      .map((c) => c.toString(2).padStart(7, '0'))
      .join('')
      .padEnd(140, '0') + padding,
  )

describe('published encodings', () => {
  test.each(VECTORS)('$uri ($source)', ({ hex, uri, gtin14, serial }) => {
    const decoded = decodeSgtin(hex)
    if (!decoded.ok) throw new Error(decoded.reason)
    expect(decoded.sgtin).toMatchObject({ gtin14, serial })
    expect(uri).toContain(
      `${decoded.sgtin.scheme}:${decoded.sgtin.filter}.${decoded.sgtin.companyPrefix}.${decoded.sgtin.itemReference}.`,
    )
    expect(encodeSgtin(decoded.sgtin)).toEqual({ ok: true, hex })
    expect(decodeSgtin(hex.toLowerCase())).toEqual(decoded)
  })
})

describe.each(SCHEMES)('%s', (scheme) => {
  test('decodes what it encodes', () => {
    fc.assert(
      fc.property(anySgtin(scheme), (sgtin) => {
        const encoded = encodeSgtin(sgtin)
        if (!encoded.ok) throw new Error(encoded.reason)
        expect(encoded.hex).toMatch(scheme === 'sgtin-96' ? /^30[0-9A-F]{22}$/ : /^36[0-9A-F]{50}$/)
        expect(decodeSgtin(encoded.hex)).toMatchObject({ ok: true, sgtin })
      }),
      { numRuns: 2000 },
    )
  })

  test('decodes only the hex that encodeSgtin writes', () => {
    const header = scheme === 'sgtin-96' ? '30' : '36'
    const length = scheme === 'sgtin-96' ? 22 : 50
    const anyHex = fc.oneof(
      fc
        .string({ unit: fc.constantFrom(...'0123456789ABCDEF'), minLength: length, maxLength: length })
        .map((rest) => header + rest),
      // Differs from a valid tag in one bit. Most of these are still valid.
      fc.tuple(anySgtin(scheme), fc.nat(length * 4 - 1)).map(([sgtin, bit]) => {
        const encoded = encodeSgtin(sgtin)
        return encoded.ok ? flip(encoded.hex, bit + 8) : ''
      }),
    )
    fc.assert(
      fc.property(anyHex, (hex) => {
        const decoded = decodeSgtin(hex)
        if (decoded.ok) expect(encodeSgtin(decoded.sgtin)).toEqual({ ok: true, hex })
      }),
      { numRuns: 4000 },
    )
  })
})

describe('decodeSgtin rejects', () => {
  test.each([
    ['nothing', '', 'not_hex'],
    ['a header alone', '30', 'length'],
    ['a cut-off tag', HEX_96.slice(0, -4), 'length'],
    ['one digit too few', HEX_96.slice(0, -1), 'length'],
    ['one word too many', `${HEX_96}0000`, 'length'],
    ['198 bits without the last word', HEX_198.slice(0, -4), 'length'],
    ['198 bits in 25 bytes', HEX_198.slice(0, -2), 'length'],
    ['198 bits and a word', `${HEX_198}0000`, 'length'],
    ['a megabyte', '30'.repeat(500_000), 'length'],
    ['a letter', HEX_96.replace('F', 'G'), 'not_hex'],
    ['a space', HEX_96.replace('F', ' '), 'not_hex'],
    ['a sign', '30-4257BF7194E4000001A85', 'not_hex'],
    ['0x', `0x${HEX_96}`, 'not_hex'],
    ['an SSCC', '3178E61C883950F59A000000', 'header'],
    ['partition 7', raw96(7, 20, 1, 1), 'partition'],
    ['a company prefix of 13 digits', raw96(0, 40, 1e12, 1), 'company_prefix'],
    ['a company prefix of 8 digits in partition 5', raw96(5, 24, 1e7, 1), 'company_prefix'],
    ['a company prefix of 7 digits in partition 6', raw96(6, 20, 1e6, 1), 'company_prefix'],
    ['an item reference of 2 digits in partition 0', raw96(0, 40, 1, 10), 'item_reference'],
    ['an item reference of 7 digits in partition 5', raw96(5, 24, 1, 1e6), 'item_reference'],
    ['no serial', raw198([]), 'serial'],
    ['a serial that begins with zeros', raw198([0, 65]), 'serial'],
    ['a gap in the serial', raw198([65, 0, 66]), 'serial'],
    ['a character behind the last zero', raw198([65, ...Array<number>(18).fill(0), 66]), 'serial'],
    ['a space in the serial', raw198([65, 32]), 'serial'],
    ['a # in the serial', raw198([35]), 'serial'],
    ['a control character in the serial', raw198([127]), 'serial'],
    ['the first padding bit set', raw198([65], '1000000000'), 'padding'],
    ['the last padding bit set', raw198([65], '0000000001'), 'padding'],
  ])('%s', (_, hex, reason) => expect(decodeSgtin(hex)).toEqual({ ok: false, reason }))

  test('any text without throwing', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^3[06][0-9A-Fa-f]{20,52}$/)), (text) => {
        expect(typeof decodeSgtin(text).ok).toBe('boolean')
      }),
      { numRuns: 2000 },
    )
  })
})

describe('the test builder of raw fields', () => {
  test('covers the largest values that fit', () => {
    expect(decodeSgtin(raw96(0, 40, 1e12 - 1, 9))).toMatchObject({
      ok: true,
      sgtin: { companyPrefix: '999999999999', itemReference: '9' },
    })
    expect(decodeSgtin(raw96(6, 20, 999_999, 9_999_999))).toMatchObject({
      ok: true,
      sgtin: { companyPrefix: '999999' },
    })
    expect(decodeSgtin(raw198(Array<number>(20).fill(122)))).toMatchObject({
      ok: true,
      sgtin: { serial: 'z'.repeat(20) },
    })
  })
})

describe('encodeSgtin rejects', () => {
  test.each<[string, Partial<Sgtin>, string]>([
    ['filter 8', { filter: 8 }, 'filter'],
    ['filter −1', { filter: -1 }, 'filter'],
    ['filter 1.5', { filter: 1.5 }, 'filter'],
    ['filter NaN', { filter: Number.NaN }, 'filter'],
    ['a company prefix of 5 digits', { companyPrefix: '06141', itemReference: '81234567' }, 'company_prefix'],
    ['a company prefix of 13 digits', { companyPrefix: '0614141000000', itemReference: '' }, 'company_prefix'],
    ['a letter in the company prefix', { companyPrefix: '061414A' }, 'company_prefix'],
    ['an item reference too short', { itemReference: '12345' }, 'item_reference'],
    ['an item reference too long', { itemReference: '0812345' }, 'item_reference'],
    ['a sign in the item reference', { itemReference: '-12345' }, 'item_reference'],
    ['serial 2^38', { serial: String(2 ** 38) }, 'serial'],
    ['a serial with a leading zero', { serial: '06789' }, 'serial'],
    ['serial 00', { serial: '00' }, 'serial'],
    ['no serial', { serial: '' }, 'serial'],
    ['a serial in hex', { serial: '0x1f' }, 'serial'],
    ['a letter in a 96-bit serial', { serial: '67a' }, 'serial'],
    ['a huge serial', { serial: '9'.repeat(400) }, 'serial'],
    ['no 198-bit serial', { scheme: 'sgtin-198', serial: '' }, 'serial'],
    ['21 characters', { scheme: 'sgtin-198', serial: 'x'.repeat(21) }, 'serial'],
    ['an umlaut', { scheme: 'sgtin-198', serial: 'ä' }, 'serial'],
    ['a line end', { scheme: 'sgtin-198', serial: 'a\n' }, 'serial'],
  ])('%s', (_, change, reason) => expect(encodeSgtin({ ...ITEM, ...change })).toEqual({ ok: false, reason }))

  test('every ASCII character outside set 82, and accepts all 82', () => {
    expect(new Set(SET_82).size).toBe(82)
    for (let code = 0; code < 128; code++) {
      const serial = String.fromCharCode(code)
      expect(encodeSgtin({ ...ITEM, scheme: 'sgtin-198', serial }).ok, JSON.stringify(serial)).toBe(
        SET_82.includes(serial),
      )
    }
  })
})

describe('splitGtin14', () => {
  test('splits by the length of the owner’s prefix', () => {
    expect(splitGtin14('80614141123458', 7)).toEqual({ companyPrefix: '0614141', itemReference: '812345' })
    expect(splitGtin14(toGtin14('95010939')!, 8)).toEqual({ companyPrefix: '00000950', itemReference: '01093' })
    expect(splitGtin14('00846632286210', 12)).toEqual({ companyPrefix: '084663228621', itemReference: '0' })
  })

  test('rejects other prefix lengths, other numbers and a wrong check digit', () => {
    for (const length of [5, 13, 7.5, Number.NaN]) expect(splitGtin14('80614141123458', length)).toBeUndefined()
    for (const gtin of ['80614141123459', '614141123452', '8061414112345X', ''])
      expect(splitGtin14(gtin, 7)).toBeUndefined()
  })

  test('keeps the GTIN when it is encoded and decoded', () => {
    fc.assert(
      fc.property(anySgtin('sgtin-96'), (sgtin) => {
        const encoded = encodeSgtin(sgtin)
        const decoded = encoded.ok ? decodeSgtin(encoded.hex) : encoded
        if (!decoded.ok) throw new Error(decoded.reason)
        const { companyPrefix, itemReference } = sgtin
        expect(splitGtin14(decoded.sgtin.gtin14, companyPrefix.length)).toEqual({ companyPrefix, itemReference })
      }),
    )
  })
})

function flip(hex: string, bit: number): string {
  const at = bit >> 2
  const nibble = Number.parseInt(hex[at]!, 16) ^ (8 >> (bit & 3))
  return hex.slice(0, at) + nibble.toString(16).toUpperCase() + hex.slice(at + 1)
}
