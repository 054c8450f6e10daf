import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeOffer } from '../../../../cloud/shop/offers/make-offer.ts'
import { OFFER_SCOPES, scopeOf } from '../../../../cloud/shop/offers/queries.ts'
import {
  ARCHIVE_AFTER_MS,
  dueAfter,
  OFFER_MOVES,
  OFFER_STATUSES,
  statusAt,
  statusFrom,
} from '../../../../cloud/shop/offers/offer-status.ts'
import { adjustPrice, discountedPrice, discountPercentOf } from '../../../../cloud/shop/offers/price-rules.ts'
import { branchId, groupIdOf, readSandboxId } from '../../../../cloud/shop/offers/sandbox-offers.ts'

/** a / b rounded half up, for integers of any size. */
const halfUp = (a: bigint, b: bigint) => {
  const doubled = 2n * a + b
  const quotient = doubled / (2n * b)
  return doubled < 0n && doubled % (2n * b) !== 0n ? quotient - 1n : quotient
}

const cents = fc.integer({ min: 0, max: 100_000_000 })
const validity = fc
  .tuple(fc.integer({ min: 0, max: 4e12 }), fc.integer({ min: 1, max: 1e12 }))
  .map(([fromMs, length]) => ({ fromMs, toMs: fromMs + length }))

describe('rules of offers', () => {
  it('scope: follows the specification’s table, and never narrows with more stores', () => {
    const table: [number, number, string][] = [
      [1, 1, 'LOCAL'],
      [2, 10, 'MULTI_STORE'],
      [11, 30, 'CITY_WIDE'],
      [31, 100, 'REGIONAL'],
      [101, 1_000, 'NATIONAL'],
    ]
    for (const [from, to, scope] of table) for (let n = from; n <= to; n++) expect([n, scopeOf(n)]).toEqual([n, scope])
    fc.assert(
      fc.property(
        fc.nat(5_000),
        fc.nat(5_000),
        (a, b) => a > b || OFFER_SCOPES.indexOf(scopeOf(a)) <= OFFER_SCOPES.indexOf(scopeOf(b)),
      ),
    )
  })

  it('status: follows the specification at each time', () => {
    fc.assert(
      fc.property(validity, fc.integer({ min: 0, max: 6e12 }), (v, now) => {
        const specified =
          now < v.fromMs ? 'DRAFT' : now < v.toMs ? 'ACTIVE' : now < v.toMs + ARCHIVE_AFTER_MS ? 'EXPIRED' : 'ARCHIVED'
        expect(statusAt(v, now)).toBe(specified)
      }),
    )
    const v = { fromMs: 1_000, toMs: 2_000 }
    expect([999, 1_000, 1_999, 2_000].map((now) => statusAt(v, now))).toEqual(['DRAFT', 'ACTIVE', 'ACTIVE', 'EXPIRED'])
  })

  it('status: only moves forward, independent of intermediate reads', () => {
    fc.assert(
      fc.property(validity, fc.array(fc.integer({ min: 0, max: 6e12 }), { maxLength: 8 }), (v, moments) => {
        let status = statusAt(v, 0)
        for (const now of moments.sort((a, b) => a - b)) {
          const next = statusFrom(status, v, now)
          expect(OFFER_STATUSES.indexOf(next)).toBeGreaterThanOrEqual(OFFER_STATUSES.indexOf(status))
          expect(next).toBe(statusAt(v, now))
          const due = dueAfter(next, v)
          if (due !== null)
            expect([due > now, statusFrom(next, v, due - 1), statusFrom(next, v, due) !== next]).toEqual([
              true,
              next,
              true,
            ])
          status = next
        }
      }),
    )
    expect(OFFER_MOVES.map((m) => m.to)).toEqual(OFFER_STATUSES.slice(1))
    expect(dueAfter('ARCHIVED', { fromMs: 0, toMs: 1 })).toBe(null)
  })

  it('clone prices: exact half up, never negative', () => {
    fc.assert(
      fc.property(cents, fc.integer({ min: -1_000_000, max: 10_000_000 }), (price, units) => {
        const got = adjustPrice(price, { type: 'percentage', value: units / 10_000 })
        expect(BigInt(got)).toBe(halfUp(BigInt(price) * BigInt(1_000_000 + units), 1_000_000n))
        expect(got).toBeGreaterThanOrEqual(0)
      }),
      { numRuns: 2_000 },
    )
    fc.assert(
      fc.property(cents, fc.integer({ min: -100_000_000, max: 100_000_000 }), (price, add) => {
        expect(adjustPrice(price, { type: 'fixed', value: add / 100 })).toBe(Math.max(0, price + add))
      }),
    )
    expect([50, 10, 1].map((price) => adjustPrice(price, { type: 'percentage', value: -25 }))).toEqual([38, 8, 1])
    expect(Object.is(adjustPrice(5, { type: 'percentage', value: -100 }), 0)).toBe(true)
  })

  it('discounts: between 0 and 100 percent, and reversible', () => {
    fc.assert(
      fc.property(cents, fc.integer({ min: 0, max: 1_000_000 }), (old, units) => {
        const price = discountedPrice(old, units / 10_000)
        expect(BigInt(price)).toBe(halfUp(BigInt(old) * BigInt(1_000_000 - units), 1_000_000n))
        expect(price).toBeLessThanOrEqual(old)
        const percent = discountPercentOf({ priceCent: price, oldPriceCent: old })
        expect(percent >= 0 && percent <= 100).toBe(true)
      }),
    )
    expect(discountPercentOf({ priceCent: 300, oldPriceCent: 400 })).toBe(25)
    expect(discountPercentOf({ priceCent: 500, oldPriceCent: 400 })).toBe(0)
    expect(discountPercentOf({ priceCent: 500 })).toBe(0)
  })

  it('descriptions: short German sentences of at most 1,000 characters', () => {
    const v = { fromMs: Date.UTC(2026, 10, 20, 7), toMs: Date.UTC(2026, 11, 3, 23) }
    const umbrella = { name: 'Regenschirm', priceCent: 999, oldPriceCent: 1_499 }
    const hat = { name: 'Hut', priceCent: 500 }
    expect(describeOffer([umbrella], v)).toBe('Regenschirm, 33 % günstiger. Gültig vom 20.11.2026 bis 03.12.2026.')
    expect(describeOffer([hat], v)).toBe('Hut im Angebot. Gültig vom 20.11.2026 bis 03.12.2026.')
    expect(describeOffer([umbrella, hat], v)).toMatch(/^Regenschirm und Hut, bis zu 33 % günstiger\./)
    expect(describeOffer([umbrella, hat, hat], v)).toMatch(/^Regenschirm, Hut und 1 weiteres Produkt, bis zu/)
    expect(describeOffer([hat, hat, hat, hat], v)).toMatch(/^Hut, Hut und 2 weitere Produkte im Angebot\./)
  })

  it('sandbox ids: can be decoded by their own tenant only', () => {
    const id = fc.record({
      createdMs: fc.integer({ min: 0, max: 2 ** 47 }),
      stores: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      branch: fc.nat(1_000),
      kind: fc.nat(255),
      randomPart: fc.nat(2 ** 24 - 1),
    })
    fc.assert(
      fc.property(id, fc.nat(33), (one, at) => {
        const text = branchId('acc_1.test', one)
        expect(readSandboxId('acc_1.test', text)).toEqual(one)
        expect(readSandboxId('acc_1.test', groupIdOf('acc_1.test', one))).toEqual({ ...one, branch: 0 })
        expect(readSandboxId('acc_2.test', text)).toBeUndefined()
        const i = 4 + at
        const changed = `${text.slice(0, i)}${text[i] === '0' ? '1' : '0'}${text.slice(i + 1)}`
        expect(readSandboxId('acc_1.test', changed)).toBeUndefined()
      }),
    )
    fc.assert(fc.property(fc.string(), (text) => readSandboxId('acc_1.test', text) === undefined))
  })
})
