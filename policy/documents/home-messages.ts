import { z } from 'zod'
import { Ordinals } from '../journal.ts'
import { CodeHash } from '../till-sale.ts'
import { DENY_REASONS, OUTCOMES, RIGHT_CLASSES } from '../vocabulary.ts'

/** Release notices between the agents of a store. */

/** Lifetime of a notice, s. The agent signs a new notice for each delivery. */
export const RELEASE_NOTICE_LIFE = 60
/** Time that a gate stays silent for a released unit, s. A newer status from the cloud ends this time. */
export const SILENT_SECONDS = 3_600

/** Proof of the release: a unit of a receipt, or an authorization token. */
const Proof = z.union([
  z.strictObject({ receipt: z.string().min(1).max(1_024), ordinal: z.int().min(0).max(100_000) }),
  z.strictObject({ token: z.string().min(1).max(1_024) }),
])

/** A confirmed release. The proof covers only this unit and the named tag. */
export const AnnouncedRelease = z.strictObject({
  deviceId: z.string().min(1).max(128),
  protectionAction: z.enum(['deactivate_label', 'detach_hard_tag']),
  /** Seconds since 1970. */
  releasedS: z.int().min(0),
  /** Released tag, upper-case hex. `epc` and `tagUid` are absent if the request named no tag. */
  epc: z.string().max(124).optional(),
  tagUid: z.string().max(20).optional(),
  proof: Proof,
})
export type AnnouncedRelease = z.infer<typeof AnnouncedRelease>

/** A unit of a receipt has let a tag leave through a gate (`deviceId`): it lets no other one leave. */
const AnnouncedExit = AnnouncedRelease.extend({
  protectionAction: z.literal('authorize_exit'),
  /** `exp`: expiry of the receipt, s since 1970. */
  proof: z.strictObject({
    cti: z.string().regex(/^[0-9a-f]{32}$/),
    ordinal: z.int().min(0).max(100_000),
    exp: z.int().min(0),
  }),
})
export type AnnouncedExit = z.infer<typeof AnnouncedExit>
export type Announced = AnnouncedRelease | AnnouncedExit

const NoticeClaims = {
  /** Store id. */
  aud: z.string(),
  iat: z.int().min(0),
  exp: z.int().min(0),
  iss: z.string().min(1).max(128),
}
/** `release+jwt`, signed by the agent of the device, for the agents of the store. */
export const ReleaseNotice = z.union([AnnouncedRelease.extend(NoticeClaims), AnnouncedExit.extend(NoticeClaims)])
export type ReleaseNotice = z.infer<typeof ReleaseNotice>

/** Messages between an agent and the receipt home (ADR leases). */

const Common = { aud: z.string(), iat: z.int().min(0), exp: z.int().min(0) }
/** Lifetime of a request and of its response, s. */
export const HOME_MESSAGE_LIFE = 60

/**
 * `ask+jwt`: home request, signed by the requesting agent. Before the request, the agent stores the redemption id, so
 * that a repeated request gets the same response.
 */
export const HomeRequest = z.strictObject({
  ...Common,
  iss: z.string().max(128),
  /** Id of this request. The response must contain this id. */
  jti: z.string().min(16).max(64),
  homeEpoch: z.int().min(0),
  redemptionId: z.string().min(1).max(64),
  cti: z.string().regex(/^[0-9a-f]{32}$/),
  rightClass: z.enum(RIGHT_CLASSES),
  /**
   * Units that the receipt home may grant. The receipt home grants the lowest free unit, or all free units with `all`.
   */
  candidates: Ordinals,
  all: z.boolean(),
  /** True: grant no unit whose goods have left. */
  unlessLeft: z.boolean().optional(),
  /** Expiry of the receipt, seconds since 1970. */
  receiptExp: z.int().min(0),
  /** Set in an outcome report. After `failed` the receipt home frees the rights. */
  outcome: z.enum(OUTCOMES).optional(),
})
export type HomeRequest = z.infer<typeof HomeRequest>

/** `redeem+jwt`: home grant, signed by the receipt home. */
export const HomeGrant = z.strictObject({
  ...Common,
  iss: z.string(),
  jti: z.string(),
  redemptionId: z.string(),
  ordinals: z.array(z.int().min(0)),
  remaining: z.int().min(0),
  /** Reason of a denial; absent in a grant. */
  reason: z.enum(DENY_REASONS).optional(),
})
export type HomeGrant = z.infer<typeof HomeGrant>

/** `asktime+jwt`: time request of an agent without trusted time. */
export const HomeTimeRequest = z.strictObject({ ...Common, iss: z.string().max(128), jti: z.string().min(16).max(64) })
export type HomeTimeRequest = z.infer<typeof HomeTimeRequest>

/** `hometime+jwt`: signed time of the receipt home, ms since 1970. */
export const HomeTimeResponse = z.strictObject({ ...Common, iss: z.string(), jti: z.string(), timeMs: z.int().min(0) })
export type HomeTimeResponse = z.infer<typeof HomeTimeResponse>

/** `askcode+jwt`: request for the sales of a code that a till printed. The answer has notices of their agents (`till+jwt`). */
export const HomeCodeRequest = z.strictObject({ ...Common, iss: z.string().max(128), code: CodeHash })
export type HomeCodeRequest = z.infer<typeof HomeCodeRequest>
