import type { AuthorizationState, Outcome, RightClass } from './vocabulary.ts'

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

interface UnitRedemptionSummary {
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

/** A reported redemption: an agent's claim, or the call of a device without an agent. */
export interface RedemptionEvidence {
  redemptionId: string
  /** Step of the authorization, 1 to count. */
  step: number
  /** Trusted time of the claim, ms since 1970. */
  atMs: number
}

interface AuthorizationFacts {
  expMs: number
  /** Time of the revocation, ms since 1970. */
  revokedAtMs?: number | undefined
  evidence: readonly RedemptionEvidence[]
}

const EVIDENCE_EXCEPTIONS = ['double_redeem', 'late_redeem', 'redeemed_after_revocation'] as const
type EvidenceException = (typeof EVIDENCE_EXCEPTIONS)[number]

export interface DerivedAuthorizationState {
  state: AuthorizationState
  /** Time of the first valid redemption, ms; null if there is none. */
  redeemedAtMs: number | null
  exceptions: ReadonlySet<EvidenceException>
}

/**
 * Derives the state from all known facts: redeemed if any evidence is in time, else revoked, else expired, else issued.
 * The order of the facts does not matter. Contradictions become exceptions.
 */
export function deriveAuthorizationState(facts: AuthorizationFacts, nowMs: number): DerivedAuthorizationState {
  const exceptions = new Set<EvidenceException>()
  const byStep = new Map<number, string>()
  let first: number | null = null
  for (const { redemptionId, step, atMs } of facts.evidence) {
    const known = byStep.get(step)
    if (known !== undefined && known !== redemptionId) exceptions.add('double_redeem')
    byStep.set(step, redemptionId)
    if (atMs > facts.expMs) {
      exceptions.add('late_redeem')
      continue
    }
    if (facts.revokedAtMs !== undefined && atMs >= facts.revokedAtMs) exceptions.add('redeemed_after_revocation')
    if (first === null || atMs < first) first = atMs
  }
  return { state: stateOf(facts, first, nowMs), redeemedAtMs: first, exceptions }
}

function stateOf(
  { revokedAtMs, expMs }: AuthorizationFacts,
  redeemedAtMs: number | null,
  nowMs: number,
): AuthorizationState {
  if (redeemedAtMs !== null) return 'redeemed'
  if (revokedAtMs !== undefined && revokedAtMs < expMs) return 'revoked'
  return nowMs >= expMs ? 'expired' : 'issued'
}
