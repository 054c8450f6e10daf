import SqliteConnection, { type Database as Connection, type Statement } from 'better-sqlite3'
import {
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  ValueNode,
  type CompiledQuery,
  type DatabaseConnection,
  type LimitNode,
  type QueryResult,
} from 'kysely'
import { assert } from '../../../policy/assert.ts'
import type { Clock } from '../../../policy/platform.ts'
import {
  type Database,
  type Db,
  type StorageFailure,
  isWriteWithoutResult,
  NO_ROWS,
  reportDiskState,
  stateReporter,
  type OnStorageState,
  kyselyOver,
  type Engine,
} from './database.ts'
import { fairTurns } from './fair-turns.ts'
import { GroupCommit } from './group-commit.ts'
import { bringUpToDate, migrateSqlite, type MigrationMode } from './migrate.ts'
import { firstFreeListingNumber } from './listing-numbers.ts'
import { raisePositions } from './positions.ts'

/** Makes a row of a result from its values. */
type MakeRow = (values: readonly unknown[]) => Record<string, unknown>

/**
 * Returns a function that makes rows with these columns. The function is compiled from an object literal, because
 * Node.js creates a literal at least ten times as fast as it sets columns one by one.
 */
export function rowMaker(columns: readonly string[]): MakeRow {
  assert(!columns.includes('__proto__'), 'a literal cannot set a column named __proto__')
  const fields = columns.map((column, i) => `${JSON.stringify(column)}: values[${i}]`)
  return new Function('values', `return { ${fields.join(', ')} }`) as MakeRow
}

/** Without a clock, only the number of transactions limits a group, and no task counts as long. */
const STANDING_CLOCK = { elapsed: () => 0 }

/** Opens one connection. The simulation passes a function that uses simulated disks. */
type OpenConnection = (file: string, options?: { readonly?: boolean }) => Connection

/**
 * Opens the database with two connections. One connection writes: the group commit runs each transaction in a
 * savepoint. The other connection reads committed data (WAL). A query on the writing connection would
 * become part of the transaction that is open on this connection.
 */
export async function openSqlite(
  file: string,
  onFailure: (failure: StorageFailure) => void,
  open: OpenConnection = openConnection,
  onState: OnStorageState = () => undefined,
  migrations: MigrationMode = 'apply',
  clock: Pick<Clock, 'elapsed'> = STANDING_CLOCK,
): Promise<Database> {
  const writing = open(file)
  const migrating = kyselyOn(writing)
  const migrated = await bringUpToDate(migrating, 'sqlite', migrations, () => migrateSqlite(migrating))
  const reading = open(file, { readonly: true })
  const { tx, runWhole } = transactionsOn(writing)
  const transactions = numberTransactions(writing)
  const note = stateReporter(onState)
  const groups = new GroupCommit(writing, onFailure, { onBegin: transactions.begin, clock })
  const listings = numberListings(writing)
  const dataVersion = writing.prepare('PRAGMA data_version').pluck()
  let knownVersion: unknown
  /** Counts on from what another process has written, such as the command line beside a running cloud. */
  const inStep = async <T>(work: () => Promise<T>): Promise<T> => {
    const version = dataVersion.get()
    if (version !== knownVersion) {
      await raisePositions(tx)
      listings.startAt(await firstFreeListingNumber(tx))
    }
    const made = await work()
    knownVersion = version
    return made
  }
  const write: Database['write'] = (work, { holder } = {}) =>
    reportDiskState(
      note,
      groups.run(() => runWhole(() => inStep(() => work(tx))), holder),
    )
  await write(() => Promise.resolve())
  return {
    dialect: 'sqlite',
    migrated,
    reads: kyselyOn(reading),
    readInTurn: fairTurns(clock),
    write,
    writeAlone: (_job, work) => write(work),
    async close() {
      await groups.drain()
      reading.close()
      writing.close()
    },
  }
}

/**
 * Cache sizes, KiB. The page cache of the operating system serves misses within 2 µs. Larger caches only duplicate the
 * page cache of the operating system: with 64 MiB each, a busy cloud used 48 MB more and was no faster.
 */
const READING_CACHE_KIB = 16_384
const WRITING_CACHE_KIB = 8_192

/**
 * Opens a connection with synchronous=FULL. The library's default for WAL files is NORMAL, which loses acknowledged
 * rows at a power cut. This function therefore sets FULL and checks the result.
 */
export function openConnection(file: string, { readonly = false }: { readonly?: boolean } = {}): Connection {
  const db = new SqliteConnection(file, { readonly, timeout: 5_000 })
  if (!readonly) db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.pragma('foreign_keys = ON')
  db.pragma('trusted_schema = OFF')
  db.pragma('cell_size_check = ON')
  db.pragma('journal_size_limit = 67108864')
  db.pragma(`cache_size = -${readonly ? READING_CACHE_KIB : WRITING_CACHE_KIB}`)
  db.pragma('temp_store = MEMORY') // keeps the savepoint journal in memory, because it has no use after a crash
  assert(db.pragma('journal_mode', { simple: true }) === 'wal', `${file}: journal_mode is not WAL`)
  assert(db.pragma('synchronous', { simple: true }) === 2, `${file}: synchronous is not FULL`)
  if (!readonly)
    assert(db.pragma('integrity_check(1)', { simple: true }) === 'ok', `${file} is damaged: restore it from a backup`)
  return db
}

const STATEMENT_CACHE_LIMIT = 500

/**
 * Writes limits as literals. With a parameter as limit, SQLite plans the statement at each run, which takes longer
 * than most look-ups.
 */
class QueryCompiler extends SqliteQueryCompiler {
  protected override visitLimit(node: LimitNode): void {
    const { limit } = node
    if (!ValueNode.is(limit) || !Number.isSafeInteger(limit.value)) return super.visitLimit(node)
    this.append(`limit ${String(limit.value)}`)
  }
}

/** Shared by all connections, so that they share compiled queries (prepared.ts). */
const ENGINE: Engine = {
  adapter: new SqliteAdapter(),
  compiler: new QueryCompiler(),
  dialect: { createIntrospector: (db) => new SqliteIntrospector(db) },
}

/** Kysely over one connection, with cached statements. The caller manages transactions. */
function kyselyOn(db: Connection): Db {
  const execute = statementsOf(db)
  return kyselyOver(ENGINE, connectionOf(db, execute))
}

/**
 * Kysely for the transactions of a connection. As on PostgreSQL, a write without result answers before its error is
 * known, and after an error the transaction accepts no statement. So code that catches the error of such a write, or
 * reads its count, fails on both databases.
 */
function transactionsOn(db: Connection): { tx: Db; runWhole: <T>(work: () => Promise<T>) => Promise<T> } {
  const execute = statementsOf(db)
  let failure: { readonly error: unknown } | undefined
  const connection = connectionOf(db, (query) => {
    if (failure) throw failure.error
    const hasResult = !isWriteWithoutResult(query)
    try {
      const result = execute(query)
      return hasResult ? result : NO_ROWS
    } catch (error) {
      failure = { error }
      if (hasResult) throw error
      return NO_ROWS
    }
  })
  const runWhole = async <T>(work: () => Promise<T>): Promise<T> => {
    failure = undefined
    const made = await work()
    if (failure) throw (failure as { readonly error: unknown }).error
    return made
  }
  return { tx: kyselyOver(ENGINE, connection), runWhole }
}

type Execute = (query: CompiledQuery) => QueryResult<unknown>

/** Runs queries, whose statements it keeps. */
function statementsOf(db: Connection): Execute {
  const known = new Map<string, Runner>()
  const prepare = (text: string) => {
    const runner = known.get(text)
    if (runner) return runner
    if (known.size >= STATEMENT_CACHE_LIMIT) known.clear()
    const made = runnerOf(db.prepare(text))
    known.set(text, made)
    return made
  }
  return ({ sql, parameters }) => prepare(sql)(parameters)
}

function connectionOf(db: Connection, execute: Execute): DatabaseConnection {
  return {
    executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
      try {
        return Promise.resolve(execute(query) as QueryResult<R>)
      } catch (error) {
        return Promise.reject(error as Error)
      }
    },
    async *streamQuery<R>({ sql, parameters }: CompiledQuery): AsyncGenerator<QueryResult<R>> {
      for (const row of db.prepare(sql).iterate(...parameters)) yield { rows: [row as R] }
    },
  }
}

/**
 * Adds PostgreSQL's `pg_current_xact_id` to SQLite. The count starts at 1 each time the database is opened;
 * `raisePositions` raises the offset to compensate, also after a change by another process.
 */
function numberTransactions(db: Connection): { begin(): void } {
  let current = 0
  db.function('pg_current_xact_id', () => current)
  return { begin: () => void current++ }
}

/** Adds PostgreSQL's `nextval` for the only sequence, `listing_number`. */
function numberListings(db: Connection): { startAt(next: number): void } {
  let free = 0
  db.function('nextval', (sequence) => {
    assert(sequence === 'listing_number', `there is no sequence ${String(sequence)}`)
    return free++
  })
  return { startAt: (next) => void (free = next) }
}

type Runner = (parameters: readonly unknown[]) => QueryResult<unknown>

/** Makes rows from raw values, because this is faster than the objects of better-sqlite3. */
function runnerOf(statement: Statement): Runner {
  if (!statement.reader)
    return (parameters) => ({ rows: [], numAffectedRows: BigInt(statement.run(...parameters).changes) })
  const makeRow = rowMaker(statement.columns().map((column) => column.name))
  statement.raw(true)
  return (parameters) => ({ rows: (statement.all(...parameters) as unknown[][]).map(makeRow) })
}
