import type { Database as Connection } from 'better-sqlite3'
import type { Clock } from '../../../policy/platform.ts'
import { StorageFailure } from './database.ts'
import { afterFreeTurns } from '../../../policy/free-turns.ts'
import { FairQueue } from './fair-turns.ts'

/** Maximum number of transactions in one commit. The maximum limits how long the first of these transactions waits. */
const GROUP_LIMIT = 64
/**
 * Time after which a group takes no further transaction, ms. Expensive ones then do not delay the commit of others.
 * Cheap ones fill the group first: they change the same pages, and a commit writes each page once.
 */
const GROUP_MS = 25
/** Longest time that a group waits for transactions of requests that begin in the next turns of the event loop, ms. */
const GATHER_MS = 3

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

interface GroupOptions {
  readonly onBegin?: () => void
  readonly clock: Pick<Clock, 'elapsed'>
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

/**
 * The single writer. Waiting transactions share one commit, because the flush of the disk takes longer than all
 * their work. Each transaction has a savepoint, so that a failed one does not roll back the others. The promise of a
 * transaction resolves after the commit. `onBegin` runs before each transaction, in commit order. Between two commits
 * the process handles what arrived meanwhile. After an I/O error the content of the disk is unknown, so the writer
 * rejects all later transactions.
 */
export class GroupCommit {
  readonly #db: Connection
  readonly #onFailure: (failure: StorageFailure) => void
  readonly #onBegin: () => void
  readonly #statements: ReturnType<typeof statementsOf>
  readonly #clock: Pick<Clock, 'elapsed'>
  readonly #queue = new FairQueue<Job>()
  #running: Promise<void> | undefined
  #failure: StorageFailure | undefined

  constructor(
    db: Connection,
    onFailure: (failure: StorageFailure) => void,
    { onBegin = () => undefined, clock }: GroupOptions,
  ) {
    this.#db = db
    this.#clock = clock
    this.#onFailure = onFailure
    this.#onBegin = onBegin
    this.#statements = statementsOf(db)
  }

  /** Runs `work` in a savepoint; resolves after the commit that includes it. Holders, such as accounts, take turns. */
  run<T>(work: () => Promise<T>, holder = ''): Promise<T> {
    if (this.#failure) return Promise.reject(this.#failure)
    return new Promise<T>((resolve, reject) => {
      this.#queue.add(holder, { work, resolve: resolve as (value: unknown) => void, reject })
      this.#running ??= this.#runAll()
    })
  }

  /** Resolves when the queue is empty. */
  async drain(): Promise<void> {
    while (this.#running) await this.#running
  }

  async #runAll(): Promise<void> {
    try {
      while (this.#queue.size > 0) {
        await this.#gather()
        const startMs = this.#clock.elapsed()
        try {
          await this.#runGroup()
        } catch (error) {
          // BEGIN failed: another process holds the lock, or the disk is gone.
          this.#noteFailure(error)
          this.#queue.take()?.reject(this.#failure ?? error)
        }
        if (this.#queue.size > 0) await new Promise<void>((resolve) => afterFreeTurns(this.#clock, startMs, resolve))
      }
    } finally {
      this.#running = undefined
    }
  }

  /** Waits as long as each turn brings more: transactions of requests that arrive together share a commit. */
  async #gather(): Promise<void> {
    const untilMs = this.#clock.elapsed() + GATHER_MS
    let size: number
    do {
      size = this.#queue.size
      await new Promise<void>((resolve) => setImmediate(resolve))
    } while (this.#queue.size > size && this.#queue.size < GROUP_LIMIT && this.#clock.elapsed() < untilMs)
  }

  async #runGroup(): Promise<void> {
    const { begin, commit } = this.#statements
    const done: Done[] = []
    const taken: Job[] = []
    begin.run()
    const endsMs = this.#clock.elapsed() + GROUP_MS
    try {
      for (let i = 0; i < GROUP_LIMIT && this.#clock.elapsed() < endsMs; i++) {
        const job = this.#queue.take()
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
    for (const job of this.#queue.takeAll()) job.reject(this.#failure)
  }
}
