import { encode } from 'uqr'
import { describe, expect, it } from 'vitest'
import {
  decodeReceiptClaims,
  encodeReceiptClaims,
  MAX_ENTRIES,
  receiptEntry,
  type ReceiptClaims,
  type UnitFacts,
} from '../../../policy/receipts/receipt-claims.ts'
import { decodeCbor, encodeCbor } from '../../../policy/receipts/deterministic-cbor.ts'
import {
  openReceipt,
  RECEIPT_QR_CHARACTERS,
  receiptAddress,
  signReceipt,
  signReceiptForQr,
} from '../../../policy/receipts/receipt-token.ts'
import { ringOf, testKey } from '../../support/keys.ts'

const ORIGIN = 'https://shop.example'
const cti = Buffer.alloc(16, 1)
const key = testKey('receipt', { seed: 1 })
const SHIRT: UnitFacts = { category: 'bekleidung', brand: 'Nordhof', priceCent: 4_999 }
const SHOES: UnitFacts = { category: 'schuhe', brand: '', priceCent: 12_900 }

/** Claims of a receipt with this number of units. The facts repeat. */
function claimsOf(units: number, facts: readonly UnitFacts[]): ReceiptClaims {
  return {
    storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    exp: 1_800_086_400,
    cti: Uint8Array.from(cti),
    units,
    riskClass: 1,
    policyVersion: 7,
    entries: Array.from({ length: units }, (_, n) => Uint8Array.from(receiptEntry(cti, 'epc', String(n)))).sort(
      Buffer.compare,
    ),
    ...(facts.length > 0 && { facts: Array.from({ length: units }, (_, n) => facts[n % facts.length] ?? SHIRT) }),
  }
}

const versionOf = (address: string) => encode(address, { ecc: 'M' }).version
const addressOf = (claims: ReceiptClaims) => receiptAddress(ORIGIN, signReceiptForQr(ORIGIN, claims, key.signer))
function read(address: string): ReceiptClaims | undefined {
  const opened = openReceipt(address, { keys: ringOf(key) })
  return opened.ok ? opened.claims : undefined
}

describe('the facts of the units in a receipt', () => {
  it('are decoded for each unit from a table of distinct sets', () => {
    const claims = claimsOf(5, [SHIRT, SHOES])
    expect(decodeReceiptClaims(encodeReceiptClaims(claims))).toEqual(claims)
    const map = decodeCbor(encodeReceiptClaims(claims), -1) as Map<number, unknown>
    expect(map.get(-65_541)).toEqual([
      ['bekleidung', 'Nordhof', 4_999],
      ['schuhe', '', 12_900],
    ])
    expect(map.get(-65_542)).toEqual(Uint8Array.from([0b01010_000]))
  })

  it('match their documented vector, byte for byte (docs/reference/tokens.md)', () => {
    const claims: ReceiptClaims = {
      storeId: 'st_1',
      exp: 1_800_086_400,
      cti,
      units: 2,
      riskClass: 1,
      policyVersion: 1,
      entries: [Buffer.from('a1b2c3d4', 'hex'), Buffer.from('b1b2c3d4', 'hex')],
      facts: [SHIRT, SHOES],
    }
    expect(key.record.kid).toBe('mESCV25p')
    expect(signReceipt(claims, key.signer)).toMatchInlineSnapshot(
      `"2KCE3IQBE4CEQ3KFKNBVMMRVOCQFQ35JANSHG5C7GECBU22LEOAAOUABAEAQCAIBAEAQCAIBAEAQCAIBHIAACAAAAI5AAAIAAEATUAABAABACOQAAEAAGSFBWLB5JMNSYPKDUAABAACIFA3KMJSWW3DFNFSHK3THM5HG64TENBXWMGITQ6BWM43DNB2WQZLADEZGIOQAAEAAKQKALBAM3PEFA6P3JT4XJCA2AKKSLJJY5UV5SHUKFVDNDDPIGZHKTAK73H7OMZ7N6VEH3NFQI3GU6VY4SEPSBDVGNUNSWBYD5VVYAAJDW2TXAE"`,
    )
  })

  const prices = (count: number) => Array.from({ length: count }, (_, n) => ({ ...SHIRT, priceCent: (n + 1) * 1_000 }))
  /**
   * Expected QR version at level M and number of characters. Version 15 has a capacity of 600. Without facts the
   * versions are 10, 11 and 14.
   */
  it.each([
    { units: 1, sets: 1, version: 11, characters: 351, hasFacts: true },
    { units: 10, sets: 1, version: 12, characters: 411, hasFacts: true },
    { units: 10, sets: 2, version: 13, characters: 451, hasFacts: true },
    { units: 10, sets: 5, version: 15, characters: 564, hasFacts: true },
    { units: 10, sets: 10, version: 11, characters: 355, hasFacts: false },
    { units: 32, sets: 1, version: 15, characters: 553, hasFacts: true },
    { units: 32, sets: 2, version: 15, characters: 598, hasFacts: true },
    { units: 32, sets: 3, version: 14, characters: 497, hasFacts: false },
  ])('of $units units in $sets sets take $characters characters: $hasFacts', ({ units, sets, ...expected }) => {
    const address = addressOf(claimsOf(units, prices(sets)))
    const hasFacts = read(address)?.facts !== undefined
    expect({ version: versionOf(address), characters: address.length, hasFacts }).toEqual(expected)
  })

  it('are the only claims omitted if the QR code would exceed version 15 at level M', () => {
    const dear = Array.from({ length: MAX_ENTRIES }, (_, n) => ({ ...SHIRT, priceCent: n }))
    const claims = claimsOf(MAX_ENTRIES, dear)
    const whole = receiptAddress(ORIGIN, signReceipt(claims, key.signer))
    expect(versionOf(whole)).toBeGreaterThan(15)
    const { facts: _facts, ...bare } = claims
    expect(read(addressOf(claims))).toEqual(bare)
    expect(versionOf(addressOf(claims))).toBeLessThanOrEqual(15)
    expect(versionOf('A'.repeat(RECEIPT_QR_CHARACTERS))).toBe(15)
    expect(versionOf('A'.repeat(RECEIPT_QR_CHARACTERS + 1))).toBe(16)
  })

  const good = () => decodeCbor(encodeReceiptClaims(claimsOf(2, [SHIRT, SHOES])), -1) as Map<number, unknown>
  it.each<[string, number, unknown]>([
    ['a set without a unit', -65_542, Uint8Array.from([0b00_000000])],
    ['sets out of order', -65_542, Uint8Array.from([0b10_000000])],
    ['bits behind the last index', -65_542, Uint8Array.from([0b01_100000])],
    ['too few indexes', -65_542, new Uint8Array()],
    ['too many indexes', -65_542, Uint8Array.from([0b01_000000, 0])],
    ['indexes of another type', -65_542, [0, 1]],
    ['no set', -65_541, []],
    [
      'a third set',
      -65_541,
      [
        ['a', 'b', 1],
        ['a', 'c', 1],
        ['a', 'd', 1],
      ],
    ],
    [
      'a set twice',
      -65_541,
      [
        ['a', 'b', 1],
        ['a', 'b', 1],
      ],
    ],
    [
      'a set with more in it',
      -65_541,
      [
        ['a', 'b', 1, 1],
        ['a', 'c', 1],
      ],
    ],
    [
      'a price below zero',
      -65_541,
      [
        ['a', 'b', -1],
        ['a', 'c', 1],
      ],
    ],
    [
      'a category that is too long',
      -65_541,
      [
        ['a'.repeat(121), 'b', 1],
        ['a', 'c', 1],
      ],
    ],
    ['a table of another type', -65_541, 'none'],
  ])('are refused with %s', (_name, claim, value) => {
    expect(decodeReceiptClaims(encodeCbor(good().set(claim, value)))).toBeUndefined()
  })

  it.each([[-65_540], [-65_541], [-65_542]])('are refused without claim %i', (claim) => {
    const map = good()
    map.delete(claim)
    expect(decodeReceiptClaims(encodeCbor(map))).toBeUndefined()
  })
})
