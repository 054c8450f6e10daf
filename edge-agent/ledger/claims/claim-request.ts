import type { DenyReason, RightClass } from '../../../policy/vocabulary.ts'
import type { LimitedRequest } from './claim-limits.ts'

/** The rights that one redemption tries to use up. */
export interface ClaimRequest extends LimitedRequest {
  redemptionId: string
  /** `override`: an operator approved the release without token or receipt. */
  source: 'token' | 'receipt' | 'override'
  /** The token's nonce, the receipt's identity in hex, or a random text. */
  nonce: string
  rightClass: RightClass
  /** Rights that the claim may use. The claim uses the first free right, or with `all` every free right. */
  candidates: readonly number[]
  all: boolean
  /** Expiry of the token or receipt, s since 1970. */
  exp: number
  deviceId: string
  /** For a token: the receipt rights that its steps use, in the order of the steps. */
  receipt?: { cti: string; ordinals: readonly number[] } | undefined
  /** Issue time of a token by the clock of the cloud, s. */
  issuedS?: number | undefined
  /** Last journal row that the cloud had when this agent requested the token. */
  reportedSeq?: number | undefined
  operatorId?: string | undefined
  /** Id of the home request. Equal to `redemptionId` if the receipt home granted the rights. */
  homeRequestId?: string | undefined
  /** Called inside the transaction. Returns false if the decision is no longer valid, so that staff must decide. */
  isStillValid?: (() => boolean) | undefined
}

/**
 * Prefix of the redemption ids of overrides. The journal rows of overrides have no evidence, because an override uses
 * no authorization (P2).
 */
export const OVERRIDE_PREFIX = 'ovr'

export type ClaimResult = { ok: true; ordinals: number[]; remaining: number } | { ok: false; reason: DenyReason }
