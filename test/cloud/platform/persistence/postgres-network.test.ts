// @module-tag extended
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest'
import { realPlatform } from '../../../../host/platform.ts'
import {
  DatabaseUnavailable,
  type Database,
  type StorageState,
} from '../../../../cloud/platform/persistence/database.ts'
import { openPostgres } from '../../../../cloud/platform/persistence/postgres.ts'
import { seededRandom } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { badNetwork, type BadNetwork } from '../../../support/bad-network.ts'
import { asAdmin as onServer, newPostgresDatabase } from '../../../support/databases.ts'

const has = inject('postgresUrl') !== ''
/** Time limits. They are short for fast tests, but far above the time of a response. */
const LIMITS = { connectMs: 1_000, statementMs: 1_000, writeMs: 2_000 }

describe.skipIf(!has)(
  `PostgreSQL behind a bad network${has ? '' : ' (skipped: install the package postgresql)'}`,
  () => {
    let server: { url: string; remove(): Promise<void> }
    let network: BadNetwork
    let database: Database
    let states: StorageState[]

    /** Offset of the clock to the real one, ms. */
    let aheadMs: number
    const { clock: real, timers } = realPlatform()
    const clock = { elapsed: () => real.elapsed() + aheadMs }

    beforeEach(async () => {
      aheadMs = 0
      server = await newPostgresDatabase()
      network = await badNetwork(Number(new URL(server.url).port))
      const url = new URL(server.url)
      url.port = String(network.port)
      states = []
      database = await openPostgres({ url: url.href, clock, timers, limits: LIMITS }, (state) => states.push(state))
      await database.write((db) => sql`create table counted (n int)`.execute(db))
    })
    afterEach(async () => {
      await database.close()
      network.close()
      await server.remove()
    })

    const asAdmin = (statement: string) => onServer(inject('postgresUrl'), statement)
    const count = async () => {
      const { rows } = await sql<{ n: number }>`select count(*) as n from counted`.execute(database.reads)
      return rows[0]?.n
    }
    const insert = (between?: () => void) =>
      database.write(async (db) => {
        between?.()
        await sql`insert into counted values (1)`.execute(db)
      })

    it('fails calls within the limit while the network is silent, and then recovers', async () => {
      network.isStalled = true
      await expect(count()).rejects.toThrow(DatabaseUnavailable)
      await expect(insert()).rejects.toThrow(DatabaseUnavailable)
      network.isStalled = false
      await insert()
      expect(await count()).toBe(1)
      expect(states).toEqual(['away', 'available'])
    })

    it('repeats a transaction whose connection is cut before its commit, and stores it once', async () => {
      let attempts = 0
      await insert(() => {
        if (attempts++ === 0) network.cut()
      })
      expect(attempts).toBe(2)
      expect(await count()).toBe(1)
    })

    it('reports an unknown outcome, without a retry, if the commit’s response is lost', async () => {
      let attempts = 0
      const lost = database.write(async (db) => {
        attempts++
        await sql`insert into counted values (1)`.execute(db)
        // From now on the network drops all data, so COMMIT gets no response.
        network.isStalled = true
      })
      await expect(lost).rejects.toMatchObject({ name: 'DatabaseUnavailable', isOutcomeUnknown: true })
      network.isStalled = false
      expect(attempts).toBe(1)
      expect(await count()).toBe(0)
    })

    it('gives up after three attempts if every connection is cut', async () => {
      let attempts = 0
      const lost = insert(() => {
        attempts++
        network.cut()
      })
      await expect(lost).rejects.toMatchObject({ name: 'DatabaseUnavailable', isOutcomeUnknown: false })
      expect(attempts).toBe(3)
      expect(await count()).toBe(0)
    })

    /** Ends the connections; the pool notices it. */
    async function reconnect(): Promise<void> {
      network.cut()
      await count().catch(() => undefined)
      await count()
      states.length = 0
    }

    it('reads from a read-only server, and writes again afterwards, with one log entry each', async () => {
      const name = new URL(server.url).pathname.slice(1)
      const setReadOnly = (value: 'on' | 'off') =>
        asAdmin(`ALTER DATABASE ${name} SET default_transaction_read_only = ${value}`)
      await setReadOnly('on')
      await reconnect()
      for (let i = 0; i < 3; i++) {
        await expect(insert()).rejects.toMatchObject({ name: 'DatabaseUnavailable', isOutcomeUnknown: false })
        expect(await count()).toBe(0)
      }
      expect(states).toEqual(['away'])
      await setReadOnly('off')
      network.cut()
      await insert()
      expect(states).toEqual(['away', 'available'])
    })

    /** Starts callers that insert different numbers. Resolves when each call has a result. */
    async function insertNumbers(callers: number): Promise<{ done: number[]; lost: { n: number; error: unknown }[] }> {
      const [done, lost]: [number[], { n: number; error: unknown }[]] = [[], []]
      await Promise.all(
        Array.from({ length: callers }, (_, n) =>
          database
            .write(async (db) => {
              await sql`select count(*) from counted where n = ${n}`.execute(db)
              await sql`insert into counted values (${n})`.execute(db)
            })
            .then(
              () => done.push(n),
              (error: unknown) => lost.push({ n, error }),
            ),
        ),
      )
      return { done, lost }
    }
    const timesOf = async () => {
      const { rows } = await sql<{
        n: number
        times: number
      }>`select n, count(*) as times from counted group by n`.execute(database.reads)
      return new Map(rows.map(({ n, times }) => [n, times]))
    }
    /** Random delays between two limits. The seed makes them equal in each run. */
    function jitter(fromMs: number, toMs: number): () => number {
      const random = seededRandom(20_261_123)
      return () => fromMs + ((random.bytes(1)[0] ?? 0) / 255) * (toMs - fromMs)
    }

    it('succeeds over a slow network while each response arrives in time', async () => {
      network.delayMs = jitter(20, 50)
      const { done, lost } = await insertNumbers(4)
      expect(lost).toEqual([])
      expect(done.length).toBe(4)
      network.delayMs = () => 0
      expect(await timesOf()).toEqual(new Map(done.toSorted((a, b) => a - b).map((n) => [n, 1])))
      expect(states).toEqual([])
    })

    it.each([
      ['another statement', () => sql`insert into counted values (2)`],
      ['the commit', () => undefined],
    ])('rolls back a write that has run for too long, before %s', async (_, next) => {
      let attempts = 0
      const late = database.write(async (db) => {
        attempts++
        await sql`insert into counted values (1)`.execute(db)
        aheadMs = LIMITS.writeMs
        await next()?.execute(db)
      })
      await expect(late).rejects.toMatchObject({ name: 'DatabaseUnavailable', isOutcomeUnknown: false })
      expect(attempts).toBe(1)
      expect(await count()).toBe(0)
      await insert()
      expect(await count()).toBe(1)
    })

    it('fails in time if the network is too slow, writes nothing twice, and recovers', async () => {
      network.delayMs = jitter(100, 200)
      const began = performance.now()
      // The transactions conflict and would be repeated one after the other. Without a limit that would take 15 s.
      const { done, lost } = await insertNumbers(12)
      expect(performance.now() - began).toBeLessThan(2 * LIMITS.writeMs + LIMITS.statementMs + LIMITS.connectMs)
      network.delayMs = () => 0
      expect(lost.length).toBeGreaterThan(0)
      for (const { error } of lost) expect(error).toBeInstanceOf(DatabaseUnavailable)
      await count().catch(() => undefined)
      const times = await timesOf()
      for (const n of done) expect(times.get(n)).toBe(1)
      for (const { n, error } of lost)
        expect(times.get(n) ?? 0).toBeLessThanOrEqual((error as DatabaseUnavailable).isOutcomeUnknown ? 1 : 0)
      const again = await insertNumbers(12)
      expect(again.lost).toEqual([])
    })
  },
)
