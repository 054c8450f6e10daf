import type { DenyClaims, DenyEntry } from '../../../policy/documents/store-documents.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { AgentClock } from '../time/clock.ts'

/**
 *   page ─ follows the last one? ─▶ denies tokens and receipts, marks rights used elsewhere ─▶ stores the last number
 *            └ gap: ignored, fetched again   missing for over a minute although the freshness names it ─▶ held back
 *
 * The deny list up to the last applied entry.
 */
export interface Denials {
  /** Number of the last applied entry; 0 if there is none. */
  readonly seq: number
  /** Number of the newest entry that revoked a token or receipt since the agent started; 0 if there is none. */
  readonly lastRevocationSeq: number
  /** Stores the newest entry number, as a freshness names it. */
  noteHead(seq: number): void
  /** Describes entries that the freshness names and that have not arrived for over a minute. Undefined if none are missing. */
  readonly missingDetail: string | undefined
  /** Applies a verified page. Returns false if the page is already known or leaves a gap. */
  apply(page: DenyClaims): boolean
  /** Fetches the whole list again, because its numbers are not trusted. Existing denials stay. */
  reset(): void
}

/** Metadata key of the last applied entry number. */
export const DENY_SEQ = 'deny_seq'
/** Upper limit for one poll and its downloads, ms. */
const ARRIVAL_LIMIT_MS = 60_000

/** Opens the deny list of agent `agentId` in its ledger. */
export function openDenials(
  { metadata, commits, claims }: Pick<Ledger, 'metadata' | 'commits' | 'claims'>,
  agentId: string,
  clock: Pick<AgentClock, 'now'>,
): Denials {
  let lastRevocationSeq = 0
  let head = 0
  /** Trusted time since which entries are missing, ms. */
  let sinceMs: number | undefined

  const seq = () => Number(metadata.getCached(DENY_SEQ) ?? 0)

  function applyEntry(entry: DenyEntry): void {
    if (entry.kind === 'nonce') claims.deny(entry.nonce, entry.until)
    else if (entry.kind === 'receipt') claims.deny(entry.cti, entry.until)
    else if (entry.leasedTo?.agentId === agentId) claims.bindToken(entry.leasedTo.nonce, entry)
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
        ? `denials ${seq() + 1} to ${head} are missing for over a minute although the freshness names them`
        : undefined
    },
    apply(page) {
      // Pages are applied in order; a page after a gap is fetched again.
      if (page.after > seq() || page.ver <= seq()) return false
      commits.now(() => {
        for (const entry of page.entries) applyEntry(entry)
        metadata.set(DENY_SEQ, String(page.ver))
      })
      // A long list has several pages: the waiting time starts again with each.
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
