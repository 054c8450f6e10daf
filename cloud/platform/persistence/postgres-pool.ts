import type { CompiledQuery, QueryResult } from 'kysely'
import pg from 'pg'
import { DatabaseBusy, DatabaseUnavailable, type Pooling, isDiskFull, type OnStorageState } from './database.ts'

/**
 * Maximum number of connections of a process to one server. Reads have connections of their own, because a write
 * keeps its connection while it waits for other writes.
 */
export const POOL_SIZES = { writes: 12, reads: 6 } as const
/** Maximum number of calls that wait for a free connection of one pool. */
export const WAITING_LIMIT = 10_000
/** Timeouts for a silent server or network. */
export interface PoolLimits {
  /** For opening a connection, and for waiting for a free one, ms. */
  connectMs: number
  /** For the result of one statement, ms. If the statement takes longer, the connection is closed. */
  statementMs: number
  /** For a write with all its attempts, ms. After this time the write starts no attempt and sends no statement. */
  writeMs: number
}
export const POOL_LIMITS: PoolLimits = { connectMs: 5_000, statementMs: 20_000, writeMs: 60_000 }
/**
 * The server aborts a transaction whose client is silent for this long, ms, so that a lost client does not keep its
 * locks.
 */
const IDLE_IN_TRANSACTION_LIMIT_MS = 30_000

/** PostgreSQL's code for a write on a server that only reads. */
const READ_ONLY = '25006'
/**
 * SQLSTATE classes and codes of a server that cannot be used at present (PostgreSQL manual, appendix A). These codes
 * mean connection exceptions, shutdown, start-up, too many connections, a server that only reads, and the timeout of an
 * idle transaction.
 */
const AWAY_CODES = new RegExp(`^(?:08...|57P0[1-5]|53300|${READ_ONLY}|25P03)$`)
/** Codes of the operating system and texts of `pg` for a connection that could not be opened or was lost. */
const SYSTEM_CODES = /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_|ENOENT)/
const LOST_TEXTS =
  /connection (?:terminated|ended|error)|timeout exceeded when trying to connect|query read timeout|not queryable|server closed/i

/** Session settings that transactions need. */
const SESSION_SETTINGS = {
  // A sequential scan of a small table locks the whole table against serializable writers (manual §13.2.3).
  enable_seqscan: 'off',
  // With `enable_seqscan` off, PostgreSQL estimates a high cost for each sequential scan. With `jit` on, PostgreSQL
  // would therefore spend about 50 ms to compile the statement.
  jit: 'off',
  idle_in_transaction_session_timeout: String(IDLE_IN_TRANSACTION_LIMIT_MS),
}

/**
 * Begins a transaction. Poolers in transaction mode refuse settings of the session at the start of a connection, so
 * each transaction sets these settings for itself.
 */
export function startTransaction(level: string, pooling: Pooling): string {
  const settings = Object.entries(SESSION_SETTINGS).map(([name, value]) => `; set local ${name} = ${value}`)
  return `start transaction isolation level ${level}${pooling === 'transaction' ? settings.join('') : ''}`
}

/** One statement. If the statement has a name, it is prepared once per connection. */
export interface Statement {
  readonly text: string
  readonly values?: readonly unknown[]
  readonly name?: string | undefined
}

/**
 * One connection of the pool. The connection sends statements at once, in the order of the calls, and does not wait for
 * earlier results.
 */
export interface PooledConnection {
  /** Rejects with `DatabaseUnavailable` after the first connection loss. */
  query(statement: Statement): Promise<pg.QueryResult>
  /** Returns the connection to the pool, or closes it. */
  release(isBroken: boolean): void
}

/**
 * A pool whose connections never end the process. The loss of a connection becomes a `DatabaseUnavailable` of the call
 * that needed the connection.
 */
export interface GuardedPool {
  connect(): Promise<PooledConnection>
  /** Runs one query on any connection, outside of transactions. */
  run<R>(query: CompiledQuery): Promise<QueryResult<R>>
  end(): Promise<void>
}

/** Creates a pool for this URL. The pool opens its first connection for the first statement. */
export function guardedPool(
  url: string,
  types: pg.CustomTypesConfig,
  note: OnStorageState,
  limits: PoolLimits,
  pooling: Pooling,
  use: keyof typeof POOL_SIZES,
  role: 'primary' | 'replica' = 'primary',
): GuardedPool {
  const options = Object.entries(SESSION_SETTINGS).map(([name, value]) => `-c ${name}=${value}`)
  const pool = new pg.Pool({
    connectionString: url,
    max: POOL_SIZES[use],
    connectionTimeoutMillis: limits.connectMs,
    query_timeout: limits.statementMs,
    keepAlive: true,
    pipeline: true,
    ...(pooling === 'session' && { options: options.join(' ') }),
    types,
  })
  // An `error` event without a listener would end the process. The pool listens only to idle connections, so this code
  // adds a listener to each connection.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  const server = new ServerState(note)
  /** Connections that `refuseStandby` need not check again. */
  const primaries = new WeakSet<pg.PoolClient>()

  async function connectPrimary(): Promise<pg.PoolClient> {
    let client: pg.PoolClient | undefined
    try {
      client = await pool.connect()
      if (role === 'primary' && !primaries.has(client)) await refuseStandby(client)
      primaries.add(client)
      return client
    } catch (error) {
      client?.release(true)
      throw server.explained(error, '')
    }
  }

  async function connect(): Promise<PooledConnection> {
    if (pool.waitingCount >= WAITING_LIMIT) throw new DatabaseBusy('too many calls wait for a connection')
    return new GuardedConnection(await connectPrimary(), server, pooling)
  }
  return {
    connect,
    async run<R>(query: CompiledQuery) {
      const connection = await connect()
      try {
        return resultOf<R>(await connection.query(statementOf(query)))
      } finally {
        connection.release(false)
      }
    },
    end: () => pool.end(),
  }
}

/** Maximum number of SQL texts that get a name. The server parses further texts each time. */
const NAMED_LIMIT = 2_000
const NAMES = new Map<string, string>()
/** SQL texts that were sent once. */
const seenOnce = new Set<string>()

/**
 * The statement of a compiled query, with the same name for the same text in all connections of this process. A text
 * gets its name at its second use, so that texts with changing literals use up no names.
 */
export function statementOf({ sql, parameters }: Pick<CompiledQuery, 'sql' | 'parameters'>): Statement {
  return { text: sql, values: parameters, name: NAMES.get(sql) ?? newName(sql) }
}

function newName(text: string): string | undefined {
  if (NAMES.size >= NAMED_LIMIT) return undefined
  if (!seenOnce.delete(text)) {
    if (seenOnce.size >= NAMED_LIMIT) seenOnce.clear()
    seenOnce.add(text)
    return undefined
  }
  const name = `u${NAMES.size}`
  NAMES.set(text, name)
  return name
}

/** Converts a result of `pg` to a result of Kysely. */
export function resultOf<R>({ rows, rowCount }: pg.QueryResult): QueryResult<R> {
  return rowCount === null ? { rows: rows as R[] } : { rows: rows as R[], numAffectedRows: BigInt(rowCount) }
}

/** Tracks, from results and errors, whether the server is reachable and stores data. */
class ServerState {
  readonly #note: OnStorageState
  #isAway = false

  constructor(note: OnStorageState) {
    this.#note = note
  }

  /** Converts an error of this statement to the error to throw. */
  explained(error: unknown, statement: string): unknown {
    if (isDiskFull(error)) this.#note('full', error)
    if (!isLoss(error)) return error
    // A read-only server still answers reads, so only a successful commit shows that the server accepts writes again.
    this.#isAway = codeOf(error) !== READ_ONLY
    this.#note('away', error)
    return new DatabaseUnavailable(statement === 'commit', { cause: error })
  }

  answered(statement: string): void {
    if (this.#isAway) this.#note('available')
    this.#isAway = false
    // Only a successful commit shows that the server accepts writes again.
    if (statement === 'commit') this.#note('available')
  }
}

/** A connection that accepts no statement after the first connection loss. */
class GuardedConnection implements PooledConnection {
  readonly #client: pg.PoolClient
  readonly #server: ServerState
  readonly #pooling: Pooling
  /**
   * Error of the first connection loss. If a COMMIT is lost, a ROLLBACK follows. The error of the ROLLBACK must not
   * replace the error of the COMMIT, which says that the outcome is unknown.
   */
  #loss: DatabaseUnavailable | undefined

  constructor(client: pg.PoolClient, server: ServerState, pooling: Pooling) {
    this.#client = client
    this.#server = server
    this.#pooling = pooling
  }

  async query({ text, values, name }: Statement): Promise<pg.QueryResult> {
    if (this.#loss) throw this.#loss
    try {
      const statement: pg.QueryConfig = values === undefined ? { text } : { text, values: [...values] }
      // The next transaction may use another session, which lacks the prepared statements of this session.
      if (name !== undefined && this.#pooling === 'session') statement.name = name
      const result = await this.#client.query(statement)
      this.#server.answered(text)
      return result
    } catch (error) {
      const thrown = this.#server.explained(error, text)
      if (thrown instanceof DatabaseUnavailable) this.#loss ??= thrown
      throw thrown
    }
  }

  release(isBroken: boolean): void {
    // Closes a lost connection, because after a timeout the server may still run the statement.
    this.#client.release(isBroken || this.#loss !== undefined)
  }
}

/**
 * Throws if the server is a standby: it may lack the newest writes, and it rejects serializable transactions. After the
 * standby is promoted, new connections pass this check. One check per connection suffices, because a primary never
 * becomes a standby while connections are open.
 */
async function refuseStandby(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ follows: boolean }>('SELECT pg_is_in_recovery() AS follows')
  if (rows[0]?.follows !== true) return
  throw Object.assign(new Error('the server is a standby that was not promoted'), { code: READ_ONLY })
}

function codeOf(error: unknown): string | undefined {
  return (error as { code?: string }).code
}

function isLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  return (code !== undefined && (AWAY_CODES.test(code) || SYSTEM_CODES.test(code))) || LOST_TEXTS.test(error.message)
}
