import type { AuthorizationState } from './vocabulary.ts'

/** A reported redemption: an agent's claim, or the call of a device without an agent. */
export interface RedemptionEvidence {
  redemptionId: string
  /** Step of the authorization, 1 to count. */
  step: number
  /** Trusted time of the claim, ms since 1970. */
  atMs: number
}

export interface AuthorizationFacts {
  expMs: number
  /** Time of the revocation, ms since 1970. */
  revokedAtMs?: number | undefined
  evidence: readonly RedemptionEvidence[]
}

export const EVIDENCE_EXCEPTIONS = ['double_redeem', 'late_redeem', 'redeemed_after_revocation'] as const
export type EvidenceException = (typeof EVIDENCE_EXCEPTIONS)[number]

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
