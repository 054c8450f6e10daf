import { z } from 'zod'
import { hasDecimals } from './decimals.ts'
import { refuseSameNames } from './fold-text.ts'
import { GatePolicy } from './gate-policy.ts'
import { VersionNumber } from './version.ts'
import { PROTECTION_ACTIONS, WORKFLOW_TYPES } from './vocabulary.ts'

/** Exclusive upper bounds of the risk classes 0 to 2: purchase total, cents. Class 3 has no bound. */
const RISK_CLASS_CEILINGS = [5_000, 20_000, 100_000] as const
export type RiskClass = 0 | 1 | 2 | 3

/** Risk class of a purchase total, cents. */
export function riskClassOf(totalCent: number): RiskClass {
  const index = RISK_CLASS_CEILINGS.findIndex((ceiling) => totalCent < ceiling)
  return (index < 0 ? 3 : index) as RiskClass
}

/** Exclusive upper bound of a risk class, cents; null for class 3. */
export function riskClassCeiling(riskClass: number): number | null {
  return RISK_CLASS_CEILINGS[riskClass] ?? null
}

const cents = (euros: number) => Math.round(euros * 100)
const hasCents = (euros: number) => hasDecimals(euros, 2)

/** Limits of an isolated agent (ADR 0016). */
export const OfflineLimits = z.strictObject({
  maxRiskClass: z.int().min(0).max(3).default(2).describe('Receipts of a higher class need staff.'),
  hardCount: z
    .int()
    .min(0)
    .max(10_000)
    .default(20)
    .describe('Maximum receipts, each with all its units, that an isolated agent honours. Further ones need staff.'),
  maxIsolatedSeconds: z
    .int()
    .min(0)
    .max(259_200)
    .default(14_400)
    .describe('How long an isolated agent honours receipts.'),
  storeBound: z.enum(['risk', 'deny']).default('risk').describe('`deny`: an isolated agent honours no receipts.'),
})

/** The protection policy of one store (ADR 0009). */
export const ProtectionPolicy = z.strictObject({
  allowedActionsByCategory: z
    .record(
      z.string().min(1).max(120),
      z.partialRecord(z.enum(PROTECTION_ACTIONS), z.array(z.enum(WORKFLOW_TYPES)).max(4)),
    )
    .default({})
    .refine((byCategory) => Object.keys(byCategory).length <= 500, 'at most 500 categories')
    .superRefine(refuseSameNames)
    .describe(
      'Per category, for each action the workflows in which it is allowed. The entry of a category replaces "*". An entry forbids the actions that it lacks, also for staff. Without any entry, all workflows but `self_service` are allowed. Case, Unicode form and the width of blanks do not matter.',
    ),
  requiresManualOverrideAboveValue: z
    .number()
    .min(0)
    .max(1_000_000)
    .refine(hasCents, 'at most 2 decimals')
    .nullable()
    .default(null)
    .describe('EUR: items at or above this price need staff.'),
  requiresStaffForBrand: z
    .array(z.string().min(1).max(120))
    .max(500)
    .superRefine(refuseSameNames)
    .default([])
    .describe('Brands whose items need staff. Case, Unicode form and the width of blanks do not matter.'),
  offline: OfflineLimits.default(() => OfflineLimits.parse({})),
  unknownTag: z
    .enum(['ignore', 'notify', 'siren'])
    .default('notify')
    .describe('Reaction of a gate to a tag whose payment state is unknown.'),
  gate: GatePolicy.default(() => GatePolicy.parse({})).describe('Rules of exit gates.'),
  operatorOverridesPerHour: z
    .int()
    .min(0)
    .max(1_000)
    .default(10)
    .describe('Maximum overrides per operator and hour. The cloud and each offline agent count separately.'),
  spotCheckRate: z.number().min(0).max(1).default(0).describe('Share of checkouts that staff check.'),
  minAgent: VersionNumber.optional().describe(
    'Agents of an older release reject this policy with `agent_too_old`. They keep their previous policy, which ages.',
  ),
  home: z
    .string()
    .min(1)
    .max(128)
    .default('cloud')
    .describe('Where receipts are redeemed: an agentId or `cloud`. Change it with moveReceiptHome.'),
  homeEpoch: z.int().min(0).default(0),
})
export type ProtectionPolicy = z.infer<typeof ProtectionPolicy>

export const DEFAULT_POLICY: ProtectionPolicy = ProtectionPolicy.parse({})

/** Price from which staff must approve, cents; null without a threshold. */
export function overrideThresholdCent(policy: ProtectionPolicy): number | null {
  return policy.requiresManualOverrideAboveValue === null ? null : cents(policy.requiresManualOverrideAboveValue)
}

/** Policy stage by the age of the freshness (ADR 0016): `stale` halves limits, `expired` leaves only staff. */
export type PolicyStage = 'fresh' | 'stale' | 'expired'

/** Returns the limit if the policy is fresh, else half of the limit. */
export function limitAt(limit: number, stage: PolicyStage): number {
  return stage === 'fresh' ? limit : Math.floor(limit / 2)
}

const FRESH_SECONDS = 15 * 60
const EXPIRED_SECONDS = 80 * 3_600

/** `ageSeconds`: age of the last accepted freshness document that names this policy. */
export function policyStage(ageSeconds: number): PolicyStage {
  if (ageSeconds <= FRESH_SECONDS) return 'fresh'
  return ageSeconds <= EXPIRED_SECONDS ? 'stale' : 'expired'
}
