import { describe, expect, it } from 'vitest'
import { decide, countsAsOverride } from '../../policy/decide.ts'
import { completeCapabilities, type DeviceFacts } from '../../policy/devices.ts'
import { explainPolicy, type PolicyScenario } from '../../policy/policy-explanation.ts'
import { ProtectionPolicy } from '../../policy/store-policy.ts'
import { DENY_REASONS } from '../../policy/vocabulary.ts'
import { decisionVectors } from '../support/decision-vectors.ts'

describe('decide', () => {
  const vectors = decisionVectors()

  it.each(vectors.map((v) => [v.name, v] as const))(
    '%s',
    (_name, { facts, policy, expect: expected, unknownFacts }) => {
      const decision = decide(facts, policy)
      expect(decision.allowed ? 'allowed' : decision.reason).toBe(expected)
      expect(decision.trace.at(-1)?.passed).toBe(decision.allowed)
      expect(decision.unknownFacts).toEqual(unknownFacts)
    },
  )

  it('has a vector for every deny reason', () => {
    const covered = new Set(vectors.map((v) => v.expect))
    expect(DENY_REASONS.filter((reason) => !covered.has(reason))).toEqual([])
  })

  it('lists every check up to the failed one in the trace', () => {
    const first = vectors[0]
    if (!first) throw new Error('no vectors')
    expect(decide(first.facts, first.policy).trace.map((step) => step.check)).toEqual([...DENY_REASONS])
  })

  it('explains the decision of a policy at each stage', () => {
    const device: DeviceFacts = {
      deviceId: 'dev_1',
      storeId: 'st_1',
      deviceType: 'self_checkout_detacher',
      workflowType: 'self_service',
      ...completeCapabilities('self_checkout_detacher', {}),
      agentId: null,
      revoked: false,
    }
    const policy = ProtectionPolicy.parse({
      allowedActionsByCategory: { '*': { detach_hard_tag: ['self_service'] }, wine: {} },
      requiresManualOverrideAboveValue: 100,
      requiresStaffForBrand: ['Luxus'],
      offline: { hardCount: 5, maxIsolatedSeconds: 60 },
    })
    const question = {
      device,
      action: 'detach_hard_tag',
      category: 'shirts',
      brand: undefined,
      priceCent: 9_999,
      hasOperator: false,
    } as const
    const outcome = (changed: Partial<PolicyScenario>) =>
      explainPolicy({ ...question, ...changed }, policy).stages.map((s) => (s.authorized ? 'granted' : s.reason))
    const { entry, stages } = explainPolicy(question, policy)
    expect([entry, stages.map((s) => [s.stage, s.authorized, s.isolated])]).toEqual([
      '*',
      [
        ['fresh', true, { receipts: 5, seconds: 60 }],
        ['stale', true, { receipts: 2, seconds: 30 }],
        ['expired', false, { receipts: 2, seconds: 30 }],
      ],
    ])
    expect(outcome({})).toEqual(['granted', 'granted', 'policy_stale'])
    for (const staff of [{ priceCent: 10_000 }, { priceCent: undefined }, { brand: ' luxus' }])
      expect(outcome(staff)).toEqual(['manual_assistance_required', 'manual_assistance_required', 'policy_stale'])
    expect(outcome({ priceCent: 10_000, hasOperator: true })).toEqual(['granted', 'granted', 'policy_stale'])
    expect(outcome({ category: 'wine' })).toEqual(['action_not_allowed', 'action_not_allowed', 'policy_stale'])
    expect(outcome({ device: { ...device, workflowType: 'staff_assisted' } })).toEqual([
      'workflow_not_allowed',
      'workflow_not_allowed',
      'workflow_not_allowed',
    ])
    expect(outcome({ device: { ...device, revoked: true } })).toEqual([
      'device_revoked',
      'device_revoked',
      'device_revoked',
    ])
    const cabinet: DeviceFacts = {
      ...device,
      deviceType: 'cabinet_unlocker',
      workflowType: 'staff_assisted',
      ...completeCapabilities('cabinet_unlocker', {}),
    }
    expect(
      explainPolicy(
        { ...question, device: cabinet, action: 'unlock_fixture', hasOperator: true },
        ProtectionPolicy.parse({ offline: { storeBound: 'deny' } }),
      ),
    ).toMatchObject({
      entry: null,
      stages: [{ authorized: true, isolated: null }, { authorized: true }, { authorized: true }],
    })
  })

  it('treats a grant as an override only if staff were needed', () => {
    const byName = (part: string) => vectors.find((v) => v.name.includes(part))
    const needed = byName('a price at the threshold with an operator')
    const free = byName('a paid item at a self-checkout')
    if (!needed || !free) throw new Error('vectors are missing')
    expect(countsAsOverride(needed.facts, needed.policy)).toBe(true)
    expect(countsAsOverride({ ...free.facts, hasOperator: true }, free.policy)).toBe(false)
  })
})
