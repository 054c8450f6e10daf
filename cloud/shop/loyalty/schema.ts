import { z } from 'zod'
import { hasDecimals } from '../../../policy/decimals.ts'
import { scanned, text } from '../../platform/operations/fields.ts'

export const PROGRAM_TYPES = ['stamps', 'points', 'cashback', 'tier'] as const
export type ProgramType = (typeof PROGRAM_TYPES)[number]

const EARNING_METHODS = ['qr_checkin', 'store_checkin', 'scan_and_go', 'click_collect', 'till'] as const
export type EarningMethod = (typeof EARNING_METHODS)[number]

/** Sources of points: an earning method or the merchant. */
export const EARNING_SOURCES = [...EARNING_METHODS, 'manual'] as const
export type EarningSource = (typeof EARNING_SOURCES)[number]

const AMOUNT_LIMIT = 1_000_000
const REWARDS_LIMIT = 100
const TIERS_LIMIT = 20

/** Points or stamps (whole numbers) or EUR of cashback, depending on the program. */
export const Amount = z.number().positive().max(AMOUNT_LIMIT).describe('Points, stamps, or EUR of a cashback.')
const Threshold = z.number().min(0).max(AMOUNT_LIMIT).describe('Points, stamps, or EUR of a cashback.')

export const UserId = text(128).describe('The customer, by your own id.')

/** Code of a loyalty card. Readers may send the whole text of its QR code. */
export const CardCode = scanned(400).describe('Code of the loyalty card of the customer, or the text of its QR code.')

const RewardId = z.string().regex(/^[\x21-\x7e]{1,128}$/, 'must be 1 to 128 printable characters without spaces')
const RewardInput = z.strictObject({
  rewardId: RewardId.optional().describe('Generated if omitted.'),
  name: text(120),
  cost: Amount,
})
const Reward = z.strictObject({ rewardId: z.string(), name: z.string(), cost: z.number() })
const Tier = z.strictObject({ name: text(60), threshold: Threshold })

const different =
  <T>(of: (item: T) => unknown) =>
  (items: readonly T[]) =>
    new Set(items.map(of)).size === items.length

const Methods = z
  .array(z.enum(EARNING_METHODS))
  .min(1)
  .max(EARNING_METHODS.length)
  .refine(
    different((method) => method),
    'must not name a method twice',
  )

const decimals = (places: number) => (n: number) => hasDecimals(n, places)

/** Settings that a merchant chooses at creation and later. */
export const PROGRAM_SETTINGS = {
  earningMethods: Methods.optional().describe(
    'Default `["scan_and_go"]`; below the package GROW, which it needs, `["qr_checkin"]`.',
  ),
  rewards: z
    .array(RewardInput)
    .max(REWARDS_LIMIT)
    .refine(
      (rewards) => different((id) => id)(rewards.flatMap((r) => r.rewardId ?? [])),
      'must not use a rewardId twice',
    )
    .optional(),
  tiers: z
    .array(Tier)
    .max(TIERS_LIMIT)
    .refine(
      different((tier: z.infer<typeof Tier>) => tier.name),
      'must have different names',
    )
    .refine(
      different((tier: z.infer<typeof Tier>) => tier.threshold),
      'must have different thresholds',
    )
    .optional()
    .describe('The tier of a member is the highest whose threshold the balance reaches.'),
  pointsPerEuro: z
    .number()
    .min(0)
    .max(1_000)
    .refine(decimals(3), 'must have at most 3 decimals')
    .optional()
    .describe('For points and tier programs; default 1. Rounded down per purchase.'),
  stampsPerVisit: z
    .int()
    .min(1)
    .max(1_000)
    .optional()
    .describe('Default 1. In points and tier programs: points per check-in.'),
  cashbackPercent: z
    .number()
    .min(0)
    .max(100)
    .refine(decimals(2), 'must have at most 2 decimals')
    .optional()
    .describe('For cashback programs; default 1. Rounded half up to a cent.'),
  pointsValidMonths: z
    .int()
    .min(1)
    .max(120)
    .nullable()
    .optional()
    .describe('Calendar months until earnings expire; null (default): never. Applies to future earnings.'),
  isActive: z
    .boolean()
    .optional()
    .describe('Default true. An inactive program earns nothing; members may still redeem.'),
}

const PROGRAM_FIELDS = {
  programId: z.string(),
  storeId: z.string(),
  name: z.string(),
  type: z.enum(PROGRAM_TYPES),
  earningMethods: z.array(z.enum(EARNING_METHODS)),
  rewards: z.array(Reward),
  tiers: z.array(z.strictObject({ name: z.string(), threshold: z.number() })),
  pointsPerEuro: z.number(),
  stampsPerVisit: z.int(),
  cashbackPercent: z.number(),
  pointsValidMonths: z.int().nullable(),
  isActive: z.boolean(),
  checkInCode: z.string().describe('Content of the printed QR code; `loyaltyCheckIn` accepts it as `code`.'),
  createdAt: z.string(),
  updatedAt: z.string(),
}

/** A program as the API returns it. */
export const LoyaltyProgram = z.strictObject(PROGRAM_FIELDS)
export type LoyaltyProgram = z.infer<typeof LoyaltyProgram>

/** Membership of a customer. */
export const Membership = z.strictObject({
  userId: z.string(),
  balance: z.number(),
  tier: z.string().nullable(),
  enrolledAt: z.string().optional().describe('Absent if the customer is not a member.'),
})

/**
 * Fields that the system sets. A request may contain them if they are unchanged; the cloud then ignores them (ADR
 * requests).
 */
export const SYSTEM_FIELDS = {
  storeId: z.string().max(128).optional(),
  type: z.string().max(20).optional(),
  checkInCode: z.string().max(400).optional(),
  qrCodeImage: z.string().max(20_000).optional(),
  createdAt: z.string().max(40).optional(),
  updatedAt: z.string().max(40).optional(),
}
