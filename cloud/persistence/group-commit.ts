import type { Database as Connection } from 'better-sqlite3'
import { DatabaseBusy, StorageFailure } from './database.ts'

/** Maximum number of transactions in one commit. The maximum limits how long the first of these transactions waits. */
const GROUP_LIMIT = 64
/** Maximum number of waiting transactions. Further transactions are rejected. */
const QUEUE_LIMIT = 10_000

interface Job {
  work: () => Promise<unknown>
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
}

/** A job whose work has run. The promise of the job resolves after the commit. */
interface Done {
  job: Job
  value: unknown
}

export interface GroupCommit {
  /** Runs `work` in a savepoint; resolves after the commit that includes it. */
  run<T>(work: () => Promise<T>): Promise<T>
  /** Resolves when the queue is empty. */
  drain(): Promise<void>
}

/**
 * Starts the single writer. Waiting transactions share one commit, because the flush of the disk takes longer than all
 * their work. Each transaction has a savepoint, so that a failed one does not roll back the others. The promise of a
 * transaction resolves after the commit. `onBegin` runs before each transaction, in commit order. After an I/O error
 * the content of the disk is unknown, so the writer rejects all later transactions.
 */
export function groupCommit(
  db: Connection,
  onFailure: (failure: StorageFailure) => void,
  onBegin: () => void = () => undefined,
): GroupCommit {
  return new Writer(db, onFailure, onBegin)
}

function statementsOf(db: Connection) {
  return {
    begin: db.prepare('BEGIN IMMEDIATE'),
    commit: db.prepare('COMMIT'),
    rollback: db.prepare('ROLLBACK'),
    save: db.prepare('SAVEPOINT job'),
    release: db.prepare('RELEASE job'),
    undo: db.prepare('ROLLBACK TO job'),
  }
}

class Writer implements GroupCommit {
  readonly #db: Connection
  readonly #onFailure: (failure: StorageFailure) => void
  readonly #onBegin: () => void
  readonly #statements: ReturnType<typeof statementsOf>
  readonly #queue: Job[] = []
  #running: Promise<void> | undefined
  #failure: StorageFailure | undefined

  constructor(db: Connection, onFailure: (failure: StorageFailure) => void, onBegin: () => void) {
    this.#db = db
    this.#onFailure = onFailure
    this.#onBegin = onBegin
    this.#statements = statementsOf(db)
  }

  run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#failure) return Promise.reject(this.#failure)
    if (this.#queue.length >= QUEUE_LIMIT) return Promise.reject(new DatabaseBusy('too many transactions wait'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
      // Waits for `setImmediate`, so that transactions of requests that arrive together share a commit.
      this.#running ??= new Promise<void>((r) => setImmediate(r)).then(() => this.#runAll())
    })
  }

  async drain(): Promise<void> {
    while (this.#running) await this.#running
  }

  async #runAll(): Promise<void> {
    try {
      while (this.#queue.length > 0) {
        try {
          await this.#runGroup()
        } catch (error) {
          // BEGIN failed: another process holds the lock, or the disk is gone.
          this.#noteFailure(error)
          this.#queue.shift()?.reject(this.#failure ?? error)
        }
      }
    } finally {
      this.#running = undefined
    }
  }

  async #runGroup(): Promise<void> {
    const { begin, commit } = this.#statements
    const done: Done[] = []
    const taken: Job[] = []
    begin.run()
    try {
      for (let i = 0; i < GROUP_LIMIT; i++) {
        const job = this.#queue.shift()
        if (!job) break
        taken.push(job)
        await this.#runJob(job, done)
      }
      commit.run()
    } catch (error) {
      this.#noteFailure(error)
      this.#rollBack()
      // Rejects all jobs of the group. `reject` has no effect on a promise that is already settled.
      for (const job of taken) job.reject(this.#failure ?? error)
      return
    }
    for (const { job, value } of done) job.resolve(value)
  }

  /** Runs one transaction of the group in its savepoint. Throws if the whole group must roll back. */
  async #runJob(job: Job, done: Done[]): Promise<void> {
    const { save, release, undo } = this.#statements
    this.#onBegin()
    save.run()
    try {
      done.push({ job, value: await job.work() })
      release.run()
    } catch (error) {
      if (!this.#db.inTransaction) throw error
      undo.run()
      release.run()
      job.reject(error)
    }
  }

  #rollBack(): void {
    try {
      if (this.#db.inTransaction) this.#statements.rollback.run()
    } catch (error) {
      this.#noteFailure(error)
    }
  }

  #noteFailure(error: unknown): void {
    const code = (error as { code?: string }).code ?? ''
    // These codes leave the content of the disk unknown. SQLITE_FULL is not one of these codes, because SQLite then
    // rolls back cleanly.
    if (this.#failure || !/^SQLITE_(IOERR|CORRUPT|NOTADB|PROTOCOL)/.test(code)) return
    this.#failure = new StorageFailure(`the disk cannot be trusted any more: ${code}`, { cause: error })
    this.#onFailure(this.#failure)
    for (const job of this.#queue.splice(0)) job.reject(this.#failure)
  }
}
