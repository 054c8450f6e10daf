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
 * Sends the journal to the cloud. A row is done only when the cloud has signed an acknowledgement (P3).
 */
export interface Outbox {
  readonly waiting: number
  /** `head`: number of the last stored row. `acked`: number of the last row that the cloud acknowledged. */
  readonly head: number
  readonly acked: number
  /** Returns the signed rows after `from`, as many as fit a batch, and the number of the last one; undefined if there are none. */
  next(from: number, nowMs: number): { batch: string; to: number } | undefined
  /**
   * Applies an acknowledgement. `awaited`: the last row under way. While more acknowledgements are due, only every fourth is stored,
   * because each costs a flush and the last one covers all. Returns false if the signature, ledger or chain is wrong, or the cloud was
   * restored since.
   */
  acknowledge(ack: string, awaited?: number): boolean
  /**
   * Applies the cloud's answer to a batch that began after row `from`. If the cloud has fewer rows, an earlier acknowledgement was false;
   * the agent sends those rows again. Returns true in that case.
   */
  rewind(ack: string, from: number): boolean
}

/** Limit of characters per batch, below the size of a bundle. */
const BATCH_CHARACTERS = 120_000

/** Limit of acknowledgements that are in memory only. */
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
  /** Acknowledgement that a full disk could not store. */
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
      // The agent stores this or a later acknowledgement when the disk has room.
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
      // The next answer repeats it.
      if (error instanceof LedgerFull) return false
      throw error
    }
  }

  #rewindTo({ seq, head }: AckClaims): boolean {
    const { journal, cloudGeneration, claims: used } = this.#parts.ledger
    const before = journal.acked
    // After a gap in the rows the agent must report where the rest begins.
    if (!journal.rewindTo(seq, head)) cloudGeneration.resendAll()
    if (journal.acked === before) return false
    used.resetAcknowledged(journal.acked)
    this.#unstoredAck = undefined
    return true
  }

  /**
   * Verifies an acknowledgement. Undefined if the signature or ledger is wrong, or the cloud was restored since: it may have lost those
   * rows.
   */
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

  /**
   * Isolated claims count against their limit, and unresolved redemptions wait for staff, until the acknowledgement is stored. An agent
   * without new rows gets no later acknowledgement.
   */
  #storeUnstored(): void {
    if (this.#unstoredAck === undefined) return
    // Ignores it if the cloud was restored or the key revoked since.
    const claims = this.#open(this.#unstoredAck)
    try {
      if (claims) this.#store(claims)
      this.#unstoredAck = undefined
    } catch (error) {
      if (!(error instanceof LedgerFull)) throw error
      // The transaction was rolled back, but the acknowledgement stays valid in memory.
      if (claims) this.#noteInMemory(claims)
    }
  }
}
