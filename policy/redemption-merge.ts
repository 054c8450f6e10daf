import type { Outcome, RightClass } from './vocabulary.ts'

/** A redemption that uses the right of a unit, or a failed attempt. */
export interface UnitRedemption {
  redemptionId: string
  /** Nonce of the token, identity of the receipt, or a random text. */
  nonce: string
  /** `item`: an operator released a tag without token or receipt. */
  source: 'token' | 'receipt' | 'item'
  deviceId: string
  /** Trusted time, ms since 1970. */
  atMs: number
  /** null: claimed, and no outcome is reported yet. */
  outcome: Outcome | null
}

export interface UnitRedemptionSummary {
  /** The redemption that uses the right; null if all failed. */
  effective: UnitRedemption | null
  failures: number
  /**
   * True if two or more redemptions are `confirmed` or without an outcome: two pieces may have left for one right.
   * Redemptions of one token count once.
   */
  isDouble: boolean
}

/** The lowest rank wins. Failed redemptions use no right. */
const RANK = { confirmed: 0, claimed: 1, unknown: 2 } as const

/**
 * Merges all redemptions of one unit's right, in any order. Only staff may retry after `unknown`, so a redemption after
 * an `unknown` redemption is not a double redemption. Staff may open a fixture again, so their openings never count as
 * double. `deriveAuthorizationState` detects two redemptions of one token step.
 */
export function mergeRedemptions(
  redemptions: readonly UnitRedemption[],
  rightClass: RightClass,
): UnitRedemptionSummary {
  const notFailed = redemptions.filter(({ outcome }) => outcome !== 'failed')
  const [effective = null] = notFailed.toSorted(
    (a, b) =>
      rankOf(a) - rankOf(b) || a.atMs - b.atMs || compare(a.redemptionId, b.redemptionId) || compare(a.nonce, b.nonce),
  )
  const certain = new Set(
    notFailed
      .filter((each) => each.outcome !== 'unknown' && !(rightClass === 'open' && each.source === 'item'))
      .map((each) => (each.source === 'token' ? each.nonce : `${each.nonce} ${each.redemptionId}`)),
  )
  return { effective, failures: redemptions.length - notFailed.length, isDouble: certain.size > 1 }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

function rankOf({ outcome }: UnitRedemption): number {
  return RANK[outcome === 'confirmed' || outcome === 'unknown' ? outcome : 'claimed']
}

/** A report with a higher value replaces a report with a lower value. */
const CERTAINTY: Record<Outcome, number> = { unknown: 1, failed: 2, confirmed: 3 }

/** Merges two reports about one claim. After a conflict the right is treated as used, and staff must check the unit. */
export function mergeOutcomes(known: Outcome | null, reported: Outcome): { outcome: Outcome; isConflict: boolean } {
  if (known === null) return { outcome: reported, isConflict: false }
  const isConflict = known !== reported && known !== 'unknown' && reported !== 'unknown'
  return { outcome: CERTAINTY[reported] > CERTAINTY[known] ? reported : known, isConflict }
}
