import fc from 'fast-check'
import { expect, it } from 'vitest'
import { mergeOutcomes, mergeRedemptions, type UnitRedemption } from '../../policy/authorization-state.ts'
import { OUTCOMES, type Outcome } from '../../policy/vocabulary.ts'

const outcome = fc.constantFrom(null, ...OUTCOMES)
const uses = fc
  .uniqueArray(
    fc.record({
      redemptionId: fc.constantFrom('a', 'b', 'c', 'd'),
      nonce: fc.constantFrom('n1', 'n2', 'cti'),
      deviceId: fc.constant('dev'),
      atMs: fc.integer({ min: 0, max: 3 }),
      outcome,
    }),
    { selector: ({ redemptionId, nonce }) => `${redemptionId}${nonce}`, maxLength: 5 },
  )
  .map((all) => all.map((use): UnitRedemption => ({ ...use, source: use.nonce === 'cti' ? 'receipt' : 'token' })))

it('mergeRedemptions gives the same result in any order', () => {
  fc.assert(
    fc.property(
      uses.chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
      ([all, shuffled]) => {
        expect(mergeRedemptions(shuffled, 'release')).toEqual(mergeRedemptions(all, 'release'))
      },
    ),
  )
})

it('mergeRedemptions frees a right only if all redemptions failed, and prefers a confirmed one', () => {
  fc.assert(
    fc.property(uses, (all) => {
      const { effective, failures, isDouble } = mergeRedemptions(all, 'release')
      expect(effective === null).toBe(all.every((each) => each.outcome === 'failed'))
      expect(failures).toBe(all.filter((each) => each.outcome === 'failed').length)
      if (all.some((each) => each.outcome === 'confirmed')) expect(effective?.outcome).toBe('confirmed')
      if (all.filter((each) => each.outcome === 'confirmed' && each.source === 'receipt').length > 1)
        expect(isDouble).toBe(true)
    }),
  )
})

it('mergeOutcomes returns the most certain outcome in any order, and reports a conflict', () => {
  const mergeAll = (outcomes: readonly Outcome[]) =>
    outcomes.reduce<{ known: Outcome | null; isConflict: boolean }>(
      ({ known, isConflict }, outcome) => {
        const merged = mergeOutcomes(known, outcome)
        return { known: merged.outcome, isConflict: isConflict || merged.isConflict }
      },
      { known: null, isConflict: false },
    )
  fc.assert(
    fc.property(
      fc
        .array(fc.constantFrom(...OUTCOMES), { maxLength: 5 })
        .chain((all) => fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))),
      ([all, shuffled]) => {
        expect(mergeAll(shuffled)).toEqual(mergeAll(all))
        expect(mergeAll(all).isConflict).toBe(all.includes('confirmed') && all.includes('failed'))
      },
    ),
  )
})

it('mergeRedemptions counts no opening of a fixture by staff as double', () => {
  const use = (redemptionId: string, source: UnitRedemption['source']): UnitRedemption => ({
    redemptionId,
    nonce: redemptionId,
    source,
    deviceId: 'dev',
    atMs: 0,
    outcome: 'confirmed',
  })
  const byStaff = [use('a', 'item'), use('b', 'receipt'), use('c', 'item')]
  expect(mergeRedemptions(byStaff, 'open')).toMatchObject({ isDouble: false, effective: { redemptionId: 'a' } })
  expect(mergeRedemptions(byStaff, 'release').isDouble).toBe(true)
  expect(mergeRedemptions([...byStaff, use('d', 'token')], 'open').isDouble).toBe(true)
})
