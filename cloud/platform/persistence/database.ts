import {
  type Compilable,
  type CompiledQuery,
  Kysely,
  type QueryResult,
  DefaultQueryExecutor,
  type DatabaseConnection,
  type Dialect,
  type DialectAdapter,
  type QueryCompiler,
} from 'kysely'
import type { Schema } from './schema.ts'

/** Groups rows by a name, each group in the order of the rows. Node.js 20 has no `Map.groupBy`. */
export function groupBy<T, K>(rows: Iterable<T>, nameOf: (row: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const row of rows) {
    const name = nameOf(row)
    const group = groups.get(name)
    if (group) group.push(row)
    else groups.set(name, [row])
  }
  return groups
}

/**
 * Kind of the connections to PostgreSQL. `session`: one session of the server. `transaction`: a connection to a pooler
 * such as PgBouncer in transaction mode, which may use another session for each transaction.
 */
export type Pooling = 'session' | 'transaction'

/** Target of queries: a transaction, or the read connection outside of transactions. */
export type Db = Kysely<Schema>

/**
 * Gates: groups of operations. PostgreSQL may run the operations of one gate at the same time without checking what
 * they read (ADR database).
 */
export const GATES = ['catalogue', 'sales'] as const
export type Gate = (typeof GATES)[number]

/**
 * How a transaction waits for others. SQLite has one writer and uses `holder` alone. PostgreSQL isolates transactions
 * (ADR database):
 *
 * - `alone`: serializable. No transaction with `together` on one of these gates runs at the same time. The default is
 *   all gates.
 * - `together`: repeatable read. No transaction with `alone` on this gate runs at the same time.
 */
export interface WriteScope {
  readonly alone?: readonly Gate[]
  readonly together?: Gate
  /** The account that waits. Accounts take turns. Default: the cloud itself. */
  readonly holder?: string
}

/**
 * Jobs of `writeAlone`, with the number of their lock in PostgreSQL. Do not change the numbers, because older processes
 * use them too.
 */
export const EXCLUSIVE_JOBS = { planDeliveries: 1, sealAudit: 2, holdBroker: 3 } as const
type ExclusiveJob = keyof typeof EXCLUSIVE_JOBS

/** `used`: the replica answers reads. `late`: its lag exceeds the limit. `away`: the replica does not answer. */
export type ReplicaState = 'used' | 'late' | 'away'

/** State of the replica. `lagMs` is undefined until the replica has shown a heartbeat of this process. */
export interface ReplicaStatus {
  readonly state: ReplicaState
  readonly lagMs: number | undefined
}

/** A standby for reads that may return data a few seconds old (ADR database). */
export interface Replica {
  /** Reads of the replica; undefined while it is late or away. */
  reads(): Db | undefined
  status(): ReplicaStatus
  /** Reports the error of a read. A lost replica is not used again before its next heartbeat. */
  failed(error: unknown): void
  close(): Promise<void>
}

/**
 * The database of the cloud. Schema and queries are the same on SQLite and PostgreSQL; `sqlite.ts` and `postgres.ts`
 * hold the differences.
 */
export interface Database {
  readonly dialect: 'sqlite' | 'postgres'
  /** Names of the migrations that were applied when the database was opened. */
  readonly migrated: readonly string[]
  /** Reads committed data, outside of any transaction. */
  readonly reads: Db
  /**
   * Runs reads for an account. Accounts take turns, so that one with many or long reads delays the others by one at
   * most. Throws `DatabaseBusy` if too many wait.
   */
  readInTurn<T>(holder: string, look: () => Promise<T>): Promise<T>
  /** A standby for reads that may return data a few seconds old, if a standby is configured. */
  readonly replica?: Replica
  /**
   * Runs `work` in one transaction and resolves after the durable commit. After a conflict `work` runs again. So `work`
   * must await only its `db` and have no other effects.
   */
  write<T>(work: (db: Db) => Promise<T>, scope?: WriteScope): Promise<T>
  /**
   * Like `write`, for a job that numbers rows of all other transactions, or elects a process. No other process runs the
   * same job meanwhile. Each statement sees all data that was committed before the statement (READ COMMITTED). A
   * serializable reader of all new rows would conflict with every transaction that adds a row.
   */
  writeAlone<T>(job: ExclusiveJob, work: (db: Db) => Promise<T>): Promise<T>
  close(): Promise<void>
}

const COUNTED = new WeakSet<CompiledQuery>()

/**
 * Runs an insert, update or delete and returns the number of changed rows. Without this function, the count is 0 on
 * PostgreSQL, because transactions do not wait for the result of a write.
 */
export async function changedRows(db: Db, write: Compilable): Promise<number> {
  const query = write.compile()
  COUNTED.add(query)
  const { numAffectedRows } = await db.executeQuery(query)
  return Number(numAffectedRows ?? 0n)
}

/** Answer to a write without result. It says nothing about success: the next statement or the commit throws. */
export const NO_ROWS: QueryResult<never> = { rows: [] }

/** True if a transaction does not wait for the answer to this query. `changedRows` and `returning` have results. */
export function isWriteWithoutResult(compiled: CompiledQuery): boolean {
  const { query } = compiled
  if (query.kind !== 'InsertQueryNode' && query.kind !== 'UpdateQueryNode' && query.kind !== 'DeleteQueryNode')
    return false
  return query.returning === undefined && !COUNTED.has(compiled)
}

/** An I/O error left the content of the disk unknown. This process must stop answering. */
export class StorageFailure extends Error {
  override name = 'StorageFailure'
}

/** Too many transactions wait. Nothing was stored; the caller may retry. */
export class DatabaseBusy extends Error {
  override name = 'DatabaseBusy'
}

/**
 * The database did not answer, or the connection to it was lost. If `isOutcomeUnknown` is false, nothing was stored.
 */
export class DatabaseUnavailable extends Error {
  override name = 'DatabaseUnavailable'
  /** The connection was lost during COMMIT: the transaction may be stored or not. */
  readonly isOutcomeUnknown: boolean
  constructor(isOutcomeUnknown: boolean, options?: ErrorOptions) {
    super('the database does not answer', options)
    this.isOutcomeUnknown = isOutcomeUnknown
  }
}

/**
 * State of the storage. `full`: the disk is full, only reads work. `away`: the PostgreSQL server does not respond, or
 * accepts only reads.
 */
export type StorageState = 'available' | 'full' | 'away'

/** Called once for each change of the state. */
export type OnStorageState = (state: StorageState, cause?: unknown) => void

/** SQLite's code and PostgreSQL's `disk_full`. */
const DISK_FULL_CODES = new Set<unknown>(['SQLITE_FULL', '53100'])

/** True if a write failed because the disk is full. The write changed nothing. */
export function isDiskFull(error: unknown): boolean {
  return DISK_FULL_CODES.has((error as { code?: unknown } | null)?.code)
}

/**
 * True if the state of the storage caused the error. Callers need not log such an error, because the state is logged
 * once.
 */
export function isStorageError(error: unknown): boolean {
  return error instanceof DatabaseUnavailable || isDiskFull(error)
}

/** Returns a function that calls `onState` only if the state differs from the last state. */
export function stateReporter(onState: OnStorageState): (state: StorageState, cause?: unknown) => void {
  let last: StorageState = 'available'
  return (state, cause) => {
    if (state === last) return
    last = state
    onState(state, cause)
  }
}

/** Awaits a write and reports whether the disk had room for the write. */
export async function reportDiskState<T>(note: OnStorageState, write: Promise<T>): Promise<T> {
  try {
    const result = await write
    note('available')
    return result
  } catch (error) {
    if (isDiskFull(error)) note('full', error)
    throw error
  }
}

/**
 * The parts of Kysely that differ between SQLite and PostgreSQL. `prepared.ts` caches compiled queries by `adapter`.
 */
export interface Engine {
  readonly adapter: DialectAdapter
  readonly compiler: QueryCompiler
  readonly dialect: Pick<Dialect, 'createIntrospector'>
}

/**
 * Kysely that sends every query to `connection`. Kysely's own executor acquires and releases a connection for each
 * query, which costs eight promises. Kysely's executor also sends the queries of a transaction one at a time.
 */
export function kyselyOver({ adapter, compiler, dialect }: Engine, connection: DatabaseConnection): Db {
  const nothing = () => Promise.resolve()
  const driver = {
    init: nothing,
    acquireConnection: () => Promise.resolve(connection),
    beginTransaction: nothing,
    commitTransaction: nothing,
    rollbackTransaction: nothing,
    releaseConnection: nothing,
    destroy: nothing,
  }
  const whole: Dialect = {
    createAdapter: () => adapter,
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => compiler,
    createDriver: () => driver,
  }
  const executor = new DirectExecutor(adapter, compiler, connection)
  return new Kysely<Schema>({ config: { dialect: whole }, dialect: whole, driver, executor })
}

class DirectExecutor extends DefaultQueryExecutor {
  readonly #connection: DatabaseConnection

  constructor(adapter: DialectAdapter, compiler: QueryCompiler, connection: DatabaseConnection) {
    super(compiler, adapter, { provideConnection: (consumer) => consumer(connection) })
    this.#connection = connection
  }

  override executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#connection.executeQuery<R>(query)
  }
}
