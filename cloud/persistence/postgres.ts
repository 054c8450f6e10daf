import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, sql } from 'kysely'
import type { DatabaseConnection } from 'kysely'
import pg from 'pg'
import { assert } from '../../policy/assert.ts'
import type { Clock, Timers } from '../../policy/platform.ts'
import {
  DatabaseUnavailable,
  EXCLUSIVE_JOBS,
  GATES,
  type Database,
  type Db,
  type Replica,
  type WriteScope,
} from './database.ts'
import { fairSlots } from './fair-queue.ts'
import { kyselyOver, type Engine } from './direct-executor.ts'
import { bringUpToDate, migratePostgres, type MigrationMode } from './migrate.ts'
import { raisePositions, rememberDatabase } from './positions.ts'
import {
  guardedPool,
  POOL_LIMITS,
  POOL_SIZES,
  startTransaction,
  type GuardedPool,
  type PoolLimits,
} from './postgres-pool.ts'
import type { Pooling } from './pooling.ts'
import { isPlanOutdated, runTransaction } from './postgres-transaction.ts'
import { watchReplica, type ReplicaPlace } from './replica.ts'
import { retryQueue } from './retry-queue.ts'
import { stateReporter, type OnStorageState } from './storage-state.ts'

/**
 * Serialization failures, deadlocks and unique violations. Below the level serializable, PostgreSQL reports a unique
 * violation if another transaction has just added the same row (manual §13.5).
 */
const CONFLICTS = new Set(['40001', '40P01', '23505'])

/**
 * First number of the advisory locks of jobs; the second number is the job's own. No other program on this database
 * uses the first number.
 */
const JOB_LOCKS = 7_201_121

/**
 * First message of a write. A transaction with `together` locks the table of its gate. This lock conflicts only with
 * the lock of a transaction with `alone`. LOCK TABLE takes no snapshot, so the transaction sees the changes of all
 * transactions that it waited for.
 */
function beginOf({ together, alone = GATES }: WriteScope, pooling: Pooling): string {
  if (together !== undefined)
    return `${startTransaction('repeatable read', pooling)}; lock table gate_${together} in row exclusive mode`
  const gates = GATES.filter((gate) => alone.includes(gate)).map((gate) => `gate_${gate}`)
  return `${startTransaction('serializable', pooling)}; lock table ${gates.join(', ')} in share mode`
}

/**
 * Maximum attempts of a transaction that loses its connection before COMMIT. A server restart breaks all pooled
 * connections.
 */
const LOSS_ATTEMPTS = 3

/** Maximum wait for a connection to the replica, ms. The primary answers afterwards. */
const REPLICA_CONNECT_MS = 2_000

/** Parses int8 and numeric as numbers: our sums, counts and times are below 2^53. */
const TYPES = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') => {
    if (oid === pg.types.builtins.INT8 || oid === pg.types.builtins.NUMERIC) return Number
    return pg.types.getTypeParser(oid, format) as (text: string) => unknown
  },
} as pg.CustomTypesConfig

/** How to use a PostgreSQL database. */
export interface PostgresPlace {
  readonly url: string
  readonly clock: Pick<Clock, 'elapsed'>
  /** For waits on other transactions. Those transactions end in real time, so the timers must run in real time, too. */
  readonly timers: Timers
  /** Default: `apply`. */
  readonly migrations?: MigrationMode
  readonly limits?: PoolLimits
  /** Default: `session`. */
  readonly pooling?: Pooling
  readonly replica?: ReplicaPlace | undefined
}

/** Connects, checks that commits are durable and applies missing migrations. Throws if the server cannot be reached. */
export async function openPostgres(place: PostgresPlace, onState: OnStorageState): Promise<Database> {
  const { url, clock, migrations = 'apply', limits = POOL_LIMITS, pooling = 'session' } = place
  const note = stateReporter(onState)
  const pool = guardedPool(url, TYPES, note, limits, pooling, 'writes')
  const readPool = guardedPool(url, TYPES, note, limits, pooling, 'reads')
  const closePools = async () => void (await Promise.all([pool.end(), readPool.end()]))
  // Each database has its own adapter, because prepared.ts caches compiled statements by adapter. These statements
  // contain the position offset of the database (positions.ts).
  const engine: Engine = {
    adapter: new PostgresAdapter(),
    compiler: new PostgresQueryCompiler(),
    dialect: { createIntrospector: (db) => new PostgresIntrospector(db) },
  }
  const reads = kyselyOver(engine, readingFrom(readPool))
  const readCommitted = startTransaction('read committed', pooling)
  const migrate = () =>
    runTransaction(
      pool,
      engine,
      { begin: readCommitted, hasSnapshot: false, checkTime: () => undefined },
      migratePostgres,
    )
  const migrated = await assertDurable(reads)
    .then(() => bringUpToDate(reads, 'postgres', migrations, migrate))
    .catch(async (error: unknown) => {
      await closePools()
      throw isRefusedByPooler(error) ? new Error(POOLER_REFUSES, { cause: error }) : error
    })
  const retry = retryQueue(mayRunAgain)
  async function writeIn<T>(begin: string, work: (tx: Db) => Promise<T>): Promise<T> {
    const endsMs = clock.elapsed() + limits.writeMs
    const checkTime = () => {
      if (clock.elapsed() >= endsMs) throw new DatabaseUnavailable(false)
    }
    const attempt = () =>
      afterLoss(() => runTransaction(pool, engine, { begin, hasSnapshot: begin !== readCommitted, checkTime }, work))
    try {
      return await attempt()
    } catch (error) {
      if (!mayRunAgain(error)) throw error
      return retry(attempt)
    }
  }
  const inTurn = fairSlots(POOL_SIZES.writes)
  const write: Database['write'] = (work, scope = {}) =>
    inTurn(scope.holder ?? '', () => writeIn(beginOf(scope, pooling), work))
  const writeAlone: Database['writeAlone'] = (job, work) =>
    writeIn(readCommitted, async (db) => {
      await sql`select pg_advisory_xact_lock(${sql.lit(JOB_LOCKS)}, ${sql.lit(EXCLUSIVE_JOBS[job])})`.execute(db)
      return work(db)
    })
  rememberDatabase(reads, { offset: await write(raisePositions), timers: place.timers })
  const replica = place.replica && openReplica(place, place.replica, engine, reads)
  const close = async () => {
    await replica?.close()
    await closePools()
  }
  return {
    dialect: 'postgres',
    migrated,
    reads,
    readInTurn: fairSlots(POOL_SIZES.reads),
    write,
    writeAlone,
    ...(replica && { replica }),
    close,
  }
}

/** Connects to the replica when it is first used. A replica that is away does not prevent the start. */
function openReplica(place: PostgresPlace, replica: ReplicaPlace, engine: Engine, primary: Db): Replica {
  const limits = { ...(place.limits ?? POOL_LIMITS), connectMs: REPLICA_CONNECT_MS }
  const pool = guardedPool(replica.url, TYPES, () => undefined, limits, place.pooling ?? 'session', 'reads', 'replica')
  return watchReplica(
    replica,
    primary,
    { reads: kyselyOver(engine, readingFrom(pool)), close: () => pool.end() },
    place.clock,
  )
}

const POOLER_REFUSES =
  'a connection pooler in transaction mode refuses the settings of this connection: use --database-pooling transaction'

function isRefusedByPooler(error: unknown): boolean {
  const { cause } = (error ?? {}) as { cause?: unknown }
  return cause instanceof Error && cause.message.includes('unsupported startup parameter')
}

function readingFrom(pool: GuardedPool): DatabaseConnection {
  return {
    executeQuery: (query) => pool.run(query),
    streamQuery: () => {
      throw new Error('PostgreSQL reads do not stream: read pages')
    },
  }
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

/**
 * True if the transaction failed because of a concurrent transaction or migration. If the transaction runs again, it
 * sees the changes of the other transaction.
 */
function mayRunAgain(error: unknown): boolean {
  return CONFLICTS.has((error as { code?: string } | null)?.code ?? '') || isPlanOutdated(error)
}

async function assertDurable(db: Db): Promise<void> {
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const { rows } = await sql.raw<Record<string, string>>(`SHOW ${setting}`).execute(db)
    const value = Object.values(rows[0] ?? {})[0]
    assert(value !== 'off', `the PostgreSQL server runs with ${setting} = off: acknowledged events could be lost`)
  }
}
