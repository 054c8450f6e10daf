import type { AuthorizationState } from './vocabulary.ts'

/** One redemption that somebody reports: an agent's claim, or a device's call over HTTP. */
export interface RedemptionEvidence {
  redemptionId: string
  /** Which step of the authorization, 1…count. */
  step: number
  /** Trusted time of the claim, ms since 1970. */
  atMs: number
}

export interface AuthorizationFacts {
  expMs: number
  /** When it was taken back, if it was. */
  revokedAtMs?: number | undefined
  evidence: readonly RedemptionEvidence[]
}

export const EVIDENCE_EXCEPTIONS = ['double_redeem', 'late_redeem', 'redeemed_after_revocation'] as const
export type EvidenceException = (typeof EVIDENCE_EXCEPTIONS)[number]

export interface DerivedAuthorizationState {
  state: AuthorizationState
  /** Time of the first redemption that counts, ms; null until redeemed. */
  redeemedAtMs: number | null
  exceptions: ReadonlySet<EvidenceException>
}

/**
 * The state of an authorization as a join over everything known of it: redeemed by any evidence in
 * time, else revoked, else expired, else issued. The order in which facts arrive never matters, and
 * none is ever taken back; what should not have happened becomes an exception beside the state.
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
