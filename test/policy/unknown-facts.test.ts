import fc from 'fast-check'
import { expect, it } from 'vitest'
import { decide, type DecisionFacts, type ItemFacts } from '../../policy/decide.ts'
import { decideUnits } from '../../policy/decide-units.ts'
import { completeCapabilities, releaseActionOf, type DeviceFacts } from '../../policy/devices.ts'
import { DEFAULT_WORKFLOW, ITEM_FACT_NAMES, ITEM_STATUSES, type ItemFactName } from '../../policy/vocabulary.ts'
import { anyPolicy, RULED_BRANDS, RULED_CATEGORIES } from '../support/random-policies.ts'

const DEVICES: DeviceFacts[] = (['self_checkout_detacher', 'pos_deactivator', 'exit_gate'] as const).map(
  (deviceType) => ({
    deviceId: `dev_${deviceType}`,
    storeId: 'st_1',
    deviceType,
    workflowType: DEFAULT_WORKFLOW[deviceType],
    ...completeCapabilities(deviceType, {}),
    agentId: null,
    revoked: false,
  }),
)
const FIELDS = { category: 'category', brand: 'brand', price: 'priceCent' } as const

const anyItem: fc.Arbitrary<ItemFacts> = fc.record({
  status: fc.constantFrom('paid' as const, 'paid' as const, ...ITEM_STATUSES),
  category: fc.constantFrom('', 'hemden', ...RULED_CATEGORIES),
  brand: fc.constantFrom('', 'Nordhof', 'luxus ', ...RULED_BRANDS),
  priceCent: fc.constantFrom(0, 3_000, 4_000, 7_999, 8_000),
})
/** Each device with its release or exit action. */
const DEVICE_ACTIONS = DEVICES.map((device) => ({
  device,
  action: releaseActionOf(device) ?? ('authorize_exit' as const),
}))
const anyFacts: fc.Arbitrary<DecisionFacts> = fc
  .record({
    deviceAndAction: fc.constantFrom(...DEVICE_ACTIONS),
    storeId: fc.constant('st_1'),
    clockTrusted: fc.constantFrom(true, true, false),
    stage: fc.constantFrom('fresh', 'stale', 'expired'),
    item: anyItem,
    identifiedBy: fc.constant([]),
    right: fc.constantFrom('free' as const, 'free' as const, 'used' as const),
    hasOperator: fc.constantFrom(false, false, true),
  })
  .map(({ deviceAndAction, ...facts }) => ({ ...facts, ...deviceAndAction }))
const anyOmitted = fc.subarray([...ITEM_FACT_NAMES], { minLength: 1 })

function omit(facts: DecisionFacts, omitted: readonly ItemFactName[]): DecisionFacts {
  const known = Object.entries(facts.item ?? {}).filter(([field]) => !omitted.some((fact) => FIELDS[fact] === field))
  return { ...facts, item: Object.fromEntries(known) as unknown as ItemFacts }
}

it('decides the same without an item fact, or decides more strictly and names the fact', () => {
  let stricter = 0
  fc.assert(
    fc.property(anyFacts, anyPolicy, anyOmitted, (facts, policy, omitted) => {
      const [full, partial] = [decide(facts, policy), decide(omit(facts, omitted), policy)]
      expect(full.unknownFacts).toEqual([])
      expect(partial.unknownFacts.filter((fact) => !omitted.includes(fact))).toEqual([])
      const isSame = full.allowed ? partial.allowed : !partial.allowed && full.reason === partial.reason
      if (isSame) return
      stricter++
      expect(partial.allowed && !full.allowed).toBe(false)
      expect(partial.unknownFacts).not.toEqual([])
    }),
    { numRuns: 5_000 },
  )
  expect(stricter).toBeGreaterThan(100)
})

it('names the unknown fact in the trace', () => {
  fc.assert(
    fc.property(anyFacts, anyPolicy, anyOmitted, (facts, policy, omitted) => {
      const [full, partial] = [decide(facts, policy), decide(omit(facts, omitted), policy)]
      if (full.allowed && !partial.allowed)
        expect(partial.trace.at(-1)?.detail).toMatch(/(category|brand|price) is unknown$/)
    }),
    { numRuns: 2_000 },
  )
})

it('allows the same units together as separately', () => {
  fc.assert(
    fc.property(anyFacts, fc.array(anyItem, { minLength: 1, maxLength: 4 }), anyPolicy, (facts, items, policy) => {
      const [first, ...others] = items.map((item): DecisionFacts => ({ ...facts, item }))
      if (!first) throw new Error('no unit')
      const alone = [first, ...others].map((unit) => decide(unit, policy))
      const { decision, allowed } = decideUnits([first, ...others], policy)
      expect(allowed).toEqual(alone.flatMap((each, n) => (each.allowed ? [n] : [])))
      expect(decision.allowed).toBe(allowed.length > 0)
      if (!decision.allowed) expect(decision).toEqual(alone[0])
    }),
    { numRuns: 500 },
  )
})
