import type { DenyReason, RightClass } from '../../../policy/vocabulary.ts'
import type { LimitedRequest } from './claim-limits.ts'

/** The rights that one redemption tries to use up. */
export interface ClaimRequest extends LimitedRequest {
  redemptionId: string
  /** `override`: an operator's word, for which there is neither. */
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
  /** For a token: when the cloud gave it, s by its clock. */
  issuedS?: number | undefined
  /** For one that was fetched for this: up to which row the cloud had this ledger when it was asked. */
  reportedSeq?: number | undefined
  operatorId?: string | undefined
  /** What was asked of the home for this. When it has given the rights, that is the redemption id. */
  homeRequestId?: string | undefined
  /** Whether what it was decided by is still so; asked as it is used up. */
  isStillValid?: (() => boolean) | undefined
}

/** How ids of overrides begin. Their rows carry no evidence: no authorization of the cloud was used up (P2, "recorded override"). */
export const OVERRIDE_PREFIX = 'ovr'

export type ClaimResult = { ok: true; ordinals: number[]; remaining: number } | { ok: false; reason: DenyReason }
