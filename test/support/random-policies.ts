import fc from 'fast-check'
import { ProtectionPolicy } from '../../policy/store-policy.ts'

/** Categories with rules in random policies; items may have other categories too. */
export const RULED_CATEGORIES = ['tabak', 'schmuck'] as const
export const RULED_BRANDS = ['Luxus', 'Edel'] as const
/** Staff thresholds, EUR. */
export const THRESHOLDS = [null, 0, 40, 80] as const

const ACTIONS = ['detach_hard_tag', 'deactivate_label', 'authorize_exit', 'unlock_fixture'] as const
const workflows = fc.subarray(['self_service', 'staff_assisted', 'automatic_exit'] as const, { minLength: 0 })
const entry = fc.record(Object.fromEntries(ACTIONS.map((action) => [action, workflows])), { requiredKeys: [] })
/** Half of the entries allow everything. Without them few requests would be granted. */
const generous = fc.constant(
  Object.fromEntries(ACTIONS.map((action) => [action, ['self_service', 'staff_assisted', 'automatic_exit']])),
)

/** Policies with rules about category, brand and price. */
export const anyPolicy = fc
  .record({
    byCategory: fc.dictionary(fc.constantFrom('*', ...RULED_CATEGORIES), fc.oneof(generous, entry), { maxKeys: 3 }),
    threshold: fc.constantFrom(...THRESHOLDS),
    brands: fc.subarray([...RULED_BRANDS]),
  })
  .map(({ byCategory, threshold, brands }) =>
    ProtectionPolicy.parse({
      allowedActionsByCategory: byCategory,
      requiresManualOverrideAboveValue: threshold,
      requiresStaffForBrand: brands,
      operatorOverridesPerHour: 1_000,
    }),
  )
