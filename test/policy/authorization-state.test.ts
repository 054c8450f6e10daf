import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { deriveAuthorizationState, type RedemptionEvidence } from '../../policy/authorization-state.ts'

const EXP = 600_000
const evidence = (redemptionId: string, step: number, atMs: number): RedemptionEvidence => ({
  redemptionId,
  step,
  atMs,
})

describe('deriveAuthorizationState', () => {
  it('is issued at first and expires at its expiry time', () => {
    expect(deriveAuthorizationState({ expMs: EXP, evidence: [] }, EXP - 1).state).toBe('issued')
    expect(deriveAuthorizationState({ expMs: EXP, evidence: [] }, EXP).state).toBe('expired')
  })

  it('is redeemed by evidence of a claim in time, even if it arrives much later', () => {
    const view = deriveAuthorizationState({ expMs: EXP, evidence: [evidence('r1', 1, EXP)] }, EXP * 100)
    expect(view).toMatchObject({ state: 'redeemed', redeemedAtMs: EXP })
    expect([...view.exceptions]).toEqual([])
  })

  it('keeps its state and reports late_redeem if the claim is later than the expiry', () => {
    const view = deriveAuthorizationState({ expMs: EXP, evidence: [evidence('r1', 1, EXP + 1)] }, EXP * 2)
    expect(view.state).toBe('expired')
    expect([...view.exceptions]).toEqual(['late_redeem'])
  })

  it('prefers a redemption to a later revocation, without an exception', () => {
    const view = deriveAuthorizationState(
      { expMs: EXP, revokedAtMs: 5_000, evidence: [evidence('r1', 1, 4_999)] },
      6_000,
    )
    expect(view.state).toBe('redeemed')
    expect([...view.exceptions]).toEqual([])
  })

  it('reports redeemed_after_revocation', () => {
    const view = deriveAuthorizationState(
      { expMs: EXP, revokedAtMs: 5_000, evidence: [evidence('r1', 1, 5_000)] },
      6_000,
    )
    expect(view.state).toBe('redeemed')
    expect([...view.exceptions]).toEqual(['redeemed_after_revocation'])
  })

  it('treats a redemption reported twice as one, and another redemption id as double', () => {
    const twice = { expMs: EXP, evidence: [evidence('r1', 1, 10), evidence('r1', 1, 10)] }
    expect([...deriveAuthorizationState(twice, 20).exceptions]).toEqual([])
    const double = { expMs: EXP, evidence: [evidence('r1', 1, 10), evidence('r2', 1, 11)] }
    expect([...deriveAuthorizationState(double, 20).exceptions]).toEqual(['double_redeem'])
    const steps = { expMs: EXP, evidence: [evidence('r1', 1, 10), evidence('r2', 2, 11)] }
    expect([...deriveAuthorizationState(steps, 20).exceptions]).toEqual([])
  })

  it('does not depend on the order of the facts', () => {
    const anyEvidence = fc.record({
      redemptionId: fc.constantFrom('r1', 'r2', 'r3'),
      step: fc.constantFrom(1, 2),
      atMs: fc.integer({ min: 0, max: EXP * 2 }),
    })
    const anyFacts = fc.record({
      revokedAtMs: fc.option(fc.integer({ min: 0, max: EXP * 2 }), { nil: undefined }),
      evidence: fc.array(anyEvidence, { maxLength: 6 }),
    })
    fc.assert(
      fc.property(anyFacts, fc.integer({ min: 0, max: EXP * 3 }), fc.infiniteStream(fc.nat()), (facts, now, order) => {
        const shuffled = facts.evidence
          .map((e) => ({ e, key: order.next().value }))
          .sort((a, b) => a.key - b.key)
          .map(({ e }) => e)
        const one = deriveAuthorizationState({ ...facts, expMs: EXP }, now)
        const other = deriveAuthorizationState({ ...facts, expMs: EXP, evidence: [...shuffled, ...shuffled] }, now)
        expect(other.state).toBe(one.state)
        expect(other.redeemedAtMs).toBe(one.redeemedAtMs)
        expect([...other.exceptions].sort()).toEqual([...one.exceptions].sort())
      }),
      { numRuns: 2_000 },
    )
  })
})
