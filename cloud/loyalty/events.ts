import { z } from 'zod'
import { EARNING_SOURCES } from './schema.ts'

/** `data` of loyalty events (specification, Events). */

const MemberFields = { userId: z.string(), programId: z.string(), storeId: z.string() }

const Earned = z.strictObject({
  ...MemberFields,
  amount: z.number(),
  newBalance: z.number(),
  transactionId: z.string().describe('The purchase, order or receipt; a generated id if there is none.'),
  source: z.enum(EARNING_SOURCES),
})

export const LOYALTY_EVENTS = {
  'loyalty.points_earned': Earned,
  'loyalty.qr_earned': Earned,
  'loyalty.checkin_earned': Earned,
  'loyalty.points_redeemed': z.strictObject({
    ...MemberFields,
    amount: z.number(),
    newBalance: z.number(),
    transactionId: z.string(),
    rewardId: z.string().optional(),
  }),
  'loyalty.enrollment': z.strictObject({ ...MemberFields, source: z.enum(EARNING_SOURCES) }),
  'loyalty.reward_unlocked': z.strictObject({
    ...MemberFields,
    rewardId: z.string(),
    rewardName: z.string(),
    cost: z.number(),
    newBalance: z.number(),
  }),
  'loyalty.tier_changed': z.strictObject({
    ...MemberFields,
    previousTier: z.string().nullable(),
    newTier: z.string().nullable(),
    direction: z.enum(['up', 'down']),
    newBalance: z.number(),
  }),
}

export type LoyaltyEvent = {
  [T in keyof typeof LOYALTY_EVENTS]: { type: T; storeId: string; data: z.infer<(typeof LOYALTY_EVENTS)[T]> }
}[keyof typeof LOYALTY_EVENTS]
