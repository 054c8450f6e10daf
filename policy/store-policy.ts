import { z } from 'zod'
import { hasDecimals } from './decimals.ts'
import { refuseSameNames, foldText } from './fold-text.ts'
import { VersionNumber } from './version.ts'
import { PROTECTION_ACTIONS, WORKFLOW_TYPES } from './vocabulary.ts'
import { decodeEpc } from './gs1/epc-schemes.ts'

/** Reaction of a gate to a leaving tag: a record only, the light, or the siren. */
const SEVERITIES = ['silent', 'notify', 'siren'] as const
export type Severity = (typeof SEVERITIES)[number]

const MASK = 'the first hex digits of an EPC, ? for any digit, such as "3034????5C"'
const Masks = z.array(z.string().regex(/^[0-9A-Fa-f?]{1,124}$/, `must be ${MASK}`)).max(50)

const SeverityRule = z.strictObject({
  category: z
    .string()
    .min(1)
    .max(120)
    .refine((category) => foldText(category) !== '', 'must not be blank')
    .optional()
    .describe('Category of the item; absent: any.'),
  fromValue: z
    .number()
    .min(0)
    .max(1_000_000)
    .optional()
    .describe('EUR: items at or above this price. An unknown price does not match.'),
  severity: z.enum(SEVERITIES),
})

/** Rules of exit gates. */
export const GatePolicy = z.strictObject({
  severity: z
    .array(SeverityRule)
    .max(100)
    .default([])
    .describe('The first matching rule sets the severity of an unpaid item. Without a match the siren sounds.'),
  ownPrefixes: z
    .array(z.string().regex(/^\d{6,12}$/, 'must be a GS1 company prefix, 6 to 12 digits'))
    .max(50)
    .default([])
    .describe(
      'GS1 company prefixes of this store’s tags, in any EPC scheme of GS1. If ownPrefixes or ownMasks are set, gates ignore all other unregistered tags.',
    ),
  ownMasks: Masks.default([]).describe(`Beginnings of this store’s EPCs: ${MASK}.`),
  alarmMasks: Masks.default([]).describe('Beginnings of EPCs that always alarm, such as unregistered hard tags.'),
  bulk: z
    .strictObject({ tags: z.int().min(2).max(100).default(5), seconds: z.int().min(1).max(30).default(3) })
    .default({ tags: 5, seconds: 3 })
    .describe('This many unpaid items within this many seconds are one bulk alarm, which always sounds the siren.'),
  replenishment: z
    .strictObject({
      tags: z.int().min(0).max(10_000).default(100),
      seconds: z.int().min(1).max(60).default(10),
      muteSeconds: z.int().min(1).max(3_600).default(120),
    })
    .default({ tags: 100, seconds: 10, muteSeconds: 120 })
    .describe(
      'This many tags within this many seconds count as goods that staff move. After the first alarm the siren stays silent for muteSeconds. 0 tags: never.',
    ),
})
export type GatePolicy = z.infer<typeof GatePolicy>

export const DEFAULT_GATE_POLICY: GatePolicy = GatePolicy.parse({})

/**
 * Severity of an unpaid item, and the number of the matching rule. Numbers start at 1; 0 means that no rule matches.
 * `priceCent` undefined: unknown.
 */
export function severityOf(
  { severity: rules }: GatePolicy,
  item: { category?: string | undefined; priceCent?: number | undefined },
): { severity: Severity; rule: number } {
  const category = foldText(item.category ?? '')
  const fits = (rule: z.infer<typeof SeverityRule>) =>
    (rule.category === undefined || foldText(rule.category) === category) &&
    (rule.fromValue === undefined ||
      (item.priceCent !== undefined && item.priceCent >= Math.round(rule.fromValue * 100)))
  const index = rules.findIndex(fits)
  return { severity: rules[index]?.severity ?? 'siren', rule: index + 1 }
}

/**
 * Owner of an unregistered tag. `alarm`: the tag matches `alarmMasks`. `unclear`: the policy sets neither `ownPrefixes`
 * nor `ownMasks`.
 */
type TagOwner = 'own' | 'foreign' | 'unclear' | 'alarm'

/**
 * Finds the owner by the beginning of the EPC (upper-case hex) and by the company prefix of any GS1 scheme. No company
 * prefix begins with another one. `epc` is undefined for a tag without EPC.
 */
export function tagOwnerOf({ alarmMasks, ownMasks, ownPrefixes }: GatePolicy, epc: string | undefined): TagOwner {
  if (epc === undefined) return ownMasks.length + ownPrefixes.length === 0 ? 'unclear' : 'foreign'
  if (alarmMasks.some((mask) => fitsMask(mask, epc))) return 'alarm'
  if (ownMasks.length + ownPrefixes.length === 0) return 'unclear'
  if (ownMasks.some((mask) => fitsMask(mask, epc))) return 'own'
  const owner = ownPrefixes.length > 0 ? decodeEpc(epc)?.owner : undefined
  return owner !== undefined && ownPrefixes.some((prefix) => owner.startsWith(prefix)) ? 'own' : 'foreign'
}

function fitsMask(mask: string, epc: string): boolean {
  if (mask.length > epc.length) return false
  for (let i = 0; i < mask.length; i++) if (mask[i] !== '?' && mask[i]?.toUpperCase() !== epc[i]) return false
  return true
}

/** Exclusive upper bounds of the risk classes 0 to 2: purchase total, cents. Class 3 has no bound. */
const RISK_CLASS_CEILINGS = [5_000, 20_000, 100_000] as const
type RiskClass = 0 | 1 | 2 | 3

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

/** Limits of an isolated agent (ADR trusted-time). */
const OfflineLimits = z.strictObject({
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

/** Limits of a lying till (ADR till-sales). */
const TillSales = z.strictObject({
  agents: z
    .array(z.string().min(1).max(128))
    .max(100)
    .default([])
    .describe('Ids of the agents that may record sales of tills, also without network.'),
  salesPerHour: z
    .int()
    .min(0)
    .max(100_000)
    .default(1_000)
    .describe('Sales of one till in an hour. Further ones are recorded, but release nothing.'),
  valuePerHour: z
    .number()
    .min(0)
    .max(10_000_000)
    .default(100_000)
    .describe('EUR: value of the sales of one till in an hour. Further ones are recorded, but release nothing.'),
  codes: z
    .enum(['barrier', 'release'])
    .default('barrier')
    .describe(
      'What a code that a till prints does. `barrier`: it opens one barrier. `release`: it also releases labels by their product, if it has 40 random bits.',
    ),
  passByProduct: z
    .int()
    .min(0)
    .max(120)
    .default(0)
    .describe(
      'Minutes after a sale at an agent in which gates let one tag of a product pass for each piece that the till sold without naming its tag. For tills that read no tags. 0: never.',
    ),
})

/** The protection policy of one store (ADR releases). */
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
  tillSales: TillSales.default(() => TillSales.parse({})).describe('Limits of sales that tills report.'),
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

/** Policy stage by the age of the freshness (ADR trusted-time): `stale` halves limits, `expired` leaves only staff. */
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
