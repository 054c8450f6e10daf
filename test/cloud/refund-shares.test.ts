import fc from 'fast-check'
import { expect, it } from 'vitest'
import { shareRefund, sharesLeft, sharesOf, type TaxShare } from '../../cloud/analytics/refund-shares.ts'

const lines = fc.array(fc.record({ cent: fc.integer({ min: 0, max: 5_000 }), rate: fc.constantFrom(7, 19) }), { minLength: 1, maxLength: 6 })
const sum = (shares: readonly TaxShare[], of: 'cent' | 'tax') => shares.reduce((total, share) => total + share[of], 0)

it('any refunds, and then the rest, are together exactly the receipt, and none takes more than there is', () => {
  fc.assert(
    fc.property(lines, fc.array(fc.record({ part: fc.double({ min: 0, max: 1, noNaN: true }), line: fc.nat(5), named: fc.boolean() }), { maxLength: 8 }), (bought, refunds) => {
      const sold = sharesOf(bought)
      const gone: TaxShare[] = []
      for (const { part, line, named } of refunds) {
        const left = sharesLeft(sold, gone)
        const amount = Math.floor(part * sum(left, 'cent'))
        const own = named ? sharesOf([bought[line % bought.length] ?? { cent: 0, rate: 7 }]) : []
        const back = shareRefund(left, own, amount)
        expect(sum(back, 'cent')).toBe(amount)
        for (const share of back) {
          const { cent = 0 } = left.find((each) => each.rate === share.rate) ?? {}
          expect(share.cent).toBeGreaterThan(0)
          expect(share.cent).toBeLessThanOrEqual(cent)
          // Tax and net never differ from the share's own by more than rounding.
          expect(Math.abs(share.tax - (share.cent * share.rate) / (100 + share.rate))).toBeLessThanOrEqual(1)
        }
        // What a named line costs goes back out of its own rate first.
        const [first] = own
        if (first) expect(back.find((share) => share.rate === first.rate)?.cent ?? 0).toBeGreaterThanOrEqual(Math.min(amount, first.cent, left.find((share) => share.rate === first.rate)?.cent ?? 0))
        gone.push(...back)
      }
      const rest = sharesLeft(sold, gone)
      for (const share of rest) expect(share.tax).toBe(sharesOf([share])[0]?.tax)
      expect([sum(gone, 'cent') + sum(rest, 'cent'), sum(gone, 'tax') + sum(rest, 'tax')]).toEqual([sum(sold, 'cent'), sum(sold, 'tax')])
    }),
  )
})

it('an amount alone goes back of every rate in proportion', () => {
  expect(shareRefund(sharesOf([{ cent: 7_000, rate: 7 }, { cent: 3_000, rate: 19 }]), [], 1_000)).toEqual([
    { rate: 7, cent: 700, tax: 46 },
    { rate: 19, cent: 300, tax: 48 },
  ])
})
