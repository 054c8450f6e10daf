import type { Outcome } from './vocabulary.ts'

/** One redemption that used up, or tried to use up, the right of one unit. */
export interface UnitRedemption {
  redemptionId: string
  /** The token's nonce, or the receipt's identity. */
  nonce: string
  source: 'token' | 'receipt'
  deviceId: string
  /** Trusted time, ms since 1970. */
  atMs: number
  /** null: claimed, and nobody has said yet what became of it. */
  outcome: Outcome | null
}

export interface UnitRedemptionSummary {
  /** The use that the right is used up by; null when every one has failed. */
  effective: UnitRedemption | null
  failures: number
  /** Two uses count: somebody got two for one. */
  isDouble: boolean
}

/** The more certain a use is, the more it counts; what failed has used nothing up. */
const RANK = { confirmed: 0, claimed: 1, unknown: 2 } as const

/**
 * What all uses of one unit's right come to, whatever the order in which they became known. Only staff go on after
 * `unknown`, so a use after one is no second for one; two of the same step of a token show in its own state.
 */
export function mergeRedemptions(redemptions: readonly UnitRedemption[]): UnitRedemptionSummary {
  const notFailed = redemptions.filter(({ outcome }) => outcome !== 'failed')
  const [effective = null] = notFailed.toSorted(
    (a, b) =>
      rankOf(a) - rankOf(b) || a.atMs - b.atMs || compare(a.redemptionId, b.redemptionId) || compare(a.nonce, b.nonce),
  )
  const certain = new Set(
    notFailed
      .filter((each) => each.outcome !== 'unknown')
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

/** How far what is known of an outcome goes; a word that goes further replaces one that does not. */
const CERTAINTY: Record<Outcome, number> = { unknown: 1, failed: 2, confirmed: 3 }

/** The outcome out of two words about one claim; in a contradiction the right counts as used up, and people must look. */
export function mergeOutcomes(known: Outcome | null, reported: Outcome): { outcome: Outcome; isConflict: boolean } {
  if (known === null) return { outcome: reported, isConflict: false }
  const isConflict = known !== reported && known !== 'unknown' && reported !== 'unknown'
  return { outcome: CERTAINTY[reported] > CERTAINTY[known] ? reported : known, isConflict }
}
