import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lineCodec, MAX_LINE_BYTES } from '../../device-drivers/scanner/protocol/lines.ts'
import type { LineOptions, ScannerSuffix } from '../../device-drivers/scanner/protocol/lines.ts'
import { splitSymbology } from '../../policy/gs1/symbology.ts'
import { seededRandom } from '../verification/simulation/virtual/virtual-platform.ts'
import { chopped, concat } from './pieces.ts'

const SUFFIXES: ScannerSuffix[] = ['any', 'CR', 'LF', 'CRLF', 'TAB']
const bytes = (text: string) => new TextEncoder().encode(text)
const make = (options: Partial<LineOptions> = {}) =>
  lineCodec({ suffix: 'any', stx: false, silenceEndsLine: false, ...options })

const printable = fc
  .string({ minLength: 1, maxLength: 200, unit: 'grapheme' })
  .filter((text) => !/[\p{Cc}\ufffd]/u.test(text))

describe('lines', () => {
  test('decodes what it encoded with every suffix, with and without STX, in any chunks', () => {
    const suffix = fc.constantFrom(...SUFFIXES)
    fc.assert(
      fc.property(
        suffix,
        fc.boolean(),
        fc.array(printable, { maxLength: 5 }),
        fc.integer({ min: 1, max: 50 }),
        (end, stx, lines, size) => {
          const codec = make({ suffix: end, stx })
          const sent = concat(lines.map((line) => codec.encode(line)))
          expect(chopped(sent, size).flatMap((chunk) => codec.push(chunk))).toEqual(lines)
          expect([codec.held, codec.silence(), codec.takeNoise()]).toEqual([0, [], null])
        },
      ),
    )
  })

  test('takes CR, LF and CRLF as one line end by default, and ignores empty lines', () => {
    expect(make().push(bytes('A\rB\nC\r\n\r\n\r\nD\r'))).toEqual(['A', 'B', 'C', 'D'])
  })

  test('removes control characters, but not the GS of GS1 element strings', () => {
    expect(make().push(bytes('\u0000\u001b01\u001d04\u00079501\u007f\u0085\r'))).toEqual(['01\u001d049501'])
  })

  test('takes bytes outside STX and ETX as noise, but not a suffix after ETX', () => {
    const codec = make({ stx: true })
    expect(codec.push(bytes('junk\u0002ONE\u0003\r\n\u0002half\u0002TWO\u0003'))).toEqual(['ONE', 'TWO'])
    expect(codec.takeNoise()).toMatchObject({ bytes: 8, detail: 'a text without ETX; set "stx": false' })
  })

  test('ends a line at a pause if configured', () => {
    const codec = make({ silenceEndsLine: true })
    expect(codec.push(bytes('4006381333931'))).toEqual([])
    expect(codec.silence()).toEqual(['4006381333931'])
    expect(codec.silence()).toEqual([])
  })

  test('discards and reports an incomplete line, which does not run into the next one', () => {
    const codec = make({ suffix: 'CR' })
    codec.push(bytes('40063'))
    expect(codec.silence()).toEqual([])
    expect(codec.takeNoise()).toMatchObject({ bytes: 5 })
    expect(codec.push(bytes('4006381333931\r'))).toEqual(['4006381333931'])
  })

  test('ignores the LF of a scanner that is set to CR', () => {
    const codec = make({ suffix: 'CR' })
    expect(codec.push(bytes('A\r\n'))).toEqual(['A'])
    codec.silence()
    expect(codec.takeNoise()).toBeNull()
  })

  test.each(SUFFIXES)('accepts the longest line, and discards and reports one byte more (%s)', (suffix) => {
    const codec = make({ suffix })
    const longest = 'x'.repeat(MAX_LINE_BYTES)
    expect(codec.push(codec.encode(longest))).toEqual([longest])
    expect(codec.push(codec.encode(`${longest}y`))).toEqual([])
    expect(codec.takeNoise()?.bytes).toBeGreaterThan(MAX_LINE_BYTES)
    expect(codec.push(codec.encode('next'))).toEqual(['next'])
  })

  test('buffers at most one line over 250,000 random chunks, and finds all valid lines', () => {
    const random = seededRandom(9)
    const codec = make({ suffix: 'CR' })
    const noise = Array.from({ length: 97 }, (_, i) =>
      random.bytes(1 + (i % 29)).map((byte) => (byte === 0x0d ? 0x20 : byte)),
    )
    const good = codec.encode('GOOD')
    let found = 0
    let most = 0
    for (let i = 0; i < 250_000; i++) {
      codec.push(noise[i % noise.length] as Uint8Array)
      if (i % 1_000 === 999) {
        codec.silence()
        found += codec.push(good).filter((line) => line === 'GOOD').length
      }
      most = Math.max(most, codec.held)
    }
    expect(found).toBe(250)
    expect(most).toBeLessThanOrEqual(MAX_LINE_BYTES)
  })
})

describe('AIM identifiers', () => {
  test.each([
    [']E04006381333931', 'ean-13', '4006381333931'],
    [']E496385074', 'ean-8', '96385074'],
    [']C10109501101530003', 'gs1-128', '0109501101530003'],
    [']C0ABC', 'code-128', 'ABC'],
    [']d2010950110153000321A', 'gs1-data-matrix', '010950110153000321A'],
    [']d1X', 'data-matrix', 'X'],
    [']Q1HTTPS://EXAMPLE.COM/R/ABC', 'qr', 'HTTPS://EXAMPLE.COM/R/ABC'],
    [']Q301', 'gs1-qr', '01'],
    [']e001', 'gs1-databar', '01'],
    [']L2P', 'pdf417', 'P'],
    [']z0Z', 'aztec', 'Z'],
  ])('%s', (line, symbology, text) => {
    expect(splitSymbology(line)).toEqual({ text, symbology })
  })

  test.each([']X0', ']J1', ']S0', ']X1'])('removes %j, which has no name', (identifier) => {
    expect(splitSymbology(`${identifier}text`)).toEqual({ text: 'text' })
  })

  test.each(['4006381333931', ']', ']Q', ']?1x', 'a]Q1', '] Q1'])('leaves %j unchanged', (line) => {
    expect(splitSymbology(line)).toEqual({ text: line })
  })
})
