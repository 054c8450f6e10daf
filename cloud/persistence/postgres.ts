import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { assert } from '../../policy/assert.ts'
import type { Database, Db } from './database.ts'
import { migrate } from './migrate.ts'
import { raisePositions, rememberOffset } from './positions.ts'
import type { Schema } from './schema.ts'

const POOL_SIZE = 12
/** Serialization failures and deadlocks: the transaction did nothing and may run again (PostgreSQL manual §13.5). */
const RETRYABLE = new Set(['40001', '40P01'])
const ATTEMPTS = 100
/** PostgreSQL ends a transaction whose process sends nothing for so long. */
const IDLE_IN_TRANSACTION_MS = 30_000

/** Connects, checks that commits are durable and brings the schema up to date. Throws when the server cannot be reached. */
export async function openPostgres(url: string): Promise<Database> {
  const pool = new pg.Pool({
    connectionString: url,
    max: POOL_SIZE,
    connectionTimeoutMillis: 5_000,
    onConnect: async (client) => {
      // A connection that breaks between two queries of a transaction fails the next query. Without a listener the process would end.
      client.on('error', () => undefined)
      // An open transaction holds back every follower of events: a process that froze inside one must not do so for long.
      await client.query(`SET idle_in_transaction_session_timeout = ${IDLE_IN_TRANSACTION_MS}`)
    },
    types: {
      // Sums, counts and times in ms come as int8 and numeric; all of ours are below 2^53.
      getTypeParser: (oid: number, format?: 'text' | 'binary') => {
        if (oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC) return Number
        return pg.types.getTypeParser(oid, format) as (text: string) => unknown
      },
    } as pg.CustomTypesConfig,
  })
  // A connection that breaks while idle is replaced by the pool; without a listener it would end the process.
  pool.on('error', () => undefined)
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
  await assertDurable(pool)
  await migrate(db, 'postgres')
  const retries = oneByOne()
  async function write<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    const attempt = () => db.transaction().setIsolationLevel('serializable').execute(work)
    try {
      return await attempt()
    } catch (error) {
      if (!isRetryable(error)) throw error
      return retries(attempt)
    }
  }
  rememberOffset(db, await write(raisePositions))
  return { dialect: 'postgres', reads: db, write, close: () => db.destroy() }
}

function isRetryable(error: unknown): boolean {
  return RETRYABLE.has((error as { code?: string } | null)?.code ?? '')
}

/** What got in each other's way is tried again one after the other: at once it would only do so again. */
function oneByOne(): <T>(attempt: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return <T>(attempt: () => Promise<T>): Promise<T> => {
    const mine = last.then(async () => {
      for (let tries = 1; ; tries++) {
        try {
          return await attempt()
        } catch (error) {
          if (tries >= ATTEMPTS || !isRetryable(error)) throw error
        }
      }
    })
    last = mine.catch(() => undefined)
    return mine
  }
}

async function assertDurable(pool: pg.Pool): Promise<void> {
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const { rows } = await pool.query<Record<string, string>>(`SHOW ${setting}`)
    const value = Object.values(rows[0] ?? {})[0]
    assert(value !== 'off', `the PostgreSQL server runs with ${setting} = off: acknowledged events could be lost`)
  }
}
