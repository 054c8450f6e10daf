import { describe, expect, it } from 'vitest'
import { decide, restsOnOperator } from '../../policy/decide.ts'
import { DENY_REASONS } from '../../policy/vocabulary.ts'
import { decisionVectors } from '../support/decision-vectors.ts'

describe('decide', () => {
  const vectors = decisionVectors()

  it.each(vectors.map((v) => [v.name, v] as const))('%s', (_name, { facts, policy, expect: expected }) => {
    const decision = decide(facts, policy)
    expect(decision.allowed ? 'allowed' : decision.reason).toBe(expected)
    expect(decision.trace.at(-1)?.passed).toBe(decision.allowed)
  })

  it('tells every reason in some vector, so that none can go untested', () => {
    const told = new Set(vectors.map((v) => v.expect))
    expect(DENY_REASONS.filter((reason) => !told.has(reason))).toEqual([])
  })

  it('explains all that was checked up to the answer', () => {
    const first = vectors[0]
    if (!first) throw new Error('no vectors')
    expect(decide(first.facts, first.policy).trace.map((step) => step.check)).toEqual([...DENY_REASONS])
  })

  it('counts a grant as resting on the operator only where staff were needed', () => {
    const byName = (part: string) => vectors.find((v) => v.name.includes(part))
    const needed = byName('a price at the threshold with an operator')
    const free = byName('a paid item at a self-checkout')
    if (!needed || !free) throw new Error('vectors are missing')
    expect(restsOnOperator(needed.facts, needed.policy)).toBe(true)
    expect(restsOnOperator({ ...free.facts, operator: true }, free.policy)).toBe(false)
  })
})
