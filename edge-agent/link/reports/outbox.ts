import { AckClaims, BATCH_LIMIT } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Trust } from '../../trust/trust.ts'
import type { MessageSigner } from '../login/sign-messages.ts'

/**
 *   row written ─▶ batch sent ─▶ acknowledged by the cloud, in memory ─ each fourth, or the last ─▶ acknowledged, on disk
 *       ▲                            │
 *       └── the cloud has fewer rows ┘
 *
 * Brings the journal to the cloud. A row is done when the cloud has signed that it has it, and not before (P3).
 */
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
  /**
   * Takes the cloud's own answer to a batch that followed on row `from`. When it has less than that, somebody else has acknowledged the
   * rest: it is told again. Answers whether that is so.
   */
  rewind(ack: string, from: number): boolean
}

/** Rows in a batch are kept below the size of a bundle. */
const BATCH_CHARACTERS = 120_000

/** Acknowledgements that are known in memory only, at most. */
const ACKS_UNWRITTEN = 4

/** Batches of the journal that the cloud has not acknowledged. */
export function outbox(ledger: Ledger, messages: MessageSigner, trust: Trust, agentId: string): Outbox {
  return new JournalOutbox({ ledger, messages, trust, agentId })
}

interface OutboxParts {
  ledger: Ledger
  messages: MessageSigner
  trust: Trust
  agentId: string
}

class JournalOutbox implements Outbox {
  readonly #parts: OutboxParts
  #unwritten = 0
  /** What was heard while the disk was full. */
  #unstoredAck: string | undefined

  constructor(parts: OutboxParts) {
    this.#parts = parts
  }

  get waiting(): number {
    return this.#parts.ledger.journal.waiting
  }

  get head(): number {
    return this.#parts.ledger.journal.head.seq
  }

  get acked(): number {
    return this.#parts.ledger.journal.acked
  }

  next(from: number, nowMs: number): { batch: string; to: number } | undefined {
    const { ledger, messages } = this.#parts
    this.#storeUnstored()
    const { after, rows } = ledger.journal.unsent(BATCH_LIMIT, from)
    let size = 0
    const fitting = rows.filter((row, i) => {
      size += JSON.stringify(row).length
      return i === 0 || size <= BATCH_CHARACTERS
    })
    const last = fitting.at(-1)
    return last && { batch: messages.batch(after, fitting, nowMs), to: last.seq }
  }

  acknowledge(ack: string, awaited = 0): boolean {
    const claims = this.#open(ack)
    if (!claims) return false
    const { seq } = claims
    if (seq < awaited && ++this.#unwritten < ACKS_UNWRITTEN) return this.#noteInMemory(claims)
    this.#unwritten = 0
    try {
      const isTaken = this.#store(claims)
      if (isTaken) this.#unstoredAck = undefined
      return isTaken
    } catch (error) {
      if (!(error instanceof LedgerFull)) throw error
      // A full disk: this word, or a later one, is written down when there is room.
      this.#unstoredAck = ack
      return this.#noteInMemory(claims)
    }
  }

  rewind(ack: string, from: number): boolean {
    const claims = this.#open(ack)
    if (!claims || claims.seq >= from) return false
    try {
      return this.#parts.ledger.commits.now(() => this.#rewindTo(claims))
    } catch (error) {
      // The next answer says it again.
      if (error instanceof LedgerFull) return false
      throw error
    }
  }

  #rewindTo({ seq, head }: AckClaims): boolean {
    const { journal, cloudGeneration, claims: used } = this.#parts.ledger
    const before = journal.acked
    // With a hole in between the cloud is told where the rest begins.
    if (!journal.rewindTo(seq, head)) cloudGeneration.resendAll()
    if (journal.acked === before) return false
    used.resetAcknowledged(journal.acked)
    this.#unstoredAck = undefined
    return true
  }

  /** Undefined when it is not the cloud's, not of this ledger, or of a cloud that was restored since: what that had it may have lost. */
  #open(ack: string): AckClaims | undefined {
    const { ledger, trust, agentId } = this.#parts
    const opened = openDocument<AckClaims>(ack, DOCUMENT_KINDS.ack, { keys: trust.keys, audience: agentId })
    const claims = opened.ok ? AckClaims.safeParse(opened.claims).data : undefined
    if (claims?.ledger !== ledger.ledgerId || claims.generation !== ledger.generation) return undefined
    return (claims.cloudGeneration ?? 1) === (ledger.cloudGeneration.current ?? 1) ? claims : undefined
  }

  #store({ seq, head, iat }: AckClaims): boolean {
    const { commits, journal, claims } = this.#parts.ledger
    return commits.now(() => {
      if (!journal.acknowledge(seq, head)) return false
      claims.noteAcknowledged(seq, iat)
      return true
    })
  }

  #noteInMemory({ seq, head }: AckClaims): boolean {
    return this.#parts.ledger.journal.acknowledgeInMemory(seq, head)
  }

  /** Isolated receipts count, and uses of which nobody knows wait for staff, until the cloud's word is written down: when nothing is told, no later word comes. */
  #storeUnstored(): void {
    if (this.#unstoredAck === undefined) return
    // A cloud that was restored since, or a key that was revoked, does not count any more.
    const claims = this.#open(this.#unstoredAck)
    try {
      if (claims) this.#store(claims)
      this.#unstoredAck = undefined
    } catch (error) {
      if (!(error instanceof LedgerFull)) throw error
      // What was undone with it is known all the same.
      if (claims) this.#noteInMemory(claims)
    }
  }
}
