import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { assert } from '../../policy/assert.ts'
import type { Clock } from '../../policy/platform.ts'
import { DatabaseUnavailable, type Database, type Db } from './database.ts'
import { migrate } from './migrate.ts'
import { raisePositions, rememberOffset } from './positions.ts'
import { guardedPool, POOL_LIMITS, type GuardedPool, type PoolLimits } from './postgres-pool.ts'
import { retryQueue } from './retry-queue.ts'
import type { Schema } from './schema.ts'
import { stateReporter, type OnStorageState } from './storage-state.ts'

/** Serialization failures and deadlocks: the transaction did nothing and may run again (PostgreSQL manual §13.5). */
const RETRYABLE = new Set(['40001', '40P01'])

/**
 * Maximum attempts of a transaction that loses its connection before COMMIT. A server restart breaks all pooled
 * connections.
 */
const LOSS_ATTEMPTS = 3

/** Parses int8 and numeric as numbers: our sums, counts and times are below 2^53. */
const TYPES = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC) return Number
    return pg.types.getTypeParser(oid, format) as (text: string) => unknown
  },
} as pg.CustomTypesConfig

/** Connects, checks that commits are durable and applies missing migrations. Throws if the server cannot be reached. */
export async function openPostgres(
  url: string,
  onState: OnStorageState,
  clock: Pick<Clock, 'elapsed'>,
  limits: PoolLimits = POOL_LIMITS,
): Promise<Database> {
  const pool = guardedPool(url, TYPES, stateReporter(onState), clock, limits)
  const db = new Kysely<Schema>({ dialect: new PostgresDialect({ pool }) })
  await assertDurable(pool)
  await migrate(db, 'postgres')
  const retry = retryQueue(isRetryable)
  async function write<T>(work: (tx: Db) => Promise<T>): Promise<T> {
    const endsMs = clock.elapsed() + limits.writeMs
    const once = () => {
      if (clock.elapsed() >= endsMs) throw new DatabaseUnavailable(false)
      return db.transaction().setIsolationLevel('serializable').execute(work)
    }
    const attempt = () => afterLoss(once)
    try {
      return await attempt()
    } catch (error) {
      if (!isRetryable(error)) throw error
      return retry(attempt)
    }
  }
  rememberOffset(db, await write(raisePositions))
  return { dialect: 'postgres', reads: db, write, close: () => db.destroy() }
}

/** Tries again if the connection was lost before COMMIT: the server has rolled that transaction back. */
async function afterLoss<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      const isSafe = error instanceof DatabaseUnavailable && !error.isOutcomeUnknown
      if (!isSafe || tries >= LOSS_ATTEMPTS) throw error
    }
  }
}

function isRetryable(error: unknown): boolean {
  return RETRYABLE.has((error as { code?: string } | null)?.code ?? '')
}

async function assertDurable(pool: GuardedPool): Promise<void> {
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const { rows } = await pool.query<Record<string, string>>(`SHOW ${setting}`)
    const value = Object.values(rows[0] ?? {})[0]
    assert(value !== 'off', `the PostgreSQL server runs with ${setting} = off: acknowledged events could be lost`)
  }
}
