import type { Database as Connection } from 'better-sqlite3'
import { Transactions, type Commits, type CommitWatcher, type LedgerFailure } from './commit.ts'

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
 * Runs the jobs of one event-loop turn in one transaction, because the flush to disk costs more than all other work. If
 * the transaction is rolled back, each job runs again alone, so that only the faulty job is rejected.
 */
export function commits(db: Connection, watcher: CommitWatcher): Commits {
  return new GroupCommit(new Transactions(db, watcher))
}

class GroupCommit implements Commits {
  readonly #transactions: Transactions
  readonly #queue: Job[] = []
  #isScheduled = false
  #isClosed = false

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  durably<T>(work: () => T, size = 1): Promise<T> {
    if (this.failure) return Promise.reject(this.failure)
    if (this.#isClosed) return Promise.reject(new Error('the ledger is closed'))
    if (this.#queue.length >= QUEUE_LIMIT) return Promise.reject(new Error('the queue of the ledger is full'))
    return new Promise<T>((resolve, reject) => {
      this.#queue.push({ work, size, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  now<T>(work: () => T): T {
    return this.#transactions.run(work)
  }

  get failure(): LedgerFailure | undefined {
    return this.#transactions.failure
  }

  get isFull(): boolean {
    return this.#transactions.isFull
  }

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
