/**
 *   DRAFT ── validFrom ──▶ ACTIVE ── validTo ──▶ EXPIRED ── 90 days ──▶ ARCHIVED
 *
 * The life of an offer as data. Time alone moves it forward; only new dates (updateOffer) set it anew.
 */
export const OFFER_STATUSES = ['DRAFT', 'ACTIVE', 'EXPIRED', 'ARCHIVED'] as const
export type OfferStatus = (typeof OFFER_STATUSES)[number]

/** When an offer holds: from `fromMs` on, until just before `toMs` (ms since 1970). */
export interface Validity {
  fromMs: number
  toMs: number
}

/** Expired offers are kept apart this long before they are archived. */
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

/** What an offer is at a moment. */
export function statusAt(validity: Validity, nowMs: number): OfferStatus {
  return statusFrom('DRAFT', validity, nowMs)
}

/** What an offer that is `status` has become by `nowMs`: every move that is due, never one back. */
export function statusFrom(status: OfferStatus, validity: Validity, nowMs: number): OfferStatus {
  const move = OFFER_MOVES.find(({ from }) => from === status)
  return move && move.dueMs(validity) <= nowMs ? statusFrom(move.to, validity, nowMs) : status
}

/** When an offer that is `status` moves on (ms since 1970); null: never. */
export function dueAfter(status: OfferStatus, validity: Validity): number | null {
  return OFFER_MOVES.find(({ from }) => from === status)?.dueMs(validity) ?? null
}

/** The words by which listings filter, and what each means. */
export const OFFER_FILTERS: Readonly<Record<'active' | 'expired' | 'scheduled' | 'draft', readonly OfferStatus[]>> = {
  active: ['ACTIVE'],
  expired: ['EXPIRED', 'ARCHIVED'],
  scheduled: ['DRAFT'],
  draft: ['DRAFT'],
}
export type OfferFilter = keyof typeof OFFER_FILTERS
