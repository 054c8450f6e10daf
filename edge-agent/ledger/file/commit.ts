import type { Database as Connection, Statement } from 'better-sqlite3'

/** Disk fault after which the content of the ledger is uncertain. This process starts no device any more (P6). */
export class LedgerFailure extends Error {
  override name = 'LedgerFailure'
}

/** The disk is full: the transaction was cleanly undone; it may work again when there is room. */
export class LedgerFull extends Error {
  override name = 'LedgerFull'
}

export interface Commits {
  /**
   * Runs `work` in a transaction, which may include the work of other callers of the same turn. Resolves when it is durable. `work` checks
   * before it writes and does not throw: a refusal is a value.
   */
  durably<T>(work: () => T): Promise<T>
  /** As `durably`, but immediately and alone, for start and stop. Inside a transaction it joins that one. */
  now<T>(work: () => T): T
  readonly failure: LedgerFailure | undefined
  /** Runs the queued work, then rejects further work. */
  close(): void
}

export interface CommitWatcher {
  /** A transaction is durable. The watcher handles its own errors; only disk faults count against the ledger. */
  onDurable(): void
  /** A transaction was rolled back. */
  onUndone(): void
  onFailure(failure: LedgerFailure): void
}

/**
 *   begin ─ work ─ commit ──▶ onDurable
 *              └ error ─▶ rollback ─▶ LedgerFull: the disk is full; LedgerFailure: the state of the disk is unknown
 *
 * Runs transactions one by one, and none after a failure.
 */
export class Transactions {
  readonly #db: Connection
  readonly #watcher: CommitWatcher
  readonly #begin: Statement
  readonly #commit: Statement
  readonly #rollback: Statement
  #failure: LedgerFailure | undefined

  constructor(db: Connection, watcher: CommitWatcher) {
    this.#db = db
    this.#watcher = watcher
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#rollback = db.prepare('ROLLBACK')
  }

  get failure(): LedgerFailure | undefined {
    return this.#failure
  }

  /** Within another transaction it is part of that. */
  run<T>(work: () => T): T {
    if (this.#failure) throw this.#failure
    if (this.#db.inTransaction) return work()
    let value: T
    try {
      this.#begin.run()
      value = work()
      this.#commit.run()
    } catch (error) {
      const fault = this.#undo()
      const failure = this.#asFailure(error)
      // The rollback may have failed, so memory and disk may differ.
      throw fault === undefined || this.#failure ? failure : this.#fail(fault)
    }
    this.#notifyDurable()
    return value
  }

  /** Rolls back and returns the fault, if the rollback failed: it reads the disk, which may be broken. */
  #undo(): unknown {
    try {
      if (this.#db.inTransaction) this.#rollback.run()
      this.#watcher.onUndone()
      return undefined
    } catch (error) {
      return error ?? new Error('the rollback failed')
    }
  }

  /** The transaction is durable even if the watcher throws. The caller must not treat it as rolled back and repeat it. */
  #notifyDurable(): void {
    try {
      this.#watcher.onDurable()
    } catch (error) {
      if (this.#asFailure(error) === this.#failure) throw this.#failure
    }
  }

  #asFailure(error: unknown): unknown {
    const code = (error as { code?: string }).code ?? ''
    if (code === 'SQLITE_FULL') return new LedgerFull('the disk is full', { cause: error })
    if (!/^SQLITE_(IOERR|CORRUPT|NOTADB|PROTOCOL|READONLY)/.test(code)) return error
    return this.#fail(error)
  }

  #fail(error: unknown): LedgerFailure {
    const { code, message } = error as { code?: string; message?: string }
    this.#failure = new LedgerFailure(`the content of the ledger is uncertain, restart the agent: ${code ?? message}`, {
      cause: error,
    })
    this.#watcher.onFailure(this.#failure)
    return this.#failure
  }
}
