import type { Database as Connection, Statement } from 'better-sqlite3'

/** Disk fault after which the content of the ledger is uncertain. From then on, this process releases nothing (P6). */
export class LedgerFailure extends Error {
  override name = 'LedgerFailure'
}

/** The disk is full. The transaction was rolled back; a retry may succeed when the disk has room. */
export class LedgerFull extends Error {
  override name = 'LedgerFull'
}

export interface CommitWatcher {
  /** Called when a transaction is durable. The ledger ignores errors of the watcher, except disk faults. */
  onDurable(): void
  /** Called after a transaction was rolled back. */
  onUndone(): void
  onFailure(failure: LedgerFailure): void
}

/**
 * Runs transactions one at a time, and rolls back a transaction that fails. If the disk is full, throws `LedgerFull`;
 * later transactions may succeed. After another disk fault, throws `LedgerFailure` and runs no further transaction.
 */
class Transactions {
  readonly #db: Connection
  readonly #watcher: CommitWatcher
  readonly #begin: Statement
  readonly #commit: Statement
  readonly #rollback: Statement
  readonly #changedRows: Statement<[], number>
  #failure: LedgerFailure | undefined
  #isFull = false

  constructor(db: Connection, watcher: CommitWatcher) {
    this.#db = db
    this.#watcher = watcher
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#rollback = db.prepare('ROLLBACK')
    this.#changedRows = db.prepare<[], number>('SELECT total_changes()').pluck()
  }

  get changedRows(): number {
    return this.#changedRows.get() ?? 0
  }

  get failure(): LedgerFailure | undefined {
    return this.#failure
  }

  get isFull(): boolean {
    return this.#isFull
  }

  /** Joins the open transaction if there is one. */
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
      // If the rollback failed too, memory and disk may differ.
      throw fault === undefined || this.#failure ? failure : this.#fail(fault)
    }
    this.#isFull = false
    this.#notifyDurable()
    return value
  }

  /** Rolls back. Returns the error if the rollback itself failed, for example on a broken disk. */
  #undo(): unknown {
    try {
      if (this.#db.inTransaction) this.#rollback.run()
      this.#watcher.onUndone()
      return undefined
    } catch (error) {
      return error ?? new Error('the rollback failed')
    }
  }

  /**
   * The transaction is durable even if the watcher throws. The caller must not see that error, because the caller would
   * repeat the transaction.
   */
  #notifyDurable(): void {
    try {
      this.#watcher.onDurable()
    } catch (error) {
      if (this.#asFailure(error) === this.#failure) throw this.#failure
    }
  }

  #asFailure(error: unknown): unknown {
    const code = (error as { code?: string }).code ?? ''
    if (code === 'SQLITE_FULL') {
      this.#isFull = true
      return new LedgerFull('the disk is full', { cause: error })
    }
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

/** Maximum size of the jobs in one commit, unless one alone is larger. This limit bounds how long the first job waits. */
const GROUP_LIMIT = 128
const QUEUE_LIMIT = 10_000

interface Job {
  work: () => unknown
  size: number
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
}

/**
 * Commits of the ledger. Runs the jobs of one event-loop turn in one transaction, because the flush to disk costs more
 * than all other work. If the transaction is rolled back, each job runs again alone, so that only the faulty job is
 * rejected.
 */
export class Commits {
  readonly #transactions: Transactions
  readonly #queue: Job[] = []
  #isScheduled = false
  #isClosed = false

  constructor(db: Connection, watcher: CommitWatcher) {
    this.#transactions = new Transactions(db, watcher)
  }

  /**
   * Runs `work` in a transaction and resolves when the transaction is durable. Calls of the same event-loop turn may
   * share a transaction. So `work` must finish its checks before it writes, and must return a refusal instead of
   * throwing. `size`: how much it does, compared with a claim (1): transactions of much work are shared by fewer calls.
   */
  durably<T>(work: () => T, size = 1): Promise<T> {
    if (this.failure) return Promise.reject(this.failure)
    if (this.#isClosed) return Promise.reject(new Error('the ledger is closed'))
    if (this.#queue.length >= QUEUE_LIMIT) return Promise.reject(new Error('the queue of the ledger is full'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, size, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  /** Runs `work` synchronously: in the open transaction, or in a new transaction if none is open. */
  now<T>(work: () => T): T {
    return this.#transactions.run(work)
  }

  get failure(): LedgerFailure | undefined {
    return this.#transactions.failure
  }

  /** Number of rows that were changed since the ledger was opened. A transaction that changes none flushes nothing. */
  get changedRows(): number {
    return this.#transactions.changedRows
  }

  /** True if the last transaction failed because the disk is full. */
  get isFull(): boolean {
    return this.#transactions.isFull
  }

  /** Runs the queued work, then rejects further work. */
  close(): void {
    this.#isClosed = true
    while (this.#queue.length > 0) this.#runQueue()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#runQueue())
  }

  #runQueue(): void {
    this.#isScheduled = false
    const jobs = this.#queue.splice(0, this.#groupLength())
    if (jobs.length === 0) return
    if (this.#queue.length > 0) this.#schedule()
    let values: unknown[]
    try {
      values = this.now(() => jobs.map((job) => job.work()))
    } catch (error) {
      // A job threw, or the disk is full. The whole group was rolled back, so each job runs alone.
      if (jobs.length > 1 && !this.failure) for (const job of jobs) this.#runAlone(job)
      else for (const job of jobs) job.reject(error)
      return
    }
    for (const [i, job] of jobs.entries()) job.resolve(values[i])
  }

  /** Number of jobs that share the next commit. */
  #groupLength(): number {
    let size = 0
    const end = this.#queue.findIndex((job, i) => {
      size += job.size
      return i > 0 && size > GROUP_LIMIT
    })
    return end < 0 ? this.#queue.length : end
  }

  #runAlone(job: Job): void {
    try {
      job.resolve(this.now(job.work))
    } catch (error) {
      job.reject(error)
    }
  }
}
