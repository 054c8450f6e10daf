import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { GatePolicy, tagOwnerOf } from '../../../policy/store-policy.ts'
import { isUnprogrammed, parseEpc } from '../../../policy/gs1/epc.ts'
import { decodeEpc } from '../../../policy/gs1/epc-schemes.ts'

/** The examples of GS1 TDS 2.3, section E.3: scheme, EPC, and the path of its GS1 Digital Link. */
const E3: readonly (readonly [scheme: string, hex: string, link: string])[] = [
  ['sgtin-96', '3066C4409047E140075BCD15', '/01/09506000134352/21/123456789'],
  ['sgtin-198', '3666C4409047E159B2C2BF100000000000000000000000000000', '/01/09506000134352/21/32a/b'],
  ['sgtin+', 'F73795211411234538566CB0AFC4', '/01/79521141123453/21/32a/b'],
  ['dsgtin+', 'FB342CDE795211411234538566CB0AFC4', '/01/79521141123453/21/32a/b/17/220630'],
  ['sgtin++', 'FD3795211411234538566CB0AFC525065F1876F0D996D800', '/01/79521141123453/21/32a/b'],
  ['dsgtin++', 'FC342CDE795211411234538566CB0AFC525065F1876F0D996D80', '/01/79521141123453/21/32a/b/17/220630'],
  ['sscc-96', '311BA1B300CE0A6A83000000', '/00/095201234567891235'],
  ['sscc+', 'F90095201234567891235', '/00/095201234567891235'],
  // The standard prints the header of SSCC+ (F9) in its example of SSCC++, against its table 14-1.
  ['sscc++', 'EF009520123456789123592832F8C3B786CCB6C0', '/00/095201234567891235'],
  ['sgln-96', '3276451FD46072000000162E', '/414/9521141123454/254/5678'],
  ['sgln-195', '3976451FD46072CD9615F8800000000000000000000000000000', '/414/9521141123454/254/32a/b'],
  ['sgln+', 'F2395211411234548566CB0AFC4', '/414/9521141123454/254/32a/b'],
  ['sgln++', 'E9395211411234548566CB0AFC525065F1876F0D996D8000', '/414/9521141123454/254/32a/b'],
  ['grai-96', '3376451FD40C0E400000162E', '/8003/095211411234545678'],
  ['grai-170', '3776451FD40C0E59B2C2BF1000000000000000000000', '/8003/0952114112345432a/b'],
  ['grai+', 'F13095211411234548566CB0AFC4', '/8003/0952114112345432a/b'],
  ['grai++', 'EB3095211411234548566CB0AFC525065F1876F0D996D800', '/8003/0952114112345432a/b'],
  ['giai-96', '3476451FD40000000000162E', '/8004/95211415678'],
  ['giai-202', '3876451FD59B2C2BF10000000000000000000000000000000000', '/8004/952114132a/b'],
  ['giai+', 'FA3952114132E83C2BF10', '/8004/952114132a/b'],
  ['giai++', 'EE3952114132E83C2BF1494197C61DBC3665B600', '/8004/952114132a/b'],
  ['gsrn-96', '2D76451FD4499602D2000000', '/8018/952114112345678906'],
  ['gsrn+', 'F43952114112345678906', '/8018/952114112345678906'],
  ['gsrn++', 'E7395211411234567890692832F8C3B786CCB6C0', '/8018/952114112345678906'],
  ['gsrnp-96', '2E76451FD4499602D2000000', '/8017/952114112345678906'],
  ['gsrnp+', 'F53952114112345678906', '/8017/952114112345678906'],
  ['gsrnp++', 'E8395211411234567890692832F8C3B786CCB6C0', '/8017/952114112345678906'],
  ['gdti-96', '2C76451FD46072000000162E', '/253/95211411234545678'],
  ['gdti-174', '3E76451FD7039B061438997367D0C18B266D1AB66EE0', '/253/9521141987650ABCDefgh012345678'],
  ['gdti+', 'F6395211411234540458B8', '/253/95211411234545678'],
  ['gdti++', 'EA395211411234540458BA4A0CBE30EDE1B32DB0', '/253/95211411234545678'],
  ['cpi-96', '3C76451FD400C0E680003039', '/8010/952114198765/8011/12345'],
  ['cpi-var', '3D76451FD75411DEF6B4CC00000003039000', '/8010/95211415PQ7/Z43/8011/12345'],
  ['cpi+', 'F0395211415E87A145BAFB4D19A8C0E4', '/8010/95211415PQ7/Z43/8011/12345'],
  ['cpi++', 'E6395211415E87A145BAFB4D19A8C0E64A0CBE30EDE1B32DB000', '/8010/95211415PQ7/Z43/8011/12345'],
  ['sgcn-96', '3F76451FD612640000019907', '/255/952114167890904711'],
  ['sgcn+', 'F839521141678909509338', '/255/952114167890904711'],
  ['sgcn++', 'EC3952114167890950933C94197C61DBC3665B60', '/255/952114167890904711'],
  ['itip-110', '4076451FD40C0E40820000000F54', '/8006/095211411234540102/21/981'],
  ['itip-212', '4176451FD40C0E4082DBDD8B36600000000000000000000000000000', '/8006/095211411234540102/21/mw133'],
  ['itip+', 'F3309521141123454010266AE27FDF35', '/8006/095211411234540102/21/rif981'],
  ['itip++', 'ED309521141123454010266AE27FDF3592832F8C3B786CCB6C00', '/8006/095211411234540102/21/rif981'],
]
/** On a tag the EPC fills whole words of 16 bits. */
const words = (hex: string) => hex.padEnd(Math.ceil(hex.length / 4) * 4, '0')
const PREFIX = /^(?:sscc-96|sscc\+)/

describe('EPC schemes', () => {
  test.each(E3)('%s of TDS 2.3 E.3: %s', (scheme, hex, link) => {
    const content = decodeEpc(words(hex))
    expect([content?.scheme, [...(content?.fields ?? [])].map(([key, value]) => `/${key}/${value}`).join('')]).toEqual([
      scheme,
      link,
    ])
    expect(decodeEpc(words(hex).toLowerCase())).toEqual(content)
  })

  test.each(E3)('%s is a tag of the company whose prefix it contains', (scheme, hex) => {
    const own = scheme.startsWith('sgtin-')
      ? '95060001343'
      : PREFIX.test(scheme) || scheme === 'sscc++'
        ? '952012345'
        : '9521141'
    expect(tagOwnerOf(GatePolicy.parse({ ownPrefixes: ['4012345', own] }), words(hex))).toBe('own')
    expect(tagOwnerOf(GatePolicy.parse({ ownPrefixes: ['4012345'] }), words(hex))).toBe('foreign')
  })

  test('with an impossible value are no EPC of GS1', () => {
    for (const hex of [
      'F73795211411234548566CB0AFC4', // wrong check digit of the GTIN
      'F7379521141123A538566CB0AFC4', // no decimal digit
      'F737952114112345', // ends in the GTIN
      'F73795211411234538566CB0', // ends in the serial
      'F7379521141123453C566CB0AFC4', // reserved encoding indicator
      'FB372CDE795211411234538566CB0AFC4000', // reserved type of date
      'FB342DBE795211411234538566CB0AFC4000', // month 13
      '311FA1B300CE0A6A83000000', // partition 7
      '311BA1B300CE0A6A83000001', // reserved bits set
      '0000000000000000',
      'E2801160600002054A5B1234',
    ])
      expect([hex, decodeEpc(words(hex))]).toEqual([hex, undefined])
  })

  test('are decoded from any hex without throwing', () => {
    const headers = [...new Set(E3.map(([, hex]) => hex.slice(0, 2)))]
    fc.assert(
      fc.property(
        fc.constantFrom(...headers),
        fc.stringMatching(/^[0-9A-F]{2}(?:[0-9A-F]{4}){0,30}$/),
        (header, rest) => void decodeEpc(header + rest),
      ),
      { numRuns: 3000 },
    )
  })

  test('SGTIN+ and DSGTIN+ name the product, with the data that follows the EPC', () => {
    const item = { gtin14: '79521141123453', serial: '32a/b' }
    expect(parseEpc('F73795211411234538566CB0AFC4')).toMatchObject(item)
    expect(parseEpc(words('FB342CDE795211411234538566CB0AFC4'))).toMatchObject({ ...item, expiry: '220630' })
    // Lot A1 (7 bits, 2 characters) and expiry 261231 behind an SGTIN+ with the serial 7.
    const bits =
      [...'F7B79521141123453'].map((digit) => Number.parseInt(digit, 16).toString(2).padStart(4, '0')).join('') +
      '00000001' +
      '0111' + // integer, one digit, 7
      '00010000' +
      '10000010' +
      '1000001' +
      '0110001' + // 10, ASCII, two characters
      '00010111' +
      '0011010' +
      '1100' +
      '11111' // 17, 26-12-31
    const hex = BigInt(`0b${bits.padEnd(Math.ceil(bits.length / 16) * 16, '0')}`)
      .toString(16)
      .toUpperCase()
    expect(parseEpc(hex)).toEqual({
      hex,
      scheme: 'sgtin+',
      gtin14: '79521141123453',
      serial: '7',
      lot: 'A1',
      expiry: '261231',
    })
  })
})

describe('an EPC with control words in front', () => {
  const epc = '3036142C8C008F8000053244'
  test.each([
    ['PC', `3000${epc}`],
    ['PC with user memory', `3400${epc}`],
    ['PC and XPC_W1', `32000001${epc}`],
    ['PC, XPC_W1 and XPC_W2', `320080010000${epc}`],
    ['PC of an SGTIN+', `3800F73795211411234538566CB0AFC4`, 'F73795211411234538566CB0AFC4'],
  ])('is read without them: %s', (_, hex, expected = epc) => expect(parseEpc(hex)?.hex).toBe(expected))

  test.each([
    ['a length that does not fit', `2800${epc}`],
    ['a tag of no GS1 scheme', '3000E2801160600002054A5B1234'],
    ['an EPC alone', epc],
  ])('stays as it is: %s', (_, hex) => expect(parseEpc(hex)?.hex).toBe(hex))
})

test('unprogrammed tags are recognized', () => {
  for (const hex of ['0000', '0'.repeat(24), 'F'.repeat(24), '300833B2DDD9014000000000', 'E28068940000000000000000'])
    expect(isUnprogrammed(hex)).toBe(true)
  for (const hex of ['E2801160600002054A5B1234', '3036142C8C008F8000053244', '0001'])
    expect(isUnprogrammed(hex)).toBe(false)
})
