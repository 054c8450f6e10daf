import { z } from 'zod'
import { ITEM_STATUSES } from '../vocabulary.ts'

/** What the tills of one agent reported, for the other agents of the store (ADR till-sales). */

/** Lifetime of a notice, s. The agent signs a new notice for each delivery. */
export const TILL_NOTICE_LIFE = 60
/** Maximum tags of a notice: more than a sale of 1,000 pieces with two names each. */
export const NOTICE_TAGS_LIMIT = 2_500

/** `till+jwt`, signed by the agent that took the reports. It names tags, and no goods, prices or people. */
export const TillNotice = z.strictObject({
  /** Store id. */
  aud: z.string(),
  iat: z.int().min(0),
  exp: z.int().min(0),
  iss: z.string().min(1).max(128),
  tags: z
    .array(
      z.strictObject({
        name: z.string().min(2).max(220),
        status: z.enum(ITEM_STATUSES),
        rank: z.int().min(1),
        epoch: z.int().min(0),
        ver: z.int().min(0).nullable(),
      }),
    )
    .min(1)
    .max(NOTICE_TAGS_LIMIT),
})
export type TillNotice = z.infer<typeof TillNotice>
