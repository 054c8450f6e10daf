import { z } from 'zod'
import { EventId, EventText, eventType, STORE, type EventType } from './event-type.ts'

const Member = { userId: EventId, programId: EventId, storeId: EventId }
const Points = {
  ...Member,
  amount: z.number(),
  newBalance: z.number(),
  transactionId: EventId.optional(),
  source: z.string().max(40).optional(),
}
const example = { userId: 'user-1', programId: 'lp_01KANX75G7R9T1W3Y5A7C9E1G3', storeId: STORE }
const pointsExample = { ...example, amount: 12, newBalance: 112 }

/** Events of loyalty programs. */
export const LOYALTY_EVENTS: readonly EventType[] = [
  eventType('loyalty.points_earned', {
    minimumPackage: 'GO',
    when: 'Points, stamps or cashback were credited.',
    data: z.strictObject(Points),
    example: { ...pointsExample, source: 'scan_and_go', transactionId: 'pur_01KANX70B2K4N6P8R0S2T4V6X8' },
  }),
  eventType('loyalty.points_redeemed', {
    minimumPackage: 'GO',
    when: 'redeemLoyaltyPoints has deducted points.',
    data: z.strictObject({ ...Points, rewardId: EventId.optional() }),
    example: { ...pointsExample, rewardId: 'rew_1' },
  }),
  eventType('loyalty.enrollment', {
    minimumPackage: 'GO',
    when: 'A user joins a program.',
    data: z.strictObject({ ...Member, source: z.string().max(40).optional() }),
    example,
  }),
  eventType('loyalty.reward_unlocked', {
    minimumPackage: 'GO',
    when: 'The balance of a user has reached the cost of a reward. Sent again each time this happens.',
    data: z.strictObject({
      ...Member,
      rewardId: EventId,
      rewardName: EventText.optional(),
      cost: z.number().optional(),
      newBalance: z.number().optional(),
    }),
    example: { ...example, rewardId: 'rew_1', cost: 100, newBalance: 112 },
  }),
  eventType('loyalty.tier_changed', {
    minimumPackage: 'PRIME',
    when: 'A user has moved to a higher or lower tier.',
    data: z.strictObject({
      ...Member,
      newTier: EventText.nullable(),
      previousTier: EventText.nullable(),
      direction: z.enum(['up', 'down']).optional(),
      newBalance: z.number().optional(),
    }),
    example: { ...example, newTier: 'Gold', previousTier: 'Silber', direction: 'up' },
  }),
  eventType('loyalty.qr_earned', {
    minimumPackage: 'GO',
    when: 'A user has earned points with a QR code at the counter. Sent in addition to `loyalty.points_earned`.',
    data: z.strictObject(Points),
    example: { ...pointsExample, source: 'qr_checkin' },
  }),
  eventType('loyalty.checkin_earned', {
    minimumPackage: 'GO',
    when: 'A user has earned points with a check-in at the store. Sent in addition to `loyalty.points_earned`.',
    data: z.strictObject(Points),
    example: { ...pointsExample, source: 'store_checkin' },
  }),
]
