import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { encode } from 'uqr'
import { describe, expect, it } from 'vitest'
import { decide } from '../../../policy/decide.ts'
import { completeCapabilities } from '../../../policy/devices.ts'
import { foldText } from '../../../policy/fold-text.ts'
import { numberFacts, readUnitFacts } from '../../../policy/receipts/policy-names.ts'
import {
  decodeReceiptClaims,
  encodeReceiptClaims,
  MAX_ENTRIES,
  receiptEntry,
  type ReceiptClaims,
  type UnitFacts,
  decodeCbor,
  encodeCbor,
} from '../../../policy/receipts/receipt-claims.ts'
import {
  openReceipt,
  RECEIPT_QR_CHARACTERS,
  receiptAddress,
  signReceipt,
  signReceiptForQr,
} from '../../../policy/receipts/receipt-token.ts'
import { DEFAULT_POLICY, ProtectionPolicy } from '../../../policy/store-policy.ts'
import { WORKFLOW_TYPES } from '../../../policy/vocabulary.ts'
import { ringOf, testKey } from '../../support/keys.ts'

/** A host of 20 characters. */
const ORIGIN = 'https://receipts.shop-ab.eu'
const STORE = 'st_01KANX6Y7C3V9Q2M8R5T4W6Z18'
const cti = Buffer.alloc(16, 1)
const key = testKey('receipt', { seed: 1 })
const SHIRT: UnitFacts = { category: 'bekleidung', brand: 'Nordhof', priceCent: 4_999 }
const SHOES: UnitFacts = { category: 'schuhe', brand: '', priceCent: 12_900 }

type TextClaims = ReceiptClaims & { facts?: readonly UnitFacts[] }

/** Claims of a receipt with this number of units. The facts repeat. */
function claimsOf(units: number, facts: readonly UnitFacts[]): TextClaims {
  return {
    storeId: STORE,
    exp: 1_800_086_400,
    cti: Uint8Array.from(cti),
    units,
    riskClass: 1,
    policyVersion: 70_000,
    entries: Array.from({ length: units }, (_, n) => Uint8Array.from(receiptEntry(cti, 'epc', String(n)))).sort(
      Buffer.compare,
    ),
    ...(facts.length > 0 && { facts: Array.from({ length: units }, (_, n) => facts[n % facts.length] ?? SHIRT) }),
  }
}

const policyWith = (categories: readonly string[], brands: readonly string[], value: number | null = null) =>
  ProtectionPolicy.parse({
    allowedActionsByCategory: Object.fromEntries(categories.map((name) => [name, {}])),
    requiresStaffForBrand: brands,
    requiresManualOverrideAboveValue: value,
  })
const versionOf = (address: string) => encode(address, { ecc: 'M' }).version
const addressOf = (claims: TextClaims, policy = DEFAULT_POLICY) =>
  receiptAddress(ORIGIN, signReceiptForQr(ORIGIN, claims, policy, key.signer))
function read(address: string): ReceiptClaims | undefined {
  const opened = openReceipt(address, { keys: ringOf(key) })
  return opened.ok ? opened.claims : undefined
}
const receiptOf = (payload: Uint8Array) => (decodeCbor(payload, -1) as Map<number, unknown>).get(-65_537) as unknown[]

describe('the facts of the units in a receipt', () => {
  it('are decoded for each unit from a table of distinct sets', () => {
    const claims = claimsOf(5, [SHIRT, SHOES])
    expect(decodeReceiptClaims(encodeReceiptClaims(claims))).toEqual(claims)
    expect(receiptOf(encodeReceiptClaims(claims)).slice(5)).toEqual([
      ['bekleidung', 'Nordhof', 4_999, 'schuhe', '', 12_900],
      Uint8Array.from([0b01010_000]),
    ])
  })

  it('are numbers of the names in the policy if texts do not fit the small code', () => {
    const policy = policyWith(['*', 'Tabak', ' SCHUHE '], ['Luxus', 'nordhof'])
    const claims = claimsOf(20, [SHIRT, SHOES])
    const short = read(addressOf(claims, policy))
    // Categories: schuhe 1, tabak 2. Brands: luxus 1, nordhof 2.
    expect(short?.facts?.slice(0, 2)).toEqual([
      { category: 0, brand: 2, priceCent: 4_999 },
      { category: 1, brand: 0, priceCent: 12_900 },
    ])
    // SHA-256 over the CBOR of [["schuhe", "tabak"], ["luxus", "nordhof"]], written by hand.
    const names = '82 82 66736368756865 65746162616b 82 656c75787573 676e6f7264686f66'.replaceAll(' ', '')
    const digest = createHash('sha256').update(Buffer.from(names, 'hex')).digest().subarray(0, 4)
    expect(short?.namesDigest).toEqual(Uint8Array.from(digest))
    const facts = (n: number, live = policy) => short && readUnitFacts(short, n, live)
    expect(facts(0)).toEqual({ category: '', brand: 'nordhof', priceCent: 4_999 })
    expect(facts(1)).toEqual({ category: ' SCHUHE ', brand: '', priceCent: 12_900 })
    expect(facts(1, policyWith(['tabak', 'Schuhe'], ['NORDHOF', 'Luxus'], 5))).toMatchObject({ category: 'Schuhe' })
    // Under another policy, the numbers have no meaning.
    expect(facts(1, policyWith(['schuhe', 'tabak'], ['nordhof']))).toEqual({ priceCent: 12_900 })
    expect(short && readUnitFacts(short, 1, undefined)).toEqual({ priceCent: 12_900 })
  })

  it('match their documented vector, byte for byte (docs/reference/tokens.md)', () => {
    const claims: ReceiptClaims = {
      storeId: STORE,
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
      `"2KCE3IQBE4CEQ3KFKNBVMMRVOCQFQYFDAQNGWSZDQADVAAIBAEAQCAIBAEAQCAIBAEAQCAJ2AAAQAAEHKAAGNKXU3Y5QPNG4KRDAXITQ34FAEAIBJCQ3FQ6UWGZMHVEGNJRGK23MMVUWI5LOM5TU433SMRUG6ZQZCODWM43DNB2WQZLADEZGIQKALBAEAW2MXP54THKR3K47YAMKTU74TBGX2W7BITN3XJAEI66PUTHQUASHGXEAOAEIKGOAEMPHYZTO2EFOWBENICDGYYYQQ5LKHUTVFH5TAE"`,
    )
    // The policy names categories schuhe (1) and tabak (2), and brands luxus (1) and nordhof (2).
    const policy = policyWith(['tabak', 'schuhe'], ['luxus', 'nordhof'])
    const numbered = { ...claims, ...numberFacts([SHIRT, SHOES], policy) }
    expect(Buffer.from(numbered.namesDigest).toString('hex')).toMatchInlineSnapshot(`"ccfaaf95"`)
    expect(signReceipt(numbered, key.signer)).toMatchInlineSnapshot(
      `"2KCE3IQBE4CEQ3KFKNBVMMRVOCQFQTVDAQNGWSZDQADVAAIBAEAQCAIBAEAQCAIBAEAQCAJ2AAAQAAEIKAAGNKXU3Y5QPNG4KRDAXITQ34FAEAIBJCQ3FQ6UWGZMHVEGAABBSE4HAEABSMTEIFAEJTH2V6KVQQF2XXCC6ZNSCI6QWB5VK6J72A2JK735MJVRAYVAKBHLRQRZ3C3XB65MI7DQ22ZOQCENIMRJBKTUVTX7AEYTWDELDH62XTB2ZCIP3IEAC"`,
    )
  })

  const KINDS: readonly UnitFacts[] = [
    { category: 'bekleidung', brand: 'Nordhof', priceCent: 4_999 },
    { category: 'Schuhe und Taschen', brand: 'Marke mit langem Namen', priceCent: 12_995 },
    { category: 'elektronik', brand: 'Luxus', priceCent: 19_999 },
    { category: 'spirituosen', brand: '', priceCent: 1_499 },
    { category: 'parfümerie', brand: 'Hausmarke 7', priceCent: 899 },
  ]
  const BRANDS = Array.from({ length: 20 }, (_, n) => `Hausmarke ${n}`)
  const MANY = Array.from({ length: 500 }, (_, n) => `Marke ${n}`)
  const expensive = KINDS.map((kind, n) => ({ ...kind, priceCent: 99_900 + n }))
  it.each<[string, ProtectionPolicy, readonly UnitFacts[], number]>([
    ['no rules', DEFAULT_POLICY, KINDS, 379],
    ['3 categories', policyWith(['*', 'spirituosen', 'elektronik'], []), KINDS, 379],
    ['20 brands', policyWith([], BRANDS), KINDS, 379],
    ['a value', policyWith([], [], 100), KINDS, 379],
    ['all of them', policyWith(['*', 'spirituosen', 'elektronik'], BRANDS, 100), KINDS, 379],
    [
      '500 brands',
      policyWith(['*', 'spirituosen'], [...MANY.slice(5), ...KINDS.map((k) => k.brand || 'x')]),
      KINDS,
      386,
    ],
    ['prices of over 655 EUR', policyWith([], BRANDS, 100), expensive, 395],
  ])(
    'of 10 units of 5 kinds keep the address within 400 characters: policy with %s',
    (_name, policy, kinds, length) => {
      const address = addressOf(claimsOf(10, kinds), policy)
      expect(read(address)?.facts).toHaveLength(10)
      expect(address.length).toBe(length)
      expect(address.length).toBeLessThanOrEqual(400)
      expect(versionOf(address)).toBeLessThanOrEqual(12)
    },
  )

  const prices = (count: number) => Array.from({ length: count }, (_, n) => ({ ...SHIRT, priceCent: (n + 1) * 1_000 }))
  /** Expected QR version at level M and number of characters. Version 15 has a capacity of 600. */
  it.each([
    { units: 1, sets: 1, version: 10, characters: 301, form: 'texts' },
    { units: 10, sets: 1, version: 11, characters: 360, form: 'texts' },
    { units: 10, sets: 2, version: 12, characters: 398, form: 'texts' },
    { units: 10, sets: 5, version: 12, characters: 379, form: 'numbers' },
    { units: 10, sets: 10, version: 13, characters: 422, form: 'numbers' },
    { units: 32, sets: 1, version: 13, characters: 483, form: 'numbers' },
    { units: 32, sets: 5, version: 15, characters: 534, form: 'numbers' },
    { units: 32, sets: 16, version: 13, characters: 464, form: 'none' },
    { units: 32, sets: 32, version: 13, characters: 464, form: 'none' },
  ])('of $units units in $sets sets take $characters characters: $form', ({ units, sets, ...expected }) => {
    const address = addressOf(claimsOf(units, prices(sets)))
    const claims = read(address)
    const form = claims?.facts === undefined ? 'none' : claims.namesDigest ? 'numbers' : 'texts'
    expect({ version: versionOf(address), characters: address.length, form }).toEqual(expected)
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

  const good = () => receiptOf(encodeReceiptClaims(claimsOf(2, [SHIRT, SHOES])))
  const decodeWith = (receipt: readonly unknown[]) =>
    decodeReceiptClaims(
      encodeCbor(
        new Map<number, unknown>([
          [4, 1_800_086_400],
          [7, cti],
          [-65_537, receipt],
        ]),
      ),
    )
  const [SETS, INDEXES, DIGEST] = [5, 6, 7]
  it.each<[string, number, unknown]>([
    ['a store of another type', 0, STORE],
    ['a store that is too short', 0, new Uint8Array(15)],
    ['a set without a unit', INDEXES, Uint8Array.from([0b00_000000])],
    ['sets out of order', INDEXES, Uint8Array.from([0b10_000000])],
    ['bits behind the last index', INDEXES, Uint8Array.from([0b01_100000])],
    ['too few indexes', INDEXES, new Uint8Array()],
    ['too many indexes', INDEXES, Uint8Array.from([0b01_000000, 0])],
    ['indexes of another type', INDEXES, [0, 1]],
    ['no set', SETS, []],
    ['a third set', SETS, ['a', 'b', 1, 'a', 'c', 1, 'a', 'd', 1]],
    ['a set twice', SETS, ['a', 'b', 1, 'a', 'b', 1]],
    ['half a set', SETS, ['a', 'b', 1, 'a']],
    ['a price below zero', SETS, ['a', 'b', -1, 'a', 'c', 1]],
    ['a category that is too long', SETS, ['a'.repeat(121), 'b', 1, 'a', 'c', 1]],
    ['a table of another type', SETS, 'none'],
    ['numbers without a digest', SETS, [1, 0, 1, 2, 0, 1]],
    ['a digest of texts', DIGEST, new Uint8Array(4)],
    ['a digest of another type', DIGEST, 1],
  ])('are refused with %s', (_name, index, value) => {
    const receipt = good()
    expect(decodeWith(receipt)).toBeDefined()
    receipt[index] = value
    expect(decodeWith(receipt)).toBeUndefined()
  })

  it.each([[5], [6], [7]])('are refused without element %i of 8', (index) => {
    const short = receiptOf(encodeReceiptClaims(read(addressOf(claimsOf(20, [SHIRT, SHOES])))!))
    expect(decodeWith(short)).toBeDefined()
    expect(decodeWith(short.toSpliced(index, 1))).toBeUndefined()
    expect(decodeWith([...short, 0])).toBeUndefined()
  })
})

describe('a decision from the facts of a receipt', () => {
  const detacher = (workflowType: (typeof WORKFLOW_TYPES)[number]) => ({
    deviceId: 'dev_1',
    storeId: STORE,
    deviceType: 'self_checkout_detacher' as const,
    workflowType,
    ...completeCapabilities('self_checkout_detacher', {}),
    agentId: null,
    revoked: false,
  })
  const NAMES = ['tabak', 'Tabak ', 'Alkohol', 'ÄPFEL', 'äpfel', 'straße', 'STRASSE', 'schuhe', '*']
  const name = fc.constantFrom(...NAMES)
  const distinct = fc.uniqueArray(name, { selector: foldText, maxLength: 5 })
  const workflows = fc.subarray([...WORKFLOW_TYPES])
  const policies = fc
    .record({
      categories: distinct,
      rules: fc.array(fc.option(workflows, { nil: undefined }), { minLength: 5, maxLength: 5 }),
      requiresStaffForBrand: distinct,
      requiresManualOverrideAboveValue: fc.option(fc.constantFrom(10, 100, 600)),
    })
    .map(({ categories, rules, ...policy }) => {
      const rule = (n: number) => (rules[n] ? { detach_hard_tag: rules[n] } : {})
      return ProtectionPolicy.parse({
        ...policy,
        allowedActionsByCategory: Object.fromEntries(categories.map((category, n) => [category, rule(n)])),
      })
    })
  const goods = fc.record({
    category: fc.oneof(name, fc.constant(''), fc.string({ maxLength: 20 })),
    brand: fc.oneof(name, fc.constant(''), fc.string({ maxLength: 20 })),
    priceCent: fc.oneof(fc.constantFrom(0, 999, 1_000, 9_999, 10_000, 60_000), fc.nat(99_999)),
  })
  const scene = fc.record({
    madeFor: policies,
    next: policies,
    baskets: fc.array(goods, { minLength: 1, maxLength: MAX_ENTRIES }),
    workflowType: fc.constantFrom(...WORKFLOW_TYPES),
    hasOperator: fc.boolean(),
  })

  it('is never easier than with all facts, and the same under the policy that the receipt was made for', () => {
    const forms = new Set<string>()
    fc.assert(
      fc.property(scene, ({ madeFor, next, baskets, workflowType, hasOperator }) => {
        const claims = read(addressOf(claimsOf(baskets.length, baskets), madeFor))
        if (!claims) throw new Error('the receipt does not open')
        forms.add(claims.facts === undefined ? 'none' : claims.namesDigest ? 'numbers' : 'texts')
        for (const [n, known] of baskets.entries()) {
          const outcome = (facts: Partial<UnitFacts>, policy: ProtectionPolicy) =>
            decide(
              {
                action: 'detach_hard_tag',
                storeId: STORE,
                device: detacher(workflowType),
                clockTrusted: true,
                stage: 'fresh',
                item: { status: 'paid', ...facts },
                identifiedBy: ['epc'],
                right: 'free',
                hasOperator,
              },
              policy,
            )
          for (const live of [madeFor, next]) {
            const [short, full] = [outcome(readUnitFacts(claims, n, live), live), outcome(known, live)]
            if (short.allowed) expect(full.allowed).toBe(true)
            if (live === madeFor && claims.facts) expect({ ...short, trace: [] }).toEqual({ ...full, trace: [] })
          }
        }
      }),
      { numRuns: 300, endOnFailure: true },
    )
    expect([...forms]).toEqual(expect.arrayContaining(['numbers', 'texts']))
  })
})
