import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { base32 } from '../../../policy/base32.ts'
import {
  MAX_ENTRIES,
  receiptEntry,
  receiptIdentity,
  type ReceiptClaims,
} from '../../../policy/receipts/receipt-claims.ts'
import {
  openReceipt,
  RECEIPT_LIFE,
  RECEIPT_PREFIX,
  receiptAddress,
  extractReceiptToken,
  signReceipt,
} from '../../../policy/receipts/receipt-token.ts'
import { ringOf, testKey } from '../../support/keys.ts'

const NOW = 1_800_000_000
const STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z18'
const OTHER_STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1C'
const receiptKey = testKey('receipt')
const keys = ringOf(receiptKey, testKey('token'))
const cti = receiptIdentity(Buffer.alloc(32, 7), 'pur_1')
const entries = ['3034007D00011C400000000B', '3034007D00011C400000000C']
  .map((epc) => receiptEntry(cti, 'epc', epc))
  .sort(Buffer.compare)
const claims: ReceiptClaims = {
  storeId: STORE,
  exp: NOW + RECEIPT_LIFE,
  cti,
  units: 2,
  riskClass: 1,
  policyVersion: 42,
  entries,
}
const token = signReceipt(claims, receiptKey.signer)
const expected = { keys, storeId: STORE, now: NOW }
const answer = (text: string, change: Partial<typeof expected> = {}) => {
  const opened = openReceipt(text, { ...expected, ...change })
  return opened.ok ? 'ok' : opened.fault
}
const swap = (text: string) => text.replace(/[YZ]/g, (c) => (c === 'Y' ? 'Z' : 'Y'))

describe('a receipt token', () => {
  it('contains the claims that were signed', () => {
    const opened = openReceipt(token, expected)
    expect(opened.ok && opened.claims).toEqual({
      ...claims,
      cti: Uint8Array.from(cti),
      entries: entries.map((e) => Uint8Array.from(e)),
    })
  })

  it('opens for a purchase without tagged units', () => {
    const opened = openReceipt(
      signReceipt({ ...claims, units: 0, entries: [], facts: [] }, receiptKey.signer),
      expected,
    )
    expect(opened.ok && opened.claims).toMatchObject({ units: 0, entries: [] })
  })

  it('is the same for the same purchase: a reprint is no second receipt', () => {
    expect(signReceipt(claims, receiptKey.signer)).toBe(token)
    expect(Buffer.from(receiptIdentity(Buffer.alloc(32, 7), 'pur_2'))).not.toEqual(Buffer.from(cti))
  })

  it('matches its documented vector, byte for byte (docs/reference/tokens.md)', () => {
    const { record, signer } = testKey('receipt', { seed: 1 })
    const vector = signReceipt(
      {
        storeId: STORE,
        exp: 1_800_086_400,
        cti: Buffer.alloc(16, 1),
        units: 1,
        riskClass: 0,
        policyVersion: 1,
        entries: [Buffer.from('a1b2c3d4', 'hex')],
      },
      signer,
    )
    expect(record.kid).toMatchInlineSnapshot(`"mESCV25p"`)
    expect(vector).toMatchInlineSnapshot(
      `"2KCE3IQBE4CEQ3KFKNBVMMRVOCQFQOFDAQNGWSZDQADVAAIBAEAQCAIBAEAQCAIBAEAQCAJ2AAAQAAEFKAAGNKXU3Y5QPNG4KRDAXITQ34FACAABISQ3FQ6ULBAH3ZA6RB7K3WAZHUIBYHVDQ2HFFYYIXBTQS2OGBFAXRPTWSTZQ6AWSH6KJAL22GJVCLRURCP5BNQY7SI2BVPYJBMAGGGKOKCWO7ZSABQ"`,
    )
  })

  it('fits an alphanumeric QR code of version 15 at level M even with 32 units and a long address', () => {
    const many = Array.from({ length: MAX_ENTRIES }, (_, i) => receiptEntry(cti, 'gtin', String(i))).sort(
      Buffer.compare,
    )
    const address = receiptAddress(
      'https://receipts.a-rather-long-shop-name.example:8443',
      signReceipt({ ...claims, units: MAX_ENTRIES, entries: many }, receiptKey.signer),
    )
    expect(address).toMatch(/^[0-9A-Z $%*+\-./:]+$/)
    expect(address.length).toBeLessThanOrEqual(600) // capacity of 15-M, alphanumeric (ISO/IEC 18004 table 7)
  })

  it.each([
    ['the bare token', token],
    ['its address', receiptAddress('https://shop.example', token)],
    ['typed in lower case', receiptAddress('https://shop.example', token).toLowerCase()],
    ['with the ends of lines around it', `\r\n${token}\r\n`],
    ['behind an AIM identifier', `]Q1${receiptAddress('https://shop.example', token)}`],
    ['by a scanner that swaps Y and Z', swap(token)],
    ['by a scanner that swaps Y and Z and mangles the address', swap(`HTTPSÖ&&SHOP:EXAMPLE&R&${token}`)],
    ['after half of an earlier reading', `${token.slice(0, 60)}${token}`],
  ])('is accepted: %s', (_name, text) => {
    expect(answer(text)).toBe('ok')
  })

  it.each([
    ['altered in the middle', token.slice(0, 80) + (token[80] === 'A' ? 'B' : 'A') + token.slice(81), 'bad_signature'],
    ['cut', token.slice(0, -10), 'malformed'],
    ['with something behind it', `${token}AAAAAAAA`, 'malformed'],
    ['of a token key', signReceipt(claims, testKey('token').signer), 'wrong_kind'],
    ['of an unknown key', signReceipt(claims, testKey('receipt', { seed: 5 }).signer), 'unknown_key'],
    ['of another store', signReceipt({ ...claims, storeId: OTHER_STORE }, receiptKey.signer), 'wrong_audience'],
    [
      'good for longer than a day',
      signReceipt({ ...claims, exp: NOW + RECEIPT_LIFE + 61 }, receiptKey.signer),
      'life_too_long',
    ],
    ['with fewer entries than units', signReceipt({ ...claims, units: 3 }, receiptKey.signer), 'claims_invalid'],
    ['a web page', 'https://example.com/', 'malformed'],
    ['nothing', '', 'malformed'],
    ['a flood', RECEIPT_PREFIX.repeat(2_000), 'malformed'],
  ])('is refused: %s', (_name, text, fault) => {
    expect(answer(text)).toBe(fault)
  })

  it('expires a day after completion', () => {
    expect(answer(token, { now: claims.exp - 1 })).toBe('ok')
    expect(answer(token, { now: claims.exp })).toBe('expired')
  })

  it('is rejected with a revoked key', () => {
    expect(answer(token, { keys: ringOf(testKey('receipt', { state: 'revoked' })) })).toBe('key_revoked')
  })

  it('reports the first error if neither reading is valid', () => {
    const other = signReceipt({ ...claims, storeId: OTHER_STORE }, receiptKey.signer)
    expect(answer(other)).toBe('wrong_audience')
  })

  it('has one spelling: no changed character is accepted, except the swap of Y and Z', () => {
    fc.assert(
      fc.property(fc.nat({ max: token.length - 1 }), fc.constantFrom(...'ABCYZ27'), (at, c) => {
        fc.pre(token[at] !== c)
        expect(answer(token.slice(0, at) + c + token.slice(at + 1))).not.toBe('ok')
      }),
      { numRuns: 1_000 },
    )
  })

  it('finds the last token in a scanned text', () => {
    expect(extractReceiptToken(`x${RECEIPT_PREFIX}A${RECEIPT_PREFIX}B`)).toBe(`${RECEIPT_PREFIX}B`)
    expect(extractReceiptToken('4006381333931')).toBeUndefined()
  })
})

describe('base32', () => {
  it('has the vectors of RFC 4648 §10, without padding', () => {
    const vectors = {
      '': '',
      f: 'MY',
      fo: 'MZXQ',
      foo: 'MZXW6',
      foob: 'MZXW6YQ',
      fooba: 'MZXW6YTB',
      foobar: 'MZXW6YTBOI',
    }
    for (const [text, encoded] of Object.entries(vectors)) {
      expect(base32.encode(Buffer.from(text))).toBe(encoded)
      expect(Buffer.from(base32.decode(encoded) ?? []).toString()).toBe(text)
    }
  })

  it('decodes only texts that it encodes', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'), maxLength: 20 }),
        (text) => {
          const bytes = base32.decode(text)
          if (bytes) expect(base32.encode(bytes)).toBe(text)
        },
      ),
    )
    expect(base32.decode('MY======')).toBeUndefined()
    expect(base32.decode('my')).toBeUndefined()
    expect(base32.decode('MZ')).toBeUndefined()
    expect(base32.decode('A')).toBeUndefined()
  })
})
