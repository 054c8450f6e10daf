import fc from 'fast-check'
import { expect, it } from 'vitest'
import { refundedByLine } from '../../../../cloud/shop/analytics/export-operations.ts'
import { shareRefund, sharesLeft, sharesOf, type TaxShare } from '../../../../cloud/shop/analytics/count-purchases.ts'
import type { Row } from '../../../../cloud/platform/persistence/schema.ts'

const lines = fc.array(fc.record({ cent: fc.integer({ min: 0, max: 5_000 }), rate: fc.constantFrom(7, 19) }), {
  minLength: 1,
  maxLength: 6,
})
const sum = (shares: readonly TaxShare[], of: 'cent' | 'tax') => shares.reduce((total, share) => total + share[of], 0)

it('any refunds and the rest equal the receipt, and none exceeds the remaining amounts', () => {
  fc.assert(
    fc.property(
      lines,
      fc.array(fc.record({ part: fc.double({ min: 0, max: 1, noNaN: true }), line: fc.nat(5), named: fc.boolean() }), {
        maxLength: 8,
      }),
      (bought, refunds) => {
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
            // Tax and net amount differ only by rounding from those of the share alone.
            expect(Math.abs(share.tax - (share.cent * share.rate) / (100 + share.rate))).toBeLessThanOrEqual(1)
          }
          // The refund first uses the rate of the line that it names.
          const [first] = own
          if (first)
            expect(back.find((share) => share.rate === first.rate)?.cent ?? 0).toBeGreaterThanOrEqual(
              Math.min(amount, first.cent, left.find((share) => share.rate === first.rate)?.cent ?? 0),
            )
          gone.push(...back)
        }
        const rest = sharesLeft(sold, gone)
        for (const share of rest) expect(share.tax).toBe(sharesOf([share])[0]?.tax)
        expect([sum(gone, 'cent') + sum(rest, 'cent'), sum(gone, 'tax') + sum(rest, 'tax')]).toEqual([
          sum(sold, 'cent'),
          sum(sold, 'tax'),
        ])
      },
    ),
  )
})

it('by line: the sums of each rate equal the closings, and no line refunds more than its price', () => {
  const refund = fc.record({
    part: fc.double({ min: 0, max: 1, noNaN: true }),
    line: fc.option(fc.nat(5), { nil: null }),
    isCounted: fc.boolean(),
  })
  fc.assert(
    fc.property(lines, fc.array(refund, { maxLength: 6 }), (bought, refunds) => {
      const rows = bought.map(({ cent, rate }, i) => ({
        line_id: `l${i}`,
        price_cent: cent,
        quantity: 1,
        came_back: 0,
        vat: rate,
      }))
      const gone: TaxShare[] = []
      const made = refunds.map(({ part, line, isCounted }) => {
        const left = sharesLeft(sharesOf(bought), gone)
        const amount = Math.floor(part * sum(left, 'cent'))
        const at = line === null ? null : line % bought.length
        const shares = shareRefund(left, at === null ? [] : sharesOf([bought[at] ?? { cent: 0, rate: 7 }]), amount)
        gone.push(...shares)
        const pieces = at === null ? [] : [{ itemLineId: `l${at}`, quantity: 1, unitNos: [] }]
        return {
          kind: 'part',
          state: 'done',
          amount_cent: amount,
          lines: at === null ? null : JSON.stringify(pieces),
          counted: isCounted ? JSON.stringify({ shares, units: 0, pieces, isWhole: false }) : null,
        } as Row<'refund'>
      })
      const byLine = refundedByLine(rows, [
        ...made,
        { ...made[0], kind: 'late', state: 'done', amount_cent: 1 } as Row<'refund'>,
        { ...made[0], kind: 'part', state: 'failed', amount_cent: 1 } as Row<'refund'>,
      ])
      for (const row of rows) expect(byLine.get(row.line_id)).toBeLessThanOrEqual(row.price_cent)
      expect([...byLine.values()].reduce((total, cent) => total + cent, 0)).toBe(sum(gone, 'cent'))
      if (refunds.some(({ isCounted }) => !isCounted)) return
      for (const rate of [7, 19]) {
        const ofRate = rows
          .filter((row) => row.vat === rate)
          .reduce((total, row) => total + (byLine.get(row.line_id) ?? 0), 0)
        expect(ofRate).toBe(
          sum(
            gone.filter((share) => share.rate === rate),
            'cent',
          ),
        )
      }
    }),
  )
})

it('an amount without lines is split over all rates in proportion', () => {
  expect(
    shareRefund(
      sharesOf([
        { cent: 7_000, rate: 7 },
        { cent: 3_000, rate: 19 },
      ]),
      [],
      1_000,
    ),
  ).toEqual([
    { rate: 7, cent: 700, tax: 46 },
    { rate: 19, cent: 300, tax: 48 },
  ])
})
