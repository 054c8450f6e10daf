import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { epcUri, parseEpc } from '../../../policy/gs1/epc.ts'
import { escapeSerial, encodeSgtin } from '../../../policy/gs1/sgtin.ts'
import { anySgtin } from './arbitraries.ts'
import { VECTORS } from './vectors.ts'

describe('published encodings', () => {
  test.each(VECTORS)('$uri ($source)', ({ hex, uri, gtin14, serial }) => {
    const parsed = { hex, scheme: uri.split(':')[3], gtin14, serial }
    expect(parseEpc(hex)).toEqual(parsed)
    expect(parseEpc(hex.toLowerCase())).toEqual(parsed)
    expect(parseEpc(uri)).toEqual(parsed)
    expect(epcUri(hex)).toBe(uri)
  })
})

describe('pure identity URI', () => {
  test.each([
    // pyepc test_sgtin: the tag URI of this identity is urn:epc:tag:sgtin-96:1.0614141.812345.0
    ['urn:epc:id:sgtin:0614141.812345.0', 'urn:epc:tag:sgtin-96:1.0614141.812345.0'],
    ['urn:epc:id:sgtin:0614141.812345.274877906943', 'urn:epc:tag:sgtin-96:1.0614141.812345.274877906943'],
    ['urn:epc:id:sgtin:0614141.812345.274877906944', 'urn:epc:tag:sgtin-198:1.0614141.812345.274877906944'],
    ['urn:epc:id:sgtin:0614141.812345.001', 'urn:epc:tag:sgtin-198:1.0614141.812345.001'],
    ['urn:epc:id:sgtin:95060001343.05.32a%2Fb', 'urn:epc:tag:sgtin-198:1.95060001343.05.32a%2Fb'],
    ['urn:epc:id:sgtin:95060001343.05.32a%2fb', 'urn:epc:tag:sgtin-198:1.95060001343.05.32a%2Fb'],
    ['urn:epc:id:sgtin:0614141.812345.a.b.', 'urn:epc:tag:sgtin-198:1.0614141.812345.a.b.'],
  ])('%s', (identity, tag) => {
    const parsed = parseEpc(identity)
    expect(parsed).toBeDefined()
    expect(parsed).toEqual(parseEpc(tag))
    expect(epcUri(parsed!.hex)).toBe(tag)
  })
})

test.each(['sgtin-96', 'sgtin-198'] as const)('parses hex and URI of any %s to the same EPC', (scheme) => {
  fc.assert(
    fc.property(anySgtin(scheme), (sgtin) => {
      const encoded = encodeSgtin(sgtin)
      if (!encoded.ok) throw new Error(encoded.reason)
      const uri = epcUri(encoded.hex)!
      expect(uri).toMatch(/^[!%'-.0-;=A-Z_a-z]+$/)
      expect(parseEpc(uri)).toEqual(parseEpc(encoded.hex))
      const identity = `urn:epc:id:sgtin:${sgtin.companyPrefix}.${sgtin.itemReference}.${escapeSerial(sgtin.serial)}`
      expect(parseEpc(identity)).toMatchObject({ serial: sgtin.serial, gtin14: parseEpc(uri)!.gtin14 })
    }),
    { numRuns: 1000 },
  )
})

describe('parseEpc accepts other hex as an opaque tag', () => {
  test.each([
    ['an SGTIN+ with a wrong check digit', 'F73795211411234548566CB0AFC4'],
    ['a GID-96', '3500E86F8000A9E000000586'],
    ['a tag identification', 'E2801160600002054A5B1234'],
    ['one word', '3000'],
    ['a cut-off SGTIN-96', '3074257BF7194E400000'],
    ['an SGTIN-96 with a word more', '3074257BF7194E4000001A850000'],
    ['an SGTIN-96 of partition 7', '307C257BF7194E4000001A85'],
    ['an SGTIN-198 with padding set', '3666C4409047E159B2C2BF100000000000000000000000000001'],
    ['31 words', 'ABCD'.repeat(31)],
  ])('%s', (_, hex) => {
    expect(parseEpc(hex)).toEqual({ hex, scheme: 'other' })
    expect(parseEpc(hex.toLowerCase())).toEqual({ hex, scheme: 'other' })
    expect(epcUri(hex)).toBeUndefined()
  })
})

describe('parseEpc rejects', () => {
  test.each([
    '',
    '30',
    '300',
    '30742',
    'ABCD'.repeat(32),
    '3074 257B',
    ' 3074',
    '3074\n',
    '0x3074',
    '30-74',
    '307G',
    'ﬀﬀ',
    '３０７４',
    'EPC1',
    'urn:epc:tag:sgtin-96:3.0614141.812345', // no serial
    'urn:epc:tag:sgtin-96:3.0614141.812345.',
    'urn:epc:tag:sgtin-96:8.0614141.812345.1',
    'urn:epc:tag:sgtin-96:03.0614141.812345.1',
    'urn:epc:tag:sgtin-96:3.06141.81234567.1',
    'urn:epc:tag:sgtin-96:3.0614141.81234.1',
    'urn:epc:tag:sgtin-96:3.0614141.8123456.1',
    'urn:epc:tag:sgtin-96:3.0614141.812345.01',
    'urn:epc:tag:sgtin-96:3.0614141.812345.274877906944',
    'urn:epc:tag:sgtin-96:3.0614141.812345.%31',
    'urn:epc:tag:sgtin-64:3.0614141.812345.1',
    'urn:epc:tag:sscc-96:3.0614141.1234567890',
    'urn:epc:tag:sgtin-198:3.0614141.812345.a/b', // the slash must be escaped
    'urn:epc:tag:sgtin-198:3.0614141.812345.%41', // escapes a character that needs no escape
    'urn:epc:tag:sgtin-198:3.0614141.812345.%2',
    'urn:epc:tag:sgtin-198:3.0614141.812345.a%20b',
    'urn:epc:tag:sgtin-198:3.0614141.812345.xxxxxxxxxxxxxxxxxxxxx', // 21
    'urn:epc:tag:sgtin-198:3.0614141.812345.a\n',
    'urn:epc:id:sgtin:3.0614141.812345.1',
    'urn:epc:idpat:sgtin:0614141.812345.*',
    'URN:EPC:ID:SGTIN:0614141.812345.1',
  ])('%j', (text) => expect(parseEpc(text)).toBeUndefined())

  test('any other text without throwing, or returns whole words of upper-case hex', () => {
    const nearly = fc.stringMatching(/^urn:epc:(?:id:sgtin|tag:sgtin-(?:96|198)):[0-9.%A-Fa-z]{0,40}$/)
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[0-9A-Fa-f]{0,130}$/), nearly),
        (text) => {
          const hex = parseEpc(text)?.hex
          if (hex !== undefined) expect(hex).toMatch(/^(?:[0-9A-F]{4}){1,31}$/)
          epcUri(text)
        },
      ),
      { numRuns: 3000 },
    )
  })
})
