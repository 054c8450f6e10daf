import { z } from 'zod'
import { EARNING_SOURCES } from './schema.ts'

/** The `data` of loyalty events (specification, Events). */

const Whom = { userId: z.string(), programId: z.string(), storeId: z.string() }

const Earned = z.strictObject({
  ...Whom,
  amount: z.number(),
  newBalance: z.number(),
  transactionId: z.string().describe('The purchase, order or receipt that earned; of its own where there is none.'),
  source: z.enum(EARNING_SOURCES),
})

export const LOYALTY_EVENTS = {
  'loyalty.points_earned': Earned,
  'loyalty.qr_earned': Earned,
  'loyalty.checkin_earned': Earned,
  'loyalty.points_redeemed': z.strictObject({
    ...Whom,
    amount: z.number(),
    newBalance: z.number(),
    transactionId: z.string(),
    rewardId: z.string().optional(),
  }),
  'loyalty.enrollment': z.strictObject({ ...Whom, source: z.enum(EARNING_SOURCES) }),
  'loyalty.reward_unlocked': z.strictObject({
    ...Whom,
    rewardId: z.string(),
    rewardName: z.string(),
    cost: z.number(),
    newBalance: z.number(),
  }),
  'loyalty.tier_changed': z.strictObject({
    ...Whom,
    previousTier: z.string().nullable(),
    newTier: z.string().nullable(),
    direction: z.enum(['up', 'down']),
    newBalance: z.number(),
  }),
}

export type LoyaltyEvent = {
  [T in keyof typeof LOYALTY_EVENTS]: { type: T; storeId: string; data: z.infer<(typeof LOYALTY_EVENTS)[T]> }
}[keyof typeof LOYALTY_EVENTS]
