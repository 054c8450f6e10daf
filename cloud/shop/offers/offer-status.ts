/**
 *  DRAFT ── validFrom ──▶ ACTIVE ── validTo ──▶ EXPIRED ── 90 days ──▶ ARCHIVED
 *
 * Statuses of an offer. Time only moves an offer forward. `updateOffer` with new dates computes the status again from
 * DRAFT.
 */
export const OFFER_STATUSES = ['DRAFT', 'ACTIVE', 'EXPIRED', 'ARCHIVED'] as const
export type OfferStatus = (typeof OFFER_STATUSES)[number]

/** Validity of an offer: from `fromMs` (inclusive) to `toMs` (exclusive), ms since 1970. */
export interface Validity {
  fromMs: number
  toMs: number
}

/** Time from expiry to archiving, ms. */
export const ARCHIVE_AFTER_MS = 90 * 24 * 3_600_000

interface OfferMove {
  from: OfferStatus
  to: OfferStatus
  dueMs(validity: Validity): number
}

export const OFFER_MOVES: readonly OfferMove[] = [
  { from: 'DRAFT', to: 'ACTIVE', dueMs: ({ fromMs }) => fromMs },
  { from: 'ACTIVE', to: 'EXPIRED', dueMs: ({ toMs }) => toMs },
  { from: 'EXPIRED', to: 'ARCHIVED', dueMs: ({ toMs }) => toMs + ARCHIVE_AFTER_MS },
]

/** Status of an offer at this time. */
export function statusAt(validity: Validity, nowMs: number): OfferStatus {
  return statusFrom('DRAFT', validity, nowMs)
}

/** Applies all moves that are due by `nowMs`. Never moves back. */
export function statusFrom(status: OfferStatus, validity: Validity, nowMs: number): OfferStatus {
  const move = OFFER_MOVES.find(({ from }) => from === status)
  return move && move.dueMs(validity) <= nowMs ? statusFrom(move.to, validity, nowMs) : status
}

/** Time of the next move, ms since 1970; null if there is none. */
export function dueAfter(status: OfferStatus, validity: Validity): number | null {
  return OFFER_MOVES.find(({ from }) => from === status)?.dueMs(validity) ?? null
}

/** Statuses that each list filter includes. */
export const OFFER_FILTERS: Readonly<Record<'active' | 'expired' | 'scheduled' | 'draft', readonly OfferStatus[]>> = {
  active: ['ACTIVE'],
  expired: ['EXPIRED', 'ARCHIVED'],
  scheduled: ['DRAFT'],
  draft: ['DRAFT'],
}
export type OfferFilter = keyof typeof OFFER_FILTERS
