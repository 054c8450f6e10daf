import type { Database as Connection, Statement } from 'better-sqlite3'

/** A fault of the disk after which nobody knows what is on it: no actuator moves on the word of this process any more (P6). */
export class LedgerFailure extends Error {
  override name = 'LedgerFailure'
}

/** The disk is full: the transaction was cleanly undone; it may work again when there is room. */
export class LedgerFull extends Error {
  override name = 'LedgerFull'
}

export interface Commits {
  /**
   * Runs `work` in a transaction that it may share with others of the same turn; resolves when that is
   * durable. `work` checks before it writes and does not throw: a refusal is a value.
   */
  durably<T>(work: () => T): Promise<T>
  /** As `durably`, at once and alone: for start and stop. Within another it is part of that. */
  now<T>(work: () => T): T
  readonly failure: LedgerFailure | undefined
  /** Does what waits, and then nothing more. */
  close(): void
}

export interface CommitWatcher {
  /** A transaction is on the disk, and stays so. Whatever it throws it has told by itself; a fault of the disk is one of the ledger. */
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
      const known = this.#asFailure(error)
      // Not undone for sure, so what is in memory and what is on the disk may differ.
      throw fault === undefined || this.#failure ? known : this.#fail(fault)
    }
    this.#tell()
    return value
  }

  /** Answers what went wrong: undoing reads the disk, which may have failed for good. */
  #undo(): unknown {
    try {
      if (this.#db.inTransaction) this.#rollback.run()
      this.#watcher.onUndone()
      return undefined
    } catch (error) {
      return error ?? new Error('it was not undone')
    }
  }

  /** It is on the disk, whatever comes of the word about it: nobody may take it for undone, and do it again. */
  #tell(): void {
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
    this.#failure = new LedgerFailure(`the ledger cannot be trusted any more: ${code ?? message}`, { cause: error })
    this.#watcher.onFailure(this.#failure)
    return this.#failure
  }
}
