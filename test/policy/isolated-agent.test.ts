import { describe, expect, it } from 'vitest'
import { completeCapabilities, type DeviceFacts } from '../../policy/devices.ts'
import { explainPolicy } from '../../policy/policy-explanation.ts'
import { worstCaseLoss } from '../../policy/decide-units.ts'
import { ProtectionPolicy } from '../../policy/store-policy.ts'
import { DEFAULT_WORKFLOW, type DeviceType } from '../../policy/vocabulary.ts'

const deviceOf = (deviceType: DeviceType, agentId: string | null = null): DeviceFacts => ({
  deviceId: `dev_${deviceType}`,
  storeId: 'st_1',
  deviceType,
  workflowType: DEFAULT_WORKFLOW[deviceType],
  ...completeCapabilities(deviceType, {}),
  agentId,
  revoked: false,
})
const gate = deviceOf('exit_gate')
const detacher = deviceOf('self_checkout_detacher', 'agent_1')
const policyOf = (fields: object) => ProtectionPolicy.parse(fields)
const lossOf = (fields: object, devices = [gate]) => worstCaseLoss(policyOf(fields), devices)

describe('worstCaseLoss', () => {
  it('is ledgers × receipts × the ceiling of the risk class, in EUR', () => {
    expect(lossOf({}, [gate, gate])).toBe(2 * 20 * 1_000)
    expect(lossOf({ offline: { maxRiskClass: 0 } }, [gate, gate, gate])).toBe(3 * 20 * 50)
    expect(lossOf({}, [gate, deviceOf('pos_deactivator', 'agent_1'), deviceOf('pos_deactivator', 'agent_2')])).toBe(
      2 * 20 * 1_000,
    )
    expect(lossOf({ offline: { maxRiskClass: 3 } })).toBeNull()
  })

  it.each([
    ['no receipt is honoured', { offline: { storeBound: 'deny' } }, [gate]],
    ['no receipt is counted', { offline: { hardCount: 0 } }, [gate]],
    ['no time passes', { offline: { maxIsolatedSeconds: 0 } }, [gate]],
    ['every category is forbidden', { allowedActionsByCategory: { '*': {} } }, [gate]],
    [
      'no workflow of the store is allowed',
      { allowedActionsByCategory: { '*': { authorize_exit: ['staff_assisted'] } } },
      [gate],
    ],
    ['self-service needs an entry and the policy has none', {}, [detacher]],
    [
      'every item needs staff',
      { requiresManualOverrideAboveValue: 0, allowedActionsByCategory: { '*': { detach_hard_tag: ['self_service'] } } },
      [detacher],
    ],
    ['there is no device', {}, []],
    ['the device is out of service', {}, [{ ...gate, revoked: true }]],
    ['a cabinet opens for staff only', {}, [deviceOf('cabinet_unlocker', 'agent_1')]],
  ])('is 0 if %s', (_name, fields, devices) => {
    expect(lossOf(fields, devices)).toBe(0)
  })

  it('counts only devices that release some category', () => {
    const rules = { '*': {}, hemden: { detach_hard_tag: ['self_service'] } }
    expect(lossOf({ allowedActionsByCategory: rules }, [gate, gate, detacher])).toBe(20 * 1_000)
  })

  it('counts agents whose cabinets open for a receipt without staff', () => {
    const rules = { allowedActionsByCategory: { '*': { unlock_fixture: ['self_service'] } } }
    const cabinet = { ...deviceOf('cabinet_unlocker', 'agent_1'), workflowType: 'self_service' as const }
    expect(lossOf(rules, [cabinet, { ...cabinet, agentId: 'agent_2' }])).toBe(2 * 20 * 1_000)
  })

  it('counts only prices below the threshold for staff', () => {
    const rules = { allowedActionsByCategory: { '*': { detach_hard_tag: ['self_service'] } } }
    const below = (price: number, fields = {}) =>
      lossOf({ ...rules, requiresManualOverrideAboveValue: price, ...fields }, [detacher])
    expect(below(10)).toBeCloseTo(20 * 32 * 9.99)
    expect(below(10, { offline: { maxRiskClass: 3 } })).toBeCloseTo(20 * 32 * 9.99)
    expect(below(500)).toBe(20 * 1_000)
  })

  it('counts all prices at gates, which let paid goods pass without staff', () => {
    expect(lossOf({ requiresManualOverrideAboveValue: 10 })).toBe(20 * 1_000)
  })
})

describe('worstCaseLoss of many devices and categories', () => {
  it('does not try each category at each kind of device', () => {
    let reads = 0
    const named = Array.from({ length: 499 }, (_, n) => [`category ${n}`, {}])
    const policy = policyOf({
      allowedActionsByCategory: Object.fromEntries([...named, ['last', { authorize_exit: ['pos_integrated'] }]]),
    })
    const counted = {
      ...policy,
      allowedActionsByCategory: new Proxy(policy.allowedActionsByCategory, {
        get: (target, name, self) => (reads++, Reflect.get(target, name, self)),
      }),
    }
    const names = Object.keys(gate.capabilities)
    const kinds = Array.from({ length: 2 ** names.length }, (_, bits) => ({
      ...gate,
      workflowType: 'pos_integrated' as const,
      capabilities: Object.fromEntries(names.map((name, n) => [name, (bits & (1 << n)) !== 0])) as never,
    }))
    expect(worstCaseLoss(counted, kinds)).toBeGreaterThan(0)
    expect(reads).toBeLessThan(20_000)
  })
})

describe('worstCaseLoss with passes by product', () => {
  const passes = { tillSales: { passByProduct: 15 } }
  it('adds pieces × gates, each below the price for staff', () => {
    expect(lossOf({ ...passes }, [gate, gate])).toBe(2 * 20 * 1_000 + 2 * 20 * 1_000)
    expect(lossOf({ ...passes, requiresManualOverrideAboveValue: 10 })).toBeCloseTo(20 * 1_000 + 20 * 9.99)
  })
  it('adds nothing without a gate, or where isolated agents release nothing', () => {
    expect(lossOf(passes, [deviceOf('pos_deactivator', 'agent_1')])).toBe(
      lossOf({}, [deviceOf('pos_deactivator', 'agent_1')]),
    )
    expect(lossOf({ ...passes, offline: { storeBound: 'deny' } })).toBe(0)
    expect(lossOf({ ...passes, offline: { maxRiskClass: 3 } })).toBeNull()
  })
})

describe('the offline prediction of a policy explanation', () => {
  const question = {
    device: detacher,
    action: 'detach_hard_tag',
    category: 'hemden',
    brand: 'Nordhof',
    priceCent: 3_000,
    hasOperator: false,
  } as const
  const rules = {
    allowedActionsByCategory: { '*': { detach_hard_tag: ['self_service'] }, tabak: {} },
    requiresStaffForBrand: ['Luxus'],
    requiresManualOverrideAboveValue: 40,
  }
  const offline = (changed: object, fields: object = {}) =>
    explainPolicy({ ...question, ...changed }, policyOf({ ...rules, ...fields })).offline

  it('uses all facts that the scenario contains', () => {
    expect(offline({})).toEqual({ authorized: true, unknownFacts: [] })
    expect(offline({ category: 'tabak' })).toEqual({
      authorized: false,
      reason: 'action_not_allowed',
      unknownFacts: [],
    })
    expect(offline({ priceCent: 4_000 })).toMatchObject({ reason: 'manual_assistance_required', unknownFacts: [] })
    expect(offline({ priceCent: 4_000, hasOperator: true })).toEqual({ authorized: true, unknownFacts: [] })
  })

  it('is the strictest one without a fact, and names the fact', () => {
    expect(offline({ category: undefined })).toEqual({
      authorized: false,
      reason: 'action_not_allowed',
      unknownFacts: ['category'],
    })
    expect(offline({ brand: undefined, priceCent: undefined })).toEqual({
      authorized: false,
      reason: 'manual_assistance_required',
      unknownFacts: ['brand', 'price'],
    })
    const { stages } = explainPolicy({ ...question, category: undefined, brand: undefined }, policyOf(rules))
    expect(stages[0]?.authorized).toBe(true)
  })

  it('applies the limits of isolated agents, but not to the receipt home', () => {
    const deny = { offline: { storeBound: 'deny' } }
    expect(offline({}, deny)).toEqual({ authorized: false, reason: 'limit_exceeded', unknownFacts: [] })
    expect(offline({}, { ...deny, home: 'agent_1' })).toEqual({ authorized: true, unknownFacts: [] })
    expect(offline({}, { offline: { maxRiskClass: 0 } })).toMatchObject({ authorized: true })
    const dear = { requiresManualOverrideAboveValue: null, offline: { maxRiskClass: 0 } }
    expect(offline({ priceCent: 5_000 }, dear)).toMatchObject({ reason: 'limit_exceeded' })
  })
})
