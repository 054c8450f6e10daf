import Sqlite from 'better-sqlite3'
import fc from 'fast-check'
import { sql, type InsertResult } from 'kysely'
import { expect, it, describe } from 'vitest'
import { changedRows, type Db } from '../../../../cloud/platform/persistence/database.ts'
import { fairTurns } from '../../../../cloud/platform/persistence/fair-turns.ts'
import { GroupCommit } from '../../../../cloud/platform/persistence/group-commit.ts'
import { ensureAccount } from '../../../../cloud/sales/registrations/registrations.ts'
import { commitPosition } from '../../../../cloud/platform/persistence/positions.ts'
import { checkDigit } from '../../../../policy/gs1/gtin.ts'
import { startTestCloud } from '../../../support/cloud.ts'
import { newDatabase, onEveryDatabase } from '../../../support/databases.ts'

const positionOf = async (tx: Db): Promise<number> =>
  Number((await tx.selectNoFrom(commitPosition(tx).as('n')).executeTakeFirstOrThrow()).n)

/** A clock without which no task counts as long. */
const STANDING = { clock: { elapsed: () => 0 } }

onEveryDatabase('a database', (kind) => {
  const row = (name: string, value: string) => ({ name, value })

  it('rolls back only the transaction that fails', async () => {
    const db = await newDatabase(kind)
    const insert = (name: string, fails: boolean) =>
      db.database.write(async (tx) => {
        await tx.insertInto('installation').values(row(name, 'x')).execute()
        if (fails) throw new Error('no')
      })
    const results = await Promise.allSettled(Array.from({ length: 50 }, (_, i) => insert(`n${i}`, i % 3 === 0)))
    expect(results.filter((r) => r.status === 'rejected')).toHaveLength(17)
    const names = await db.database.reads.selectFrom('installation').select('name').execute()
    expect(names).toHaveLength(33)
    await db.database.close()
    await db.remove()
  })

  it('answers a write without result before its error is known, and stores nothing after it', async () => {
    const db = await newDatabase(kind)
    const again = (tx: Db) => tx.insertInto('installation').values(row('twice', 'x'))
    await db.database.write((tx) => again(tx).execute())
    let [isAnswered, isRead] = [false, false]
    const work = db.database.write(async (tx) => {
      const [{ numInsertedOrUpdatedRows }] = (await again(tx).execute()) as [InsertResult]
      isAnswered = !numInsertedOrUpdatedRows
      await tx.selectFrom('installation').select('name').execute()
      isRead = true
    })
    await expect(work).rejects.toThrow(/unique/i)
    expect([isAnswered, isRead]).toEqual([true, false])
    await expect(db.database.write((tx) => again(tx).execute())).rejects.toThrow(/unique/i)
    expect(await db.database.write((tx) => changedRows(tx, tx.deleteFrom('installation')))).toBeGreaterThan(0)
    await db.database.close()
    await db.remove()
  })

  it('counts on from what another process has written: listings and positions', async () => {
    const cloud = await startTestCloud(kind)
    const insert = async (key: string, n: number) => {
      const { stores } = await cloud.ok(key, 'fetchStores')
      const ean = `40063813${String(3_000 + n)}`
      const product = {
        storeId: stores[0].storeId,
        ean: `${ean}${checkDigit(ean)}`,
        name: 'Marker',
        price: 1.99,
        vat: 19,
      }
      return cloud.ok(key, 'insertProduct', product)
    }
    await insert(await cloud.key('secret', 'test', { account: 'First' }), 1)
    // As `untag keys create` does beside a running cloud.
    const other = await cloud.db.again()
    const added = await other.write(async (tx) => {
      await ensureAccount(tx, 'Second', 'GROW', cloud.platform)
      return positionOf(tx)
    })
    await insert(await cloud.key('secret', 'test', { account: 'Second' }), 2)
    expect(await cloud.db.database.write(positionOf)).toBeGreaterThan(added)
    await other.close()
    await cloud.stop()
    expect(cloud.errors).toEqual([])
  })

  it('shows no uncommitted data to readers', async () => {
    const db = await newDatabase(kind)
    let seen = -1
    await db.database.write(async (tx) => {
      await tx.insertInto('installation').values(row('a', 'x')).execute()
      seen = (await db.database.reads.selectFrom('installation').selectAll().execute()).length
    })
    expect(seen).toBe(0)
    expect(await db.database.reads.selectFrom('installation').selectAll().execute()).toHaveLength(1)
    await db.database.close()
    await db.remove()
  })

  it('loses none of 64 concurrent increments', async () => {
    const db = await newDatabase(kind)
    await db.database.write((tx) => tx.insertInto('installation').values(row('n', '0')).execute())
    await Promise.all(
      Array.from({ length: 64 }, () =>
        db.database.write(async (tx) => {
          const { value } = await tx
            .selectFrom('installation')
            .select('value')
            .where('name', '=', 'n')
            .executeTakeFirstOrThrow()
          await tx
            .updateTable('installation')
            .set({ value: String(Number(value) + 1) })
            .where('name', '=', 'n')
            .execute()
        }),
      ),
    )
    const { value } = await db.database.reads
      .selectFrom('installation')
      .select('value')
      .where('name', '=', 'n')
      .executeTakeFirstOrThrow()
    expect(value).toBe('64')
    await db.database.close()
    await db.remove()
  })

  it('stores integers beyond 32 bits and any text unchanged', async () => {
    const db = await newDatabase(kind)
    const at = Date.UTC(2120, 0, 1)
    await db.database.write((tx) =>
      tx
        .insertInto('account')
        .values({ account_id: 'a', name: 'Größe ☂ 𝄞', package: 'GO', status: 'active', created_ms: at })
        .execute(),
    )
    expect(await db.database.reads.selectFrom('account').selectAll().execute()).toEqual([
      { account_id: 'a', name: 'Größe ☂ 𝄞', package: 'GO', status: 'active', created_ms: at },
    ])
    await db.database.close()
    await db.remove()
  })

  it('opens again with all data, also in two processes at once', async () => {
    const db = await newDatabase(kind)
    await db.database.write((tx) => tx.insertInto('installation').values(row('kept', 'x')).execute())
    await db.database.close()
    // Only PostgreSQL opens both at once: here both run in one process, and SQLite's wait for a lock blocks it.
    const [one, two] =
      kind === 'postgres' ? await Promise.all([db.again(), db.again()]) : [await db.again(), await db.again()]
    for (const each of [one, two]) {
      expect(await each.reads.selectFrom('installation').selectAll().execute()).toEqual([row('kept', 'x')])
      await each.close()
    }
    await db.remove()
  })

  it('keys events by account and exceptions by store', async () => {
    const db = await newDatabase(kind)
    const insertAll = (name: string, exception_id: string) => {
      const of = { tenant: `${name}.test`, store_id: `st_${name}` }
      const event = { event_id: 'alarm-1', ...of }
      return [
        (tx: Db) =>
          tx
            .insertInto('protection_event')
            .values({
              ...event,
              type: 't',
              device_id: 'd',
              purchase_id: null,
              occurred_ms: 1,
              processed_ms: 2,
              body: '{}',
              position: 1,
            })
            .execute(),
        (tx: Db) =>
          tx
            .insertInto('alarm_disposition')
            .values({ ...event, disposition: 'real', operator_id: 'o', recovered_cent: 5, disposed_ms: 6 })
            .execute(),
        (tx: Db) =>
          tx
            .insertInto('outbox_event')
            .values({ ...event, type: 't', at_ms: 3, data: '{}' })
            .execute(),
        (tx: Db) =>
          tx
            .insertInto('protection_exception')
            .values({
              exception_id,
              ...of,
              kind: 'k',
              subject: 'r',
              device_id: null,
              purchase_id: 'p',
              detail: '',
              raised_ms: 7,
              note: null,
              event_id: 'e',
              times: 1,
              last_ms: 8,
            })
            .execute(),
      ]
    }
    for (const name of ['a', 'b'])
      for (const insert of insertAll(name, `exc_${name}`)) await db.database.write((tx) => insert(tx))
    for (const insert of insertAll('a', 'exc_c'))
      await expect(db.database.write(async (tx) => void (await insert(tx)))).rejects.toThrow()
    await db.database.close()
    await db.remove()
  })

  it('rejects a database of a newer untag', async () => {
    const db = await newDatabase(kind)
    await db.database.write((tx) => sql`INSERT INTO migration (name) VALUES ('9999-future')`.execute(tx))
    await db.database.close()
    await expect(db.again()).rejects.toThrow(/newer untag/)
    await db.remove()
  })
})

describe('SQLite', () => {
  it('commits durably: every open sets FULL and reads it back, as SQLite defaults to NORMAL', async () => {
    const db = await newDatabase('sqlite')
    const file = (db.location as { file: string }).file
    await db.database.close()
    const plain = new Sqlite(file)
    expect(plain.pragma('synchronous', { simple: true })).toBe(1)
    plain.close()
    const again = await db.again()
    await again.write((tx) => tx.insertInto('installation').values({ name: 'x', value: 'y' }).execute())
    await again.close()
    await db.remove()
  })

  it('rejects a damaged file with a clear error', async () => {
    const db = await newDatabase('sqlite')
    await db.database.close()
    const { file } = db.location as { file: string }
    const { openSync, writeSync, closeSync } = await import('node:fs')
    const fd = openSync(file, 'r+')
    writeSync(fd, Buffer.alloc(4_096, 0x5a), 0, 4_096, 8_192)
    closeSync(fd)
    await expect(db.again()).rejects.toThrow(/damaged|malformed/)
    await db.remove()
  })

  it.each([
    { costMs: 0, commits: 2 },
    { costMs: 0.25, commits: 2 },
    { costMs: 5, commits: 20 },
  ])(
    'shares commits among 100 transactions of $costMs ms, and confirms none before',
    async ({ costMs, ...expected }) => {
      const db = new Sqlite(':memory:')
      db.exec('CREATE TABLE t (n INTEGER)')
      let commits = 0
      let nowMs = 0
      const prepare = db.prepare.bind(db)
      const spied = new Proxy(db, {
        get(target, name) {
          if (name !== 'prepare') return Reflect.get(target, name) as unknown
          return (text: string) => {
            const statement = prepare(text)
            return text === 'COMMIT' ? { run: () => (commits++, statement.run()) } : statement
          }
        },
      })
      const groups = new GroupCommit(spied, () => undefined, { clock: { elapsed: () => nowMs } })
      const insert = prepare('INSERT INTO t VALUES (?)')
      const committedFirst = await Promise.all(
        Array.from({ length: 100 }, async (_, n) => {
          await groups.run(async () => void (insert.run(n), (nowMs += costMs)))
          return commits > 0
        }),
      )
      expect(committedFirst).not.toContain(false)
      expect(commits).toBe(expected.commits)
      expect(prepare('SELECT COUNT(*) AS n FROM t').get()).toEqual({ n: 100 })
    },
  )

  it('lets accounts take turns, and commits after 25 ms of expensive transactions', async () => {
    const db = new Sqlite(':memory:')
    let nowMs = 0
    const ran: string[] = []
    const confirmed: string[] = []
    const groups = new GroupCommit(db, () => undefined, { clock: { elapsed: () => nowMs } })
    const run = async (name: string, holder: string, costMs: number) => {
      await groups.run(async () => {
        ran.push(name)
        nowMs += costMs
      }, holder)
      confirmed.push(`${name} at ${nowMs}`)
    }
    const flood = Array.from({ length: 5 }, (_, n) => run(`flood ${n}`, 'a', 100))
    const others = [run('till 0', 'b', 1), run('till 1', 'b', 1), run('till 2', 'c', 1)]
    await Promise.all([...flood, ...others])
    expect(ran.slice(0, 5)).toEqual(['flood 0', 'till 0', 'till 2', 'flood 1', 'till 1'])
    expect(confirmed.slice(0, 2)).toEqual(['flood 0 at 100', 'till 0 at 202'])
    db.close()
  })

  it('takes requests between two commits', async () => {
    const db = new Sqlite(':memory:')
    const groups = new GroupCommit(db, () => undefined, STANDING)
    let arrived = 0
    setImmediate(() => setImmediate(() => arrived++))
    let seen = -1
    await Promise.all(
      Array.from({ length: 130 }, (_, n) => groups.run(async () => void (n === 129 && (seen = arrived)))),
    )
    expect(seen).toBe(1)
    db.close()
  })

  it('lets one read block the process at a time, and accounts take turns', async () => {
    const inTurn = fairTurns(STANDING.clock)
    const ran: string[] = []
    const read = (name: string, holder: string) => inTurn(holder, async () => void ran.push(name))
    const turn = () => new Promise<void>((resolve) => setImmediate(() => resolve(void ran.push('other events'))))
    const flood = Array.from({ length: 3 }, (_, n) => read(`flood ${n}`, 'a'))
    const others = [read('till 0', 'b'), read('till 1', 'b')]
    await Promise.all([...flood, ...others, turn().then(turn).then(turn)])
    expect(ran.filter((each) => each !== 'other events')).toEqual(['flood 0', 'flood 1', 'till 0', 'flood 2', 'till 1'])
    const withEvents = ran.slice(0, ran.lastIndexOf('till 1')).join(' ')
    expect(withEvents).toMatch(/flood 0 .*other events.* flood 1|flood 1 .*other events/)
    await read('later', 'b')
    expect(ran.at(-1)).toBe('later')
  })

  it('leaves a turn of the event loop for each ms of a long task, in which new connections are accepted', async () => {
    let nowMs = 0
    const clock = { elapsed: () => nowMs }
    const turnsBetween = async (start: (work: () => Promise<void>) => Promise<unknown>, costMs: number) => {
      let turns = 0
      const seen: number[] = []
      let isOver = false
      const count = () => void (turns++, isOver || setImmediate(count))
      setImmediate(count)
      const task = async () => {
        seen.push(turns)
        nowMs += costMs
      }
      await Promise.all([start(task), start(task)])
      isOver = true
      return (seen[1] ?? 0) - (seen[0] ?? 0)
    }
    const inTurn = fairTurns(clock)
    const db = new Sqlite(':memory:')
    const groups = new GroupCommit(db, () => undefined, { clock })
    for (const start of [
      (work: () => Promise<void>) => inTurn('a', work),
      (work: () => Promise<void>) => groups.run(work),
    ]) {
      expect(await turnsBetween(start, 100)).toBeGreaterThanOrEqual(100)
      expect(await turnsBetween(start, 5_000)).toBeLessThan(210)
      expect(await turnsBetween(start, 0)).toBeLessThan(3)
    }
    db.close()
  })

  it('waits after a long task no longer than it took, although other work fills the turns', async () => {
    let nowMs = 0
    const inTurn = fairTurns({ elapsed: () => nowMs })
    let isOver = false
    const others = () => {
      nowMs += 50
      if (!isOver) setImmediate(others)
    }
    const started: number[] = []
    const task = async () => {
      started.push(nowMs)
      nowMs += 200
    }
    setImmediate(others)
    await Promise.all([inTurn('a', task), inTurn('b', task)])
    isOver = true
    const [first = 0, second = 0] = started
    expect(second - first).toBeLessThanOrEqual(2 * 300)
  })

  it('refuses further transactions of an account that has 4,000 waiting, not those of others', async () => {
    const db = new Sqlite(':memory:')
    const groups = new GroupCommit(db, () => undefined, STANDING)
    const waiting = Array.from({ length: 4_000 }, () => groups.run(() => Promise.resolve(), 'a'))
    await expect(groups.run(() => Promise.resolve(), 'a')).rejects.toThrow('too many requests wait for the database')
    await groups.run(() => Promise.resolve(), 'b')
    await Promise.all(waiting)
    db.close()
  })

  it.each([
    ['SQLITE_FULL', 0],
    ['SQLITE_IOERR_WRITE', 1],
  ])('rejects a whole group if SQLite ended its transaction (%s), and no caller waits', async (code, failures) => {
    const db = new Sqlite(':memory:')
    db.exec('CREATE TABLE t (n INTEGER)')
    const insert = db.prepare('INSERT INTO t VALUES (?)')
    let failed = 0
    const groups = new GroupCommit(db, () => void failed++, STANDING)
    const results = await Promise.allSettled(
      [1, 2, 3].map((n) =>
        groups.run(async () => {
          insert.run(n)
          if (n !== 2) return
          db.exec('ROLLBACK')
          throw Object.assign(new Error('the disk'), { code })
        }),
      ),
    )
    expect(results.slice(0, 2).map((r) => r.status)).toEqual(['rejected', 'rejected'])
    expect(results[2]?.status).toBe(failures > 0 ? 'rejected' : 'fulfilled')
    expect(db.prepare('SELECT n FROM t').pluck().all()).toEqual(failures > 0 ? [] : [3])
    expect(failed).toBe(failures)
    db.close()
  })

  it('stores exactly the transactions that succeeded, in any mixture', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.boolean(), { maxLength: 150 }), async (successes) => {
        const db = new Sqlite(':memory:')
        db.exec('CREATE TABLE t (n INTEGER)')
        const insert = db.prepare('INSERT INTO t VALUES (?)')
        const groups = new GroupCommit(db, () => undefined, STANDING)
        await Promise.allSettled(
          successes.map((succeeds, n) =>
            groups.run(async () => {
              insert.run(n)
              await Promise.resolve()
              if (!succeeds) throw new Error('no')
            }),
          ),
        )
        const stored = db.prepare('SELECT n FROM t ORDER BY n').pluck().all()
        expect(stored).toEqual(successes.flatMap((succeeds, n) => (succeeds ? [n] : [])))
        db.close()
      }),
      { numRuns: 100 },
    )
  })
})
