import type { DenyClaims, DenyEntry } from '../../policy/documents/store-documents.ts'
import type { Ledger } from '../ledger/ledger.ts'

/** The deny list as far as it was taken. */
export interface Denials {
  /** The number of the last entry that was taken; 0: none yet. */
  readonly seq: number
  /** The newest by which a token or a receipt was taken back, of those since the start: at the start the cloud hears all anyway. */
  readonly takenBackSeq: number
  /** Takes a verified page; false when it is known, or leaves a hole. */
  take(page: DenyClaims): boolean
  /** The numbers cannot be believed: the list is to be fetched anew, beside what is denied already. */
  beginAnew(): void
}

const MARK = 'deny_seq'

/** The deny list in this ledger; `agentId`: whose it is. */
export function openDenials({ marks, commits, claims }: Pick<Ledger, 'marks' | 'commits' | 'claims'>, agentId: string): Denials {
  let takenBackSeq = 0

  const seq = () => Number(marks.recall(MARK) ?? 0)

  function takeEntry(entry: DenyEntry): void {
    if (entry.kind === 'nonce') claims.deny(entry.nonce, entry.until)
    else if (entry.kind === 'receipt') claims.deny(entry.cti, entry.until)
    else if (entry.heldBy?.agentId === agentId) claims.standsFor(entry.heldBy.nonce, entry)
    else claims.useElsewhere(entry.cti, entry.rightClass, entry.ordinals, entry.until)
  }

  return {
    get seq() {
      return seq()
    },
    get takenBackSeq() {
      return takenBackSeq
    },
    take(page) {
      // Taken in order: a page that leaves a hole waits until the ones before it were fetched.
      if (page.after > seq() || page.ver <= seq()) return false
      commits.now(() => {
        for (const entry of page.entries) takeEntry(entry)
        marks.set(MARK, String(page.ver))
      })
      if (page.entries.some(({ kind }) => kind !== 'right')) takenBackSeq = page.ver
      return true
    },
    beginAnew() {
      commits.now(() => marks.set(MARK, '0'))
      takenBackSeq = 0
    },
  }
}
