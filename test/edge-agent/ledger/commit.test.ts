import Sqlite, { type Database } from 'better-sqlite3'
import { describe, expect, it } from 'vitest'
import { LedgerFailure, LedgerFull, type CommitWatcher, Commits } from '../../../edge-agent/ledger/file/commit.ts'

/** Returns a connection that calls `commit` in place of COMMIT, to simulate disk faults. */
function withCommit(db: Database, commit: () => void): Database {
  return new Proxy(db, {
    get(target, name) {
      if (name === 'prepare') return (text: string) => (text === 'COMMIT' ? { run: commit } : target.prepare(text))
      return Reflect.get(target, name, target) as unknown
    },
  })
}

function table(): Database {
  const db = new Sqlite(':memory:')
  db.exec('CREATE TABLE t (n INTEGER, filler TEXT)')
  return db
}

const watcher = (parts: Partial<CommitWatcher> = {}): CommitWatcher => ({
  onDurable: () => undefined,
  onUndone: () => undefined,
  onFailure(failure) {
    throw failure
  },
  ...parts,
})

describe('commits of the ledger', () => {
  it('share one flush among all requests of a turn', async () => {
    const db = table()
    let count = 0
    const work = new Commits(
      withCommit(db, () => (count++, void db.exec('COMMIT'))),
      watcher(),
    )
    const insert = db.prepare('INSERT INTO t (n) VALUES (?)')
    await Promise.all(Array.from({ length: 100 }, (_, n) => work.durably(() => insert.run(n).changes)))
    expect(count).toBe(1)
  })

  it('share less of them the more they do', async () => {
    const db = table()
    let count = 0
    const work = new Commits(
      withCommit(db, () => (count++, void db.exec('COMMIT'))),
      watcher(),
    )
    const insert = db.prepare('INSERT INTO t (n) VALUES (?)')
    await Promise.all([41, 41, 41, 41, 500, 1, 1].map((size) => work.durably(() => insert.run(size).changes, size)))
    expect(count).toBe(4)
  })

  it('reject only the work that violates a constraint', async () => {
    const db = table()
    let undone = 0
    const work = new Commits(db, watcher({ onUndone: () => void undone++ }))
    const insert = db.prepare('INSERT INTO t (n) VALUES (?)')
    const results = await Promise.allSettled(
      [1, 2, 3].map((n) =>
        work.durably(() => {
          insert.run(n)
          if (n === 2) throw new Error('broken')
        }),
      ),
    )
    expect(results.map((r) => r.status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(db.prepare('SELECT n FROM t ORDER BY n').pluck().all()).toEqual([1, 3])
    expect(undone).toBe(2)
  })

  it.each([
    ['as done if the watcher throws', undefined, 'fulfilled'],
    ['as failed if the disk fails in the watcher', 'SQLITE_IOERR_READ', 'rejected'],
  ] as const)('write work once and report it %s', async (_name, code, status) => {
    const db = table()
    const failures: LedgerFailure[] = []
    const onDurable = () => {
      throw Object.assign(new Error('as planned'), { code })
    }
    const work = new Commits(db, watcher({ onDurable, onFailure: (failure) => void failures.push(failure) }))
    const insert = db.prepare('INSERT INTO t (n) VALUES (?)')
    const results = await Promise.allSettled([1, 2].map((n) => work.durably(() => insert.run(n).changes)))
    expect(results.map((r) => r.status)).toEqual([status, status])
    expect(db.prepare('SELECT n FROM t ORDER BY n').pluck().all()).toEqual([1, 2])
    expect(failures).toHaveLength(code === undefined ? 0 : 1)
    expect(work.failure).toBe(failures[0])
  })

  it('are rejected on a full disk, keep earlier rows, and work again when there is room', async () => {
    const db = table()
    const work = new Commits(db, watcher())
    const insert = db.prepare('INSERT INTO t (n, filler) VALUES (?, ?)')
    await work.durably(() => insert.run(1, ''))
    db.pragma(`max_page_count = ${String(db.pragma('page_count', { simple: true }))}`)
    await expect(work.durably(() => insert.run(2, 'x'.repeat(100_000)))).rejects.toBeInstanceOf(LedgerFull)
    expect(work.failure).toBeUndefined()
    db.pragma('max_page_count = 10000')
    await work.durably(() => insert.run(3, 'x'.repeat(100_000)))
    expect(db.prepare('SELECT n FROM t ORDER BY n').pluck().all()).toEqual([1, 3])
  })

  it.each(['SQLITE_IOERR_FSYNC', 'SQLITE_FULL'])(
    'stop for good if the rollback fails too (after %s), because memory and disk may differ',
    async (code) => {
      const db = table()
      const failures: string[] = []
      let isBroken = true
      const commit = () => {
        if (!isBroken) return void db.exec('COMMIT')
        db.exec('ROLLBACK')
        throw Object.assign(new Error('the commit failed'), { code })
      }
      const onUndone = () => {
        throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_READ' })
      }
      const work = new Commits(
        withCommit(db, commit),
        watcher({ onUndone, onFailure: ({ message }) => void failures.push(message) }),
      )
      const insert = db.prepare('INSERT INTO t (n) VALUES (1)')
      await expect(work.durably(() => insert.run())).rejects.toThrow(LedgerFailure)
      expect(failures).toHaveLength(1)
      isBroken = false
      await expect(work.durably(() => insert.run())).rejects.toThrow(LedgerFailure)
      expect(db.prepare('SELECT n FROM t').all()).toEqual([])
    },
  )

  it('stop for good if the disk fails, because the result is uncertain', async () => {
    const db = table()
    const failures: LedgerFailure[] = []
    const broken = withCommit(db, () => {
      throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR_FSYNC' })
    })
    const work = new Commits(broken, watcher({ onFailure: (failure) => void failures.push(failure) }))
    await expect(work.durably(() => 1)).rejects.toBeInstanceOf(LedgerFailure)
    await expect(work.durably(() => 1)).rejects.toBeInstanceOf(LedgerFailure)
    expect(() => work.now(() => 1)).toThrow(LedgerFailure)
    expect(failures).toHaveLength(1)
  })
})
