import type { DenyClaims, DenyEntry } from '../../../policy/documents/store-documents.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { AgentClock } from '../time/clock.ts'

/**
 * The deny list up to the last applied entry. Its entries deny tokens and receipts, and report used and leased rights.
 * The agent ignores a page after a gap and fetches the missing entries.
 */
export interface Denials {
  /** Number of the last applied entry; 0 if there is none. */
  readonly seq: number
  /**
   * A revocation is an entry that denies a token or receipt. This is the number of the last entry of the newest page
   * that contains a revocation. 0 if the agent has applied no such page since its start.
   */
  readonly lastRevocationSeq: number
  /** Sets the newest entry number, which a freshness names. */
  noteHead(seq: number): void
  /**
   * Describes the entries that the freshness names but that the agent has lacked for over a minute. Undefined if there
   * are none.
   */
  readonly missingDetail: string | undefined
  /** Applies a verified page. Returns false if its entries are known already, or if there is a gap before the page. */
  apply(page: DenyClaims): boolean
  /** Makes the agent fetch the whole list again, because the entry numbers are not trusted. Existing denials stay. */
  reset(): void
}

/** Metadata key of the last applied entry number. */
export const DENY_SEQ = 'deny_seq'
/** Maximum time from the freshness to the entries that it names, ms. One poll with its downloads takes less time. */
const ARRIVAL_LIMIT_MS = 60_000

/** Opens the deny list of agent `agentId` in its ledger. */
export function openDenials(
  { metadata, commits, claims, till }: Pick<Ledger, 'metadata' | 'commits' | 'claims' | 'till'>,
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
    else if (entry.kind === 'recall') claims.recall(entry)
    else if (entry.kind === 'pieces') till.pieces.end(entry.cti, Math.floor(clock.now().nowMs / 1_000))
    else if (entry.leasedTo && entry.ended) claims.endLease(entry.leasedTo.nonce, entry)
    else if (entry.leasedTo?.agentId === agentId) claims.bindToken(entry.leasedTo.nonce, entry)
    else claims.redeemElsewhere(entry, entry.leasedTo?.nonce)
  }

  return {
    get seq() {
      return seq()
    },
    get lastRevocationSeq() {
      return lastRevocationSeq
    },
    noteHead(newest) {
      head = newest
      sinceMs = head > seq() ? (sinceMs ?? clock.now().nowMs) : undefined
    },
    get missingDetail() {
      if (sinceMs === undefined) return undefined
      const { nowMs } = clock.now()
      // Trusted time may have been set back after `sinceMs`.
      sinceMs = Math.min(sinceMs, nowMs)
      return nowMs - sinceMs > ARRIVAL_LIMIT_MS
        ? `denials ${seq() + 1} to ${head} are missing for over a minute although the freshness names them`
        : undefined
    },
    apply(page) {
      // The agent applies pages in order. If a page comes after a gap, the agent later fetches the missing pages and
      // this page again.
      if (page.after > seq() || page.ver <= seq()) return false
      commits.now(() => {
        for (const entry of page.entries) applyEntry(entry)
        metadata.set(DENY_SEQ, String(page.ver))
      })
      // A long list has several pages. The time limit starts again with each page.
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
