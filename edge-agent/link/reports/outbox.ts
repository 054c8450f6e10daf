import { AckClaims, BATCH_LIMIT } from '../../../policy/documents/agent-messages.ts'
import { DOCUMENT_KINDS } from '../../../policy/documents/kinds.ts'
import { openDocument } from '../../../policy/documents/signed-document.ts'
import { LedgerFull } from '../../ledger/file/commit.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { Trust } from '../../trust/trust.ts'
import type { MessageSigner } from '../login/sign-messages.ts'

/** Maximum bytes of the rows in a batch. A longer row gets a batch of its own. */
const BATCH_BYTES = 120_000

/** While further acknowledgements are due, the outbox applies only every fourth acknowledgement to its claims and tags. */
const STORE_EVERY = 4
/** Rows that the agent sends again after a crash, at most: it stores an acknowledgement of so many rows at once. */
const RESENT_LIMIT = 400

interface OutboxParts {
  ledger: Ledger
  messages: MessageSigner
  trust: Trust
  agentId: string
}

/**
 * Makes signed batches of journal rows, and applies the cloud's signed acknowledgements. The agent sends a row until
 * the cloud has acknowledged it (P3).
 */
export class Outbox {
  readonly #parts: OutboxParts
  #acksInMemory = 0
  /** Acknowledgement that a full disk could not store. */
  #unstoredAck: string | undefined

  constructor(parts: OutboxParts) {
    this.#parts = parts
  }

  get waiting(): number {
    return this.#parts.ledger.journal.waiting
  }

  /** Number of the last stored row. */
  get head(): number {
    return this.#parts.ledger.journal.head.seq
  }

  /** Number of the last row that the cloud acknowledged. */
  get acked(): number {
    return this.#parts.ledger.journal.acked
  }

  /** Returns a signed batch of rows after `from`, and the number of its last row. Undefined if there are no rows. */
  next(from: number, nowMs: number): { batch: string; to: number } | undefined {
    const { ledger, messages } = this.#parts
    this.#storeUnstored()
    const { after, rows } = ledger.journal.unsent(BATCH_LIMIT, from)
    let size = 0
    const fitting = rows.filter((row, i) => {
      size += Buffer.byteLength(JSON.stringify(row))
      return i === 0 || size <= BATCH_BYTES
    })
    const last = fitting.at(-1)
    return last && { batch: messages.batch(after, fitting, nowMs), to: last.seq }
  }

  /**
   * Applies an acknowledgement. `awaited`: number of the last row under way. While further acknowledgements are due,
   * the outbox stores only every fourth acknowledgement, because each needs a flush to disk. Returns false if
   * signature, ledger or chain is wrong, or if the cloud was restored in the meantime.
   */
  acknowledge(ack: string, awaited = 0): boolean {
    const claims = this.#open(ack)
    if (!claims) return false
    const { seq } = claims
    if (seq < awaited && ++this.#acksInMemory < STORE_EVERY) return this.#noteInMemory(claims)
    this.#acksInMemory = 0
    try {
      const isAccepted = this.#store(claims)
      if (isAccepted) this.#unstoredAck = undefined
      return isAccepted
    } catch (error) {
      if (!(error instanceof LedgerFull)) throw error
      // The agent stores this or a later acknowledgement when the disk has room.
      this.#unstoredAck = ack
      return this.#noteInMemory(claims)
    }
  }

  /**
   * Applies the cloud's answer to a batch that began after row `from`. If the cloud has fewer rows, an earlier
   * acknowledgement was false. In this case, `rewind` returns true, and the agent sends the missing rows again.
   */
  rewind(ack: string, from: number): boolean {
    const claims = this.#open(ack)
    if (!claims || claims.seq >= from) return false
    try {
      return this.#parts.ledger.commits.now(() => this.#rewindTo(claims))
    } catch (error) {
      // The agent retries with the next answer of the cloud, which has the same content.
      if (error instanceof LedgerFull) return false
      throw error
    }
  }

  #rewindTo({ seq, head }: AckClaims): boolean {
    const { journal, cloudGeneration, claims: ledgerClaims } = this.#parts.ledger
    const before = journal.acked
    // If `rewindTo` returns false, the journal may lack rows that the cloud needs. `resendAll` makes each batch name
    // the oldest row that the agent has.
    if (!journal.rewindTo(seq, head)) cloudGeneration.resendAll()
    if (journal.acked === before) return false
    ledgerClaims.resetAcknowledged(journal.acked)
    this.#unstoredAck = undefined
    return true
  }

  /**
   * Verifies an acknowledgement. Returns undefined if signature or ledger is wrong, or if the cloud was restored in the
   * meantime. A restored cloud may have lost the acknowledged rows.
   */
  #open(ack: string): AckClaims | undefined {
    const { ledger, trust, agentId } = this.#parts
    const opened = openDocument<AckClaims>(ack, DOCUMENT_KINDS.ack, { keys: trust.keys, audience: agentId })
    const claims = opened.ok ? AckClaims.safeParse(opened.claims).data : undefined
    if (claims?.ledger !== ledger.ledgerId || claims.generation !== ledger.generation) return undefined
    return (claims.cloudGeneration ?? 1) === (ledger.cloudGeneration.current ?? 1) ? claims : undefined
  }

  #store({ seq, head, iat, items, unapplied }: AckClaims): boolean {
    const { commits, journal, claims, till } = this.#parts.ledger
    let isMore = false
    const isStored = commits.now(() => {
      if (!journal.acknowledge(seq, head)) return false
      const before = commits.changedRows
      claims.noteAcknowledged(seq, iat)
      if (items) isMore = till.acknowledge(seq, items, unapplied)
      // The next row stores it in its own commit: a commit for each acknowledgement wears an SD card.
      if (commits.changedRows > before || journal.unstoredAcks >= RESENT_LIMIT) journal.storeAcked()
      return true
    })
    if (isMore && items) void this.#acknowledgeTags(seq, items, unapplied)
    return isStored
  }

  /** Notes the tags of large reports of tills in portions. If it ends early, the next acknowledgement notes the rest. */
  async #acknowledgeTags(
    seq: number,
    items: readonly [number, number],
    unapplied: readonly number[] = [],
  ): Promise<void> {
    const { commits, till } = this.#parts.ledger
    const portion = () => commits.durably(() => till.acknowledge(seq, items, unapplied)).catch(() => false)
    while (await portion()) continue
  }

  #noteInMemory({ seq, head }: AckClaims): boolean {
    return this.#parts.ledger.journal.acknowledge(seq, head)
  }

  /**
   * Stores the acknowledgement that did not fit on the disk. Until the acknowledgement is stored, isolated claims count
   * against their limit, and unresolved redemptions wait for staff. An agent without new rows gets no later
   * acknowledgement.
   */
  #storeUnstored(): void {
    if (this.#unstoredAck === undefined) return
    // Undefined if, in the meantime, the cloud was restored or the key was revoked.
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
