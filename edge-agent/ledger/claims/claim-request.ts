import type { ItemIdentifiers } from '../../../policy/item-identifiers.ts'
import type { DenyReason, RightClass } from '../../../policy/vocabulary.ts'
import type { LimitedRequest } from './claim-limits.ts'

/** The rights that one redemption tries to use up. */
export interface ClaimRequest extends LimitedRequest {
  redemptionId: string
  /** `item`: an operator approved a named, paid tag. `override`: an operator opened a fixture without a right. */
  source: 'token' | 'receipt' | 'item' | 'override'
  /** The token's nonce, the receipt's identity in hex, or a random text. */
  nonce: string
  /** The tag that the request names. */
  tag?: ItemIdentifiers | undefined
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
 * Prefix of the redemption ids of overrides. The journal rows of overrides have no evidence, because they use up no
 * right.
 */
export const OVERRIDE_PREFIX = 'ovr'

export type ClaimResult = { ok: true; ordinals: number[]; remaining: number } | { ok: false; reason: DenyReason }
