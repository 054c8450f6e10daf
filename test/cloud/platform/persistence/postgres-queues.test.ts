import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { asFailure } from '../../../../cloud/service/http/as-failure.ts'
import { DatabaseBusy, type Database } from '../../../../cloud/platform/persistence/database.ts'
import { fairSlots } from '../../../../cloud/platform/persistence/fair-turns.ts'
import { POOL_SIZES, WAITING_LIMIT } from '../../../../cloud/platform/persistence/postgres-pool.ts'
import { RETRY_LIMIT, retryQueue } from '../../../../cloud/platform/persistence/postgres.ts'
import { letPromisesSettle } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { newDatabase, type TestDatabase } from '../../../support/databases.ts'
import { suiteWith } from '../../../support/extended.ts'

/** A promise that the test resolves itself. */
function gate(): { opened: Promise<void>; open(): void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}

const isConflict = (error: unknown) => (error as Error).message === 'conflict'

describe('the retry queue of transactions', () => {
  it('rejects further transactions with 503 and Retry-After until there is room', async () => {
    const retry = retryQueue(isConflict, { elapsed: () => 0 })
    const { opened, open } = gate()
    const order: number[] = []
    const running = Array.from({ length: RETRY_LIMIT }, (_, i) =>
      retry('a', async () => {
        await opened
        order.push(i)
      }),
    )
    const busy: unknown = await retry('a', () => Promise.resolve()).catch((error: unknown) => error)
    expect(busy).toBeInstanceOf(DatabaseBusy)
    expect(asFailure(busy)).toMatchObject({ code: 'unavailable', extras: { retryAfter: 1 } })
    open()
    await Promise.all(running)
    expect(order).toEqual(Array.from({ length: RETRY_LIMIT }, (_, i) => i))
    await expect(retry('a', () => Promise.resolve('stored'))).resolves.toBe('stored')
  })

  it('repeats a transaction while it conflicts, at most 100 times', async () => {
    const retry = retryQueue(isConflict, { elapsed: () => 0 })
    let tries = 0
    const conflict = () => Promise.reject(new Error('conflict'))
    await expect(retry('a', () => (++tries < 3 ? conflict() : Promise.resolve(tries)))).resolves.toBe(3)
    tries = 0
    await expect(retry('a', () => (tries++, conflict()))).rejects.toThrow('conflict')
    expect(tries).toBe(100)
    await expect(retry('a', () => Promise.reject(new Error('another error')))).rejects.toThrow('another error')
    await expect(retry('a', () => Promise.resolve('stored'))).resolves.toBe('stored')
  })

  it('takes turns between holders', async () => {
    const retry = retryQueue(isConflict, { elapsed: () => 0 })
    const order: string[] = []
    const flood = Array.from({ length: 3 }, (_, n) => retry('a', async () => void order.push(`a${n}`)))
    await Promise.all([...flood, retry('b', async () => void order.push('b'))])
    expect(order).toEqual(['a0', 'a1', 'b', 'a2'])
  })
})

describe('slots for tasks', () => {
  it('leave one holder a share while others are active, and all of them when it is alone', async () => {
    let nowMs = 0
    const inTurn = fairSlots({ size: 4, share: 2, clock: { elapsed: () => nowMs } })
    const atWork = new Map<string, number>()
    const gates: { open(): void }[] = []
    const start = (holder: string) =>
      inTurn(holder, async () => {
        atWork.set(holder, (atWork.get(holder) ?? 0) + 1)
        const { opened, open } = gate()
        gates.push({ open })
        await opened
        atWork.set(holder, (atWork.get(holder) ?? 0) - 1)
      })
    const openAll = async () => {
      for (const { open } of gates.splice(0)) open()
      await letPromisesSettle()
    }
    const tasks = Array.from({ length: 12 }, () => start('a'))
    await letPromisesSettle()
    expect(atWork.get('a')).toBe(4)
    tasks.push(start('b'))
    await openAll()
    expect([atWork.get('a'), atWork.get('b')]).toEqual([2, 1])
    nowMs += 2_000
    await openAll()
    expect([atWork.get('a'), atWork.get('b')]).toEqual([4, 0])
    while (gates.length > 0) await openAll()
    await Promise.all(tasks)
  })
})

const missing = inject('postgresUrl') === '' ? 'install the package postgresql' : undefined

suiteWith(missing, 'A busy PostgreSQL database', () => {
  let server: TestDatabase
  let database: Database
  beforeEach(async () => {
    server = await newDatabase('postgres')
    database = server.database
  })
  afterEach(async () => {
    await database.close()
    await server.remove()
  })
  const read = () => sql`select 1`.execute(database.reads)

  /** Opens this many transactions, which end after `end`. */
  async function openTransactions(count: number) {
    const { opened, open } = gate()
    const running: Promise<unknown>[] = []
    // Each of another account, because one account may use only its share of the connections.
    const hold = (holder: string, isHeld: () => void) =>
      database.write(
        async (db) => {
          await sql`select pg_advisory_xact_lock_shared(1)`.execute(db)
          isHeld()
          await opened
        },
        { holder },
      )
    for (let i = 0; i < count; i++) await new Promise<void>((isHeld) => running.push(hold(`account ${i}`, isHeld)))
    return { end: () => (open(), Promise.allSettled(running)) }
  }

  it('limits the calls that wait for a connection', async () => {
    const held = await openTransactions(1)
    // Each waits for the transaction, with a connection.
    const waiting = Array.from({ length: POOL_SIZES.reads }, () =>
      sql`select pg_advisory_lock(1), pg_advisory_unlock(1)`.execute(database.reads),
    )
    await letPromisesSettle()
    const queued = Array.from({ length: WAITING_LIMIT }, read)
    const answered = Promise.allSettled([...waiting, ...queued])
    await letPromisesSettle()
    const busy: unknown = await read().catch((error: unknown) => error)
    await held.end()
    await answered
    expect(busy).toBeInstanceOf(DatabaseBusy)
    await read()
  })

  it('reads while all connections for writes are in use', async () => {
    const held = await openTransactions(POOL_SIZES.writes)
    await read()
    await held.end()
  })

  it('reads a table without an index and does not compile the statement', async () => {
    await database.write((db) => sql`create table unindexed (n int)`.execute(db))
    const explain = sql`explain analyze select n from unindexed where n = 1`
    for (const { rows } of [await explain.execute(database.reads), await database.write((db) => explain.execute(db))]) {
      expect(JSON.stringify(rows)).toContain('Seq Scan')
      expect(JSON.stringify(rows)).not.toContain('JIT')
    }
  })

  it('repeats conflicting transactions, each once in effect', async () => {
    await database.write((db) => sql`create table counted (n int)`.execute(db))
    await database.write((db) => sql`insert into counted values (0)`.execute(db))
    const raise = () =>
      database.write(async (db) => {
        const { rows } = await sql<{ n: number }>`select n from counted`.execute(db)
        await sql`update counted set n = ${(rows[0]?.n ?? 0) + 1}`.execute(db)
      })
    await Promise.all(Array.from({ length: 24 }, raise))
    const { rows } = await sql<{ n: number }>`select n from counted`.execute(database.reads)
    expect(rows).toEqual([{ n: 24 }])
  })
})
