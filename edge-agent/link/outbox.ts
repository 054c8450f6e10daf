import { AckClaims, BATCH_LIMIT } from '../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { openDocument } from '../../policy/documents/signed-document.ts'
import { LedgerFull } from '../ledger/commit.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Trust } from '../trust/trust.ts'
import type { Messages } from './messages.ts'

/** Brings the journal to the cloud. A row is done when the cloud has signed that it has it, and not before (P3). */
export interface Outbox {
  readonly waiting: number
  /** The number of the last row that is written down, and of the last that the cloud has. */
  readonly head: number
  readonly acked: number
  /** The rows after number `from`, signed, as many as a batch takes, and the number of the last; undefined when there are none. */
  next(from: number, nowMs: number): { batch: string; to: number } | undefined
  /**
   * Takes an acknowledgement. `awaited`: the last row that is under way; while more words are to come, only every fourth is
   * written down, for each is a flush to the disk and the last one covers all. False when it is not the cloud's, not for this ledger, of another chain, or of a cloud that was restored since or is not known to be.
   */
  acknowledge(ack: string, awaited?: number): boolean
}

/** Rows in a batch are kept below the size of a bundle. */
const BATCH_CHARACTERS = 120_000

/** Acknowledgements that are known in memory only, at most. */
const ACKS_UNWRITTEN = 4

/** Batches of the journal that the cloud has not acknowledged. */
export function outbox(ledger: Ledger, messages: Messages, trust: Trust, agentId: string): Outbox {
  let unwritten = 0
  /** What was heard while the disk was full. */
  let unkept: { seq: number; head: string; iat: number; generation: number; cloudGeneration: number } | undefined

  function keep({ seq, head, iat }: { seq: number; head: string; iat: number }): boolean {
    return ledger.commits.now(() => {
      if (!ledger.journal.acknowledge(seq, head)) return false
      ledger.claims.acknowledged(seq, iat)
      return true
    })
  }

  /** Isolated receipts count, and uses of which nobody knows wait for staff, until the cloud's word is written down: when nothing is told, no later word comes. */
  function keepUnkept(): void {
    if (!unkept) return
    const { seq, head, generation, cloudGeneration } = unkept
    // What a cloud had that was restored since it may have lost.
    const isOfNow = generation === ledger.generation && cloudGeneration === (ledger.cloudGeneration.current ?? 1)
    try {
      if (isOfNow) keep(unkept)
      unkept = undefined
    } catch (error) {
      if (!(error instanceof LedgerFull)) throw error
      // What was undone with it is known all the same.
      ledger.journal.hear(seq, head)
    }
  }

  return {
    get waiting() {
      return ledger.journal.waiting
    },
    get head() {
      return ledger.journal.head.seq
    },
    get acked() {
      return ledger.journal.acked
    },
    next(from, nowMs) {
      keepUnkept()
      const { after, rows } = ledger.journal.unsent(BATCH_LIMIT, from)
      let size = 0
      const fitting = rows.filter((row, i) => {
        size += JSON.stringify(row).length
        return i === 0 || size <= BATCH_CHARACTERS
      })
      const last = fitting.at(-1)
      return last && { batch: messages.batch(after, fitting, nowMs), to: last.seq }
    },
    acknowledge(ack, awaited = 0) {
      const opened = openDocument<AckClaims>(ack, DOCUMENT_KINDS.ack, { keys: trust.keys, audience: agentId })
      const claims = opened.ok ? AckClaims.safeParse(opened.claims) : undefined
      if (!claims?.success || claims.data.ledger !== ledger.ledgerId || claims.data.generation !== ledger.generation) return false
      const { seq, head, iat, cloudGeneration = 1 } = claims.data
      // What the cloud had before it was restored it may have lost.
      if (cloudGeneration !== (ledger.cloudGeneration.current ?? 1)) return false
      if (seq < awaited && ++unwritten < ACKS_UNWRITTEN) return ledger.journal.hear(seq, head)
      unwritten = 0
      try {
        const isTaken = keep({ seq, head, iat })
        if (isTaken) unkept = undefined
        return isTaken
      } catch (error) {
        if (!(error instanceof LedgerFull)) throw error
        // A full disk: this word, or a later one, is written down when there is room.
        unkept = { seq, head, iat, generation: ledger.generation, cloudGeneration }
        return ledger.journal.hear(seq, head)
      }
    },
  }
}
