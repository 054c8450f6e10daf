import {
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  sql,
  type DatabaseConnection,
  type CompiledQuery,
  type QueryResult,
} from 'kysely'
import pg from 'pg'
import { assert } from '../../../policy/assert.ts'
import type { Clock, Timers } from '../../../policy/platform.ts'
import {
  DatabaseUnavailable,
  EXCLUSIVE_JOBS,
  GATES,
  isWriteWithoutResult,
  NO_ROWS,
  type Database,
  type Db,
  type Replica,
  type WriteScope,
  DatabaseBusy,
  type Pooling,
  stateReporter,
  type OnStorageState,
  kyselyOver,
  type Engine,
} from './database.ts'
import { fairSlots } from './fair-turns.ts'
import { bringUpToDate, migratePostgres, type MigrationMode } from './migrate.ts'
import { raisePositions, rememberDatabase } from './positions.ts'
import {
  guardedPool,
  POOL_LIMITS,
  POOL_SIZES,
  startTransaction,
  type GuardedPool,
  type PoolLimits,
  resultOf,
  statementOf,
  type PooledConnection,
  type Statement,
} from './postgres-pool.ts'
import { watchReplica, type ReplicaPlace } from './replica.ts'

/** Maximum number of results that one transaction keeps. */
const KEPT_LIMIT = 200

/**
 * Results of reads in one transaction. In a transaction with a snapshot, the same query returns the same rows until the
 * transaction writes to a table of the query. Until then, the query is sent only once. Many steps of an operation read
 * the same store, purchase or lines.
 */
class TransactionReads {
  readonly #hasSnapshot: boolean
  readonly #results = new Map<string, { tables: ReadonlySet<string>; result: Promise<QueryResult<unknown>> }>()

  /** Without a snapshot, each query is sent, because it may return newer data. */
  constructor(hasSnapshot: boolean) {
    this.#hasSnapshot = hasSnapshot
  }

  /** Returns the stored result of this query, or calls `send` to run the query. */
  read<R>(query: CompiledQuery, send: () => Promise<QueryResult<R>>): Promise<QueryResult<R>> {
    if (!this.#hasSnapshot) return send()
    const key = JSON.stringify([query.sql, query.parameters])
    const known = this.#results.get(key)
    if (known) return known.result.then(copyOf) as Promise<QueryResult<R>>
    const result = send()
    if (this.#results.size < KEPT_LIMIT) this.#results.set(key, { tables: tablesOf(query), result })
    return result
  }

  /** Discards the results that this write may change: all results if the tables of the write are unknown. */
  written(query: CompiledQuery): void {
    const tables = query.query.kind === 'RawNode' ? undefined : tablesOf(query)
    for (const [key, kept] of this.#results)
      if (!tables || [...tables].some((table) => kept.tables.has(table))) this.#results.delete(key)
  }
}

/** Copies the rows, because the caller may change its rows. */
function copyOf<R>(result: QueryResult<R>): QueryResult<R> {
  return { ...result, rows: result.rows.map((row) => ({ ...row })) }
}

const TABLES = new WeakMap<object, ReadonlySet<string>>()

/** Names of all tables in the query. */
function tablesOf({ query }: CompiledQuery): ReadonlySet<string> {
  const known = TABLES.get(query)
  if (known) return known
  const tables = new Set<string>()
  collectTables(query, tables)
  TABLES.set(query, tables)
  return tables
}

function collectTables(node: unknown, into: Set<string>): void {
  if (typeof node !== 'object' || node === null) return
  if ((node as { kind?: unknown }).kind === 'TableNode')
    into.add((node as { table: { identifier: { name: string } } }).table.identifier.name)
  for (const part of Object.values(node)) collectTables(part, into)
}

/** Maximum number of statements on the wire in one transaction. The next statement waits for the oldest. */
const SENT_LIMIT = 500

/** How a transaction runs. */
interface TransactionSettings {
  /** The first message: begins the transaction and takes its locks. */
  readonly begin: string
  /** True if all statements see the same committed data. */
  readonly hasSnapshot: boolean
  /** Throws if the transaction may send no further statement, because it has run for too long. */
  checkTime(): void
}

/**
 * Runs `work` in one transaction.
 *
 *   cloud       BEGIN  SELECT ─ ─ ─ ─ ▶ INSERT  UPDATE  INSERT  COMMIT ─ ─ ─ ─ ▶
 *   PostgreSQL         ◀ ─ ─ ─ ─ rows                            ◀ ─ ─ ─ stored
 *
 * The cloud does not wait for the answer to a write without result, so the transaction in this diagram waits for only
 * two round trips. If such a write fails, PostgreSQL rejects everything after it, and the next statement or COMMIT
 * throws the error of that write.
 */
async function runTransaction<T>(
  pool: GuardedPool,
  engine: Engine,
  settings: TransactionSettings,
  work: (db: Db) => Promise<T>,
): Promise<T> {
  settings.checkTime()
  const connection = await pool.connect()
  const transaction = new Transaction(connection, settings)
  try {
    const result = await work(kyselyOver(engine, transaction))
    await transaction.commit()
    connection.release(false)
    return result
  } catch (error) {
    // The caller does not wait for ROLLBACK, but the next user of the connection does.
    void transaction.rollBack().finally(() => connection.release(transaction.isPlanOutdated))
    throw error
  }
}

class Transaction implements DatabaseConnection {
  readonly #connection: PooledConnection
  readonly #settings: TransactionSettings
  /** Pending answers to statements for which `executeQuery` did not wait. */
  readonly #sent = new Set<Promise<unknown>>()
  readonly #reads: TransactionReads
  /** The first error of the server. */
  #failure: { readonly error: unknown } | undefined
  #hasSentCommit = false

  constructor(connection: PooledConnection, settings: TransactionSettings) {
    this.#connection = connection
    this.#settings = settings
    this.#reads = new TransactionReads(settings.hasSnapshot)
    this.#sendOnly({ text: settings.begin })
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    this.#settings.checkTime()
    if (query.query.kind === 'SelectQueryNode')
      return this.#reads.read(query, async () => resultOf<R>(await this.#send(statementOf(query))))
    this.#reads.written(query)
    if (!isWriteWithoutResult(query)) return resultOf<R>(await this.#send(statementOf(query)))
    if (this.#failure) throw this.#failure.error
    if (this.#sent.size >= SENT_LIMIT) await Promise.all(this.#sent)
    this.#sendOnly(statementOf(query))
    return NO_ROWS
  }

  streamQuery(): never {
    throw new Error('PostgreSQL transactions do not stream: read pages')
  }

  /** Resolves after the durable commit of everything that was sent. */
  async commit(): Promise<void> {
    this.#settings.checkTime()
    this.#hasSentCommit = true
    const { command } = await this.#send({ text: 'commit' })
    assert(command === 'COMMIT', `PostgreSQL answered COMMIT with ${command} without an error before it`)
  }

  /** Resolves when the server has answered everything. */
  async rollBack(): Promise<void> {
    await this.#connection.query({ text: 'rollback' }).catch(() => undefined)
  }

  /** True if a migration changed a table since this connection planned a statement on it. */
  get isPlanOutdated(): boolean {
    return this.#failure !== undefined && isPlanOutdated(this.#failure.error)
  }

  #sendOnly(statement: Statement): void {
    const answer = this.#send(statement)
      .catch(() => undefined)
      .finally(() => this.#sent.delete(answer))
    this.#sent.add(answer)
  }

  async #send(statement: Statement): Promise<pg.QueryResult> {
    try {
      const result = await this.#connection.query(statement)
      if (this.#failure) throw this.#failure.error
      return result
    } catch (error) {
      this.#failure ??= { error: this.#hasSentCommit ? withUnknownOutcome(error) : error }
      throw this.#failure.error
    }
  }
}

/**
 * Any connection loss after COMMIT was sent leaves the outcome unknown, also if an earlier statement reports the loss.
 */
function withUnknownOutcome(error: unknown): unknown {
  if (!(error instanceof DatabaseUnavailable) || error.isOutcomeUnknown) return error
  return new DatabaseUnavailable(true, { cause: error.cause })
}

/**
 * True if a prepared statement failed because its table has changed since the statement was prepared. The same work
 * succeeds on a new connection.
 */
function isPlanOutdated(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: string; message?: string }
  return code === '0A000' && message?.startsWith('cached plan') === true
}

/** Maximum number of transactions in the queue. If each transaction takes 5 ms, the last one waits 5 s. */
export const RETRY_LIMIT = 1_000
/** Maximum number of attempts of one transaction. */
const ATTEMPTS = 100

/**
 * Retries transactions that failed because of a conflict. The queue runs them one at a time, so that they do not
 * conflict with each other again, and holders take turns. Throws `DatabaseBusy` if the queue is full.
 */
export function retryQueue(
  isRetryable: (error: unknown) => boolean,
  clock: Pick<Clock, 'elapsed'>,
): <T>(holder: string, attempt: () => Promise<T>) => Promise<T> {
  const inTurn = fairSlots({ size: 1, share: 1, clock })
  let waiting = 0

  async function run<T>(attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt()
      } catch (error) {
        if (tries >= ATTEMPTS || !isRetryable(error)) throw error
      }
    }
  }

  return <T>(holder: string, attempt: () => Promise<T>): Promise<T> => {
    if (waiting >= RETRY_LIMIT) return Promise.reject(new DatabaseBusy('too many transactions wait to run again'))
    waiting++
    return inTurn(holder, () => run(attempt)).finally(() => waiting--)
  }
}

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

/** Transactions and reads of one account at the same time, while others are active. */
const SHARES = { writes: 4, reads: 1 }

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
  const retry = retryQueue(mayRunAgain, clock)
  async function writeIn<T>(begin: string, work: (tx: Db) => Promise<T>, holder = ''): Promise<T> {
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
      return retry(holder, attempt)
    }
  }
  const inTurn = fairSlots({ size: POOL_SIZES.writes, share: SHARES.writes, clock })
  const write: Database['write'] = (work, scope = {}) =>
    inTurn(scope.holder ?? '', () => writeIn(beginOf(scope, pooling), work, scope.holder))
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
    readInTurn: fairSlots({ size: POOL_SIZES.reads, share: SHARES.reads, clock, rests: true }),
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
