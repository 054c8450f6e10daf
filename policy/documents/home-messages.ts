import { z } from 'zod'
import { DENY_REASONS, OUTCOMES, RIGHT_CLASSES } from '../vocabulary.ts'

/** What an agent asks of the home of its store's receipts, and what that answers (ADR 0012). */

const Common = { aud: z.string(), iat: z.int().min(0), exp: z.int().min(0) }
/** Life of a question and of its answer, seconds. */
export const HOME_MESSAGE_LIFE = 60

/** `ask+jwt`, signed by the asking agent, for the home. The redemption id is committed before: a repeated question gets the same answer. */
export const HomeRequest = z.strictObject({
  ...Common,
  iss: z.string().max(128),
  /** Names this very question; only the answer that carries it counts. */
  jti: z.string().min(16).max(64),
  homeEpoch: z.int().min(0),
  redemptionId: z.string().min(1).max(64),
  cti: z.string().regex(/^[0-9a-f]{32}$/),
  rightClass: z.enum(RIGHT_CLASSES),
  /** Units of the receipt that may be taken: the lowest free one, or all free ones with `all`. */
  candidates: z.array(z.int().min(0).max(100_000)).min(1).max(100_000),
  all: z.boolean(),
  /** End of the receipt, seconds since 1970. */
  receiptExp: z.int().min(0),
  /** What became of it: a failed one gives its units back. */
  outcome: z.enum(OUTCOMES).optional(),
})
export type HomeRequest = z.infer<typeof HomeRequest>

/** `redeem+jwt`, signed by the home, for the asking agent. */
export const HomeGrant = z.strictObject({
  ...Common,
  iss: z.string(),
  jti: z.string(),
  redemptionId: z.string(),
  ordinals: z.array(z.int().min(0)),
  remaining: z.int().min(0),
  /** Why nothing was given; absent with ordinals. */
  reason: z.enum(DENY_REASONS).optional(),
})
export type HomeGrant = z.infer<typeof HomeGrant>

/** `asktime+jwt`, signed by an agent that does not know the time, for the home. */
export const HomeTimeRequest = z.strictObject({ ...Common, iss: z.string().max(128), jti: z.string().min(16).max(64) })
export type HomeTimeRequest = z.infer<typeof HomeTimeRequest>

/** `hometime+jwt`, signed by the home, for that agent: what time it is there, ms. */
export const HomeTimeResponse = z.strictObject({ ...Common, iss: z.string(), jti: z.string(), timeMs: z.int().min(0) })
export type HomeTimeResponse = z.infer<typeof HomeTimeResponse>
