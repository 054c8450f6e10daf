import type { DenyReason, RightClass } from '../../../policy/vocabulary.ts'
import type { LimitedRequest } from './claim-limits.ts'

/** The rights that one redemption tries to use up. */
export interface ClaimRequest extends LimitedRequest {
  redemptionId: string
  /** `override`: an operator approved it without token or receipt. */
  source: 'token' | 'receipt' | 'override'
  /** The token's nonce, the receipt's identity in hex, or a random text. */
  nonce: string
  rightClass: RightClass
  /** The rights that may be used: the lowest free one is taken, or all free ones with `all`. */
  candidates: readonly number[]
  all: boolean
  /** Seconds since 1970: end of the token or receipt. */
  exp: number
  deviceId: string
  /** For a token: which rights of a receipt its steps use up. */
  receipt?: { cti: string; ordinals: readonly number[] } | undefined
  /** Issue time of a token by the clock of the cloud, s. */
  issuedS?: number | undefined
  /** Last journal row that the cloud had when this agent requested the token. */
  reportedSeq?: number | undefined
  operatorId?: string | undefined
  /** Id of the home request. Equal to `redemptionId` if the receipt home granted the rights. */
  homeRequestId?: string | undefined
  /** Checked inside the transaction: false if the basis of the decision changed. */
  isStillValid?: (() => boolean) | undefined
}

/** How ids of overrides begin. Their rows carry no evidence: no authorization of the cloud was used up (P2, "recorded override"). */
export const OVERRIDE_PREFIX = 'ovr'

export type ClaimResult = { ok: true; ordinals: number[]; remaining: number } | { ok: false; reason: DenyReason }
