import type { Database as Connection } from 'better-sqlite3'

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

/** Works in one commit at most: bounds how long the first of them waits. */
const GROUP_LIMIT = 128
const QUEUE_LIMIT = 10_000

interface Job {
  work: () => unknown
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
}

export interface CommitWatcher {
  /** A transaction is on the disk, and stays so. Whatever it throws it has told by itself; a fault of the disk is one of the ledger. */
  onDurable(): void
  /** A transaction was rolled back. */
  onUndone(): void
  onFailure(failure: LedgerFailure): void
}

/** The flush to disk costs more than all the rest, so what is asked in one turn shares one. */
export function commits(db: Connection, { onDurable, onUndone, onFailure }: CommitWatcher): Commits {
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const rollback = db.prepare('ROLLBACK')
  const queue: Job[] = []
  let scheduled = false
  let isClosed = false
  let failure: LedgerFailure | undefined

  function transaction<T>(work: () => T): T {
    if (failure) throw failure
    if (db.inTransaction) return work()
    let value: T
    try {
      begin.run()
      value = work()
      commit.run()
    } catch (error) {
      const fault = undo()
      const known = asFailure(error)
      // Not undone for sure, so what is in memory and what is on the disk may differ.
      throw fault === undefined || failure ? known : fail(fault)
    }
    tell()
    return value
  }

  /** Answers what went wrong: undoing reads the disk, which may have failed for good. */
  function undo(): unknown {
    try {
      if (db.inTransaction) rollback.run()
      onUndone()
      return undefined
    } catch (error) {
      return error ?? new Error('it was not undone')
    }
  }

  /** It is on the disk, whatever comes of the word about it: nobody may take it for undone, and do it again. */
  function tell(): void {
    try {
      onDurable()
    } catch (error) {
      if (asFailure(error) === failure) throw failure
    }
  }

  function asFailure(error: unknown): unknown {
    const code = (error as { code?: string }).code ?? ''
    if (code === 'SQLITE_FULL') return new LedgerFull('the disk is full', { cause: error })
    if (!/^SQLITE_(IOERR|CORRUPT|NOTADB|PROTOCOL|READONLY)/.test(code)) return error
    return fail(error)
  }

  function fail(error: unknown): LedgerFailure {
    const { code, message } = error as { code?: string; message?: string }
    failure = new LedgerFailure(`the ledger cannot be trusted any more: ${code ?? message}`, { cause: error })
    onFailure(failure)
    return failure
  }

  function runQueue(): void {
    scheduled = false
    const jobs = queue.splice(0, GROUP_LIMIT)
    if (jobs.length === 0) return
    if (queue.length > 0) schedule()
    const values: unknown[] = []
    try {
      transaction(() => {
        for (const job of jobs) values.push(job.work())
      })
    } catch (error) {
      // One of them broke a promise of ours, or the disk is full: none of the group has happened, so each is tried alone.
      if (jobs.length > 1 && !failure) for (const job of jobs) runAlone(job)
      else for (const job of jobs) job.reject(error)
      return
    }
    for (const [i, job] of jobs.entries()) job.resolve(values[i])
  }

  function runAlone(job: Job): void {
    try {
      job.resolve(transaction(job.work))
    } catch (error) {
      job.reject(error)
    }
  }

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(runQueue)
  }

  return {
    durably<T>(work: () => T): Promise<T> {
      if (failure) return Promise.reject(failure)
      if (isClosed) return Promise.reject(new Error('the ledger is closed'))
      if (queue.length >= QUEUE_LIMIT) return Promise.reject(new Error('too much waits for the ledger'))
      return new Promise<T>((resolve, reject) => {
        queue.push({ work, resolve: resolve as (value: unknown) => void, reject })
        schedule()
      })
    },
    now: transaction,
    get failure() {
      return failure
    },
    close() {
      isClosed = true
      while (queue.length > 0) runQueue()
    },
  }
}
