import type { Database as Connection } from 'better-sqlite3'
import { DatabaseBusy, StorageFailure } from './database.ts'

/** Transactions that share one commit at most: bounds how long the first of them waits. */
const GROUP_LIMIT = 64
/** Waiting transactions at most; beyond, callers are refused rather than kept. */
const QUEUE_LIMIT = 10_000

interface Job {
  work: () => Promise<unknown>
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
}

export interface GroupCommit {
  /** Runs `work` between a savepoint and its release; resolves after the commit that holds it. */
  run<T>(work: () => Promise<T>): Promise<T>
  /** Resolves when nothing waits any more. */
  drain(): Promise<void>
}

/**
 * One writer. Transactions that wait at the same time share a commit, because the disk's flush costs
 * more than all the rest; each has its own savepoint and fails alone, and none is told "done" before
 * the commit. `onBegin` is called before each transaction, in the order in which they commit. After an I/O error nobody can know what the disk holds, so the writer stops for good.
 */
export function groupCommit(
  db: Connection,
  onFailure: (failure: StorageFailure) => void,
  onBegin: () => void = () => undefined,
): GroupCommit {
  const queue: Job[] = []
  const [begin, commit, rollback] = ['BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK'].map((sql) => db.prepare(sql))
  const [save, release, undo] = ['SAVEPOINT job', 'RELEASE job', 'ROLLBACK TO job'].map((sql) => db.prepare(sql))
  let running: Promise<void> | undefined
  let failure: StorageFailure | undefined

  async function runGroup(): Promise<void> {
    const done: { job: Job; value: unknown }[] = []
    const taken: Job[] = []
    begin?.run()
    try {
      for (let i = 0; i < GROUP_LIMIT; i++) {
        const job = queue.shift()
        if (!job) break
        taken.push(job)
        onBegin()
        save?.run()
        try {
          done.push({ job, value: await job.work() })
          release?.run()
        } catch (error) {
          if (!db.inTransaction) throw error
          undo?.run()
          release?.run()
          job.reject(error)
        }
      }
      commit?.run()
    } catch (error) {
      noteFailure(error)
      rollBack()
      // The one with which the transaction ended is among them; who was refused already hears nothing new.
      for (const job of taken) job.reject(failure ?? error)
      return
    }
    for (const { job, value } of done) job.resolve(value)
  }

  function rollBack(): void {
    try {
      if (db.inTransaction) rollback?.run()
    } catch (error) {
      noteFailure(error)
    }
  }

  function noteFailure(error: unknown): void {
    const code = (error as { code?: string }).code ?? ''
    // SQLITE_FULL was cleanly rolled back and ends when there is room again; the others leave the disk in doubt.
    if (failure || !/^SQLITE_(IOERR|CORRUPT|NOTADB|PROTOCOL)/.test(code)) return
    failure = new StorageFailure(`the disk cannot be trusted any more: ${code}`, { cause: error })
    onFailure(failure)
    for (const job of queue.splice(0)) job.reject(failure)
  }

  async function runAll(): Promise<void> {
    try {
      while (queue.length > 0) {
        try {
          await runGroup()
        } catch (error) {
          // BEGIN itself failed: somebody else holds the file, or the disk is gone.
          noteFailure(error)
          queue.shift()?.reject(failure ?? error)
        }
      }
    } finally {
      running = undefined
    }
  }

  return {
    run<T>(work: () => Promise<T>): Promise<T> {
      if (failure) return Promise.reject(failure)
      if (queue.length >= QUEUE_LIMIT) return Promise.reject(new DatabaseBusy('too many transactions wait'))
      return new Promise<T>((resolve, reject) => {
        queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
        // Begun a turn later, so that requests which arrive together commit together.
        running ??= new Promise<void>((r) => setImmediate(r)).then(runAll)
      })
    },
    async drain() {
      while (running) await running
    },
  }
}
