import type { DenyClaims, DenyEntry } from '../../../policy/documents/store-documents.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { AgentClock } from '../time/clock.ts'

/**
 *   page ─ follows the last one? ─▶ denies tokens and receipts, marks rights used elsewhere ─▶ stores the last number
 *            └ gap: ignored, fetched again   missing for over a minute although the freshness names it ─▶ held back
 *
 * The deny list as far as it was taken.
 */
export interface Denials {
  /** The number of the last entry that was taken; 0: none yet. */
  readonly seq: number
  /** The newest by which a token or a receipt was taken back, of those since the start: at the start the cloud hears all anyway. */
  readonly lastRevocationSeq: number
  /** A freshness says how far the list goes. */
  noteHead(seq: number): void
  /** What is known to be in the list and does not come, although nothing is on its way any more: something keeps it away. */
  readonly missingDetail: string | undefined
  /** Takes a verified page; false when it is known, or leaves a hole. */
  apply(page: DenyClaims): boolean
  /** The numbers cannot be believed: the list is to be fetched anew, beside what is denied already. */
  reset(): void
}

/** The mark of how far the list was taken. */
export const DENY_SEQ = 'deny_seq'
/** Longer than a look and what it fetches may take, ms. */
const ARRIVAL_LIMIT_MS = 60_000

/** The deny list in this ledger; `agentId`: whose it is. */
export function openDenials(
  { metadata, commits, claims }: Pick<Ledger, 'metadata' | 'commits' | 'claims'>,
  agentId: string,
  clock: Pick<AgentClock, 'now'>,
): Denials {
  let lastRevocationSeq = 0
  let head = 0
  /** Since when something is missing and none of it has come, trusted ms. */
  let sinceMs: number | undefined

  const seq = () => Number(metadata.getCached(DENY_SEQ) ?? 0)

  function applyEntry(entry: DenyEntry): void {
    if (entry.kind === 'nonce') claims.deny(entry.nonce, entry.until)
    else if (entry.kind === 'receipt') claims.deny(entry.cti, entry.until)
    else if (entry.heldBy?.agentId === agentId) claims.bindToken(entry.heldBy.nonce, entry)
    else claims.redeemElsewhere(entry.cti, entry.rightClass, entry.ordinals, entry.until)
  }

  return {
    get seq() {
      return seq()
    },
    get lastRevocationSeq() {
      return lastRevocationSeq
    },
    noteHead(named) {
      head = named
      sinceMs = head > seq() ? (sinceMs ?? clock.now().nowMs) : undefined
    },
    get missingDetail() {
      if (sinceMs === undefined) return undefined
      const { nowMs } = clock.now()
      // Trusted time may have been set back meanwhile.
      sinceMs = Math.min(sinceMs, nowMs)
      return nowMs - sinceMs > ARRIVAL_LIMIT_MS
        ? `denials ${seq() + 1} to ${head} have not come for over a minute, though the freshness names them`
        : undefined
    },
    apply(page) {
      // Taken in order: a page that leaves a hole waits until the ones before it were fetched.
      if (page.after > seq() || page.ver <= seq()) return false
      commits.now(() => {
        for (const entry of page.entries) applyEntry(entry)
        metadata.set(DENY_SEQ, String(page.ver))
      })
      // A long list comes page by page.
      sinceMs = head > page.ver ? clock.now().nowMs : undefined
      if (page.entries.some(({ kind }) => kind !== 'right')) lastRevocationSeq = page.ver
      return true
    },
    reset() {
      commits.now(() => metadata.set(DENY_SEQ, '0'))
      lastRevocationSeq = head = 0
      sinceMs = undefined
    },
  }
}
