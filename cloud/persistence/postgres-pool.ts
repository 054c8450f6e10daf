import type { PostgresPool, PostgresPoolClient } from 'kysely'
import pg from 'pg'
import type { Clock } from '../../policy/platform.ts'
import { DatabaseBusy, DatabaseUnavailable } from './database.ts'
import { isDiskFull, type OnStorageState } from './storage-state.ts'

/** Maximum number of connections per process. */
export const POOL_SIZE = 12
/** Maximum number of calls that wait for a free connection. */
export const WAITING_LIMIT = 10_000
/** Timeouts for a silent server or network. */
export interface PoolLimits {
  /** For opening a connection, and for waiting for a free one, ms. */
  connectMs: number
  /** For the result of one statement, ms. The connection is closed if it takes longer. */
  statementMs: number
  /** For a write with all its attempts, ms. After this time the write starts no attempt and sends no statement. */
  writeMs: number
}
export const POOL_LIMITS: PoolLimits = { connectMs: 5_000, statementMs: 20_000, writeMs: 60_000 }
/**
 * First statement of a write. Migrations start with another statement, so that this time limit does not apply to
 * them.
 */
const BEGIN_WRITE = 'start transaction isolation level serializable'
/** The server aborts a transaction whose client is silent for this time, ms. This frees the locks of a lost client. */
const IDLE_IN_TRANSACTION_LIMIT_MS = 30_000

/** PostgreSQL's code for a write on a server that only reads. */
const READ_ONLY = '25006'
/**
 * SQLSTATE classes and codes of a server that cannot be used at present (PostgreSQL manual, appendix A). They mean
 * connection exceptions, shutdown, start-up, too many connections, and a server that only reads.
 */
const AWAY_CODES = new RegExp(`^(?:08...|57P0[1-5]|53300|${READ_ONLY}|25P03)$`)
/** Codes of the operating system and texts of `pg` for a connection that could not be opened or was lost. */
const SYSTEM_CODES = /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_|ENOENT)/
const LOST_TEXTS =
  /connection (?:terminated|ended|error)|timeout exceeded when trying to connect|query read timeout|not queryable|server closed/i

/**
 * A pool in which a lost connection never ends the process. The call that used the connection throws
 * `DatabaseUnavailable`.
 */
export interface GuardedPool extends PostgresPool {
  query<R extends pg.QueryResultRow>(text: string): Promise<pg.QueryResult<R>>
}

/** Creates a pool for this URL. The pool opens its first connection for the first statement. */
export function guardedPool(
  url: string,
  types: pg.CustomTypesConfig,
  note: OnStorageState,
  clock: Pick<Clock, 'elapsed'>,
  limits: PoolLimits,
): GuardedPool {
  const pool = new pg.Pool({
    connectionString: url,
    max: POOL_SIZE,
    connectionTimeoutMillis: limits.connectMs,
    query_timeout: limits.statementMs,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_LIMIT_MS,
    keepAlive: true,
    types,
  })
  // An `error` event without a listener would end the process. The pool listens only to idle connections, so each
  // connection gets a listener here.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  const server = new ServerState(note)
  /** Connections to a primary server. */
  const primaries = new WeakSet<pg.PoolClient>()

  async function connectPrimary(): Promise<pg.PoolClient> {
    let client: pg.PoolClient | undefined
    try {
      client = await pool.connect()
      if (!primaries.has(client)) await refuseStandby(client)
      primaries.add(client)
      return client
    } catch (error) {
      client?.release(true)
      throw server.explained(error, '')
    }
  }

  return {
    async connect() {
      if (pool.waitingCount >= WAITING_LIMIT) throw new DatabaseBusy('too many calls wait for a connection')
      return guardedClient(await connectPrimary(), server, clock, limits)
    },
    end: () => pool.end(),
    query: (text) =>
      pool.query(text).catch((error: unknown) => {
        throw server.explained(error, text)
      }),
  }
}

/** Learns from results and errors of statements whether the server is reachable and stores data. */
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
    // A read-only server still answers reads, so only a successful commit shows that it accepts writes again.
    this.#isAway = codeOf(error) !== READ_ONLY
    this.#note('away', error)
    const isSent = !(error instanceof TooSlow)
    return new DatabaseUnavailable(statement === 'commit' && isSent, { cause: error })
  }

  answered(statement: string): void {
    if (this.#isAway) this.#note('available')
    this.#isAway = false
    // Only a successful commit shows that the server accepts writes again.
    if (statement === 'commit') this.#note('available')
  }
}

/** Wraps a connection. The wrapper rejects statements after a connection loss and after the time limit of the write. */
function guardedClient(
  client: pg.PoolClient,
  server: ServerState,
  clock: Pick<Clock, 'elapsed'>,
  limits: PoolLimits,
): PostgresPoolClient {
  /** Error of the first loss. After a lost COMMIT, Kysely sends a ROLLBACK. Its error must not replace this one. */
  let loss: DatabaseUnavailable | undefined
  let endsMs = Number.POSITIVE_INFINITY
  const query = async (statement: string, parameters: readonly unknown[]) => {
    if (loss) throw loss
    if (statement === BEGIN_WRITE) endsMs = clock.elapsed() + limits.writeMs
    try {
      if (clock.elapsed() >= endsMs) throw new TooSlow(`the write did not end within ${limits.writeMs} ms`)
      const result = await client.query(statement, [...parameters])
      server.answered(statement)
      return result
    } catch (error) {
      const thrown = server.explained(error, statement)
      if (thrown instanceof DatabaseUnavailable) loss = thrown
      throw thrown
    }
  }
  return {
    query: query as unknown as PostgresPoolClient['query'],
    // True closes the connection: after a loss or a timeout no other call can use it.
    release: () => client.release(loss !== undefined),
  }
}

/**
 * Throws if the server is a standby: it may lack the newest writes, and it rejects serializable transactions. Once the
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

/** Error for a write that exceeded its time limit, because network or server are too slow. */
class TooSlow extends Error {
  override name = 'TooSlow'
}

function isLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof TooSlow) return true
  const code = codeOf(error)
  return (code !== undefined && (AWAY_CODES.test(code) || SYSTEM_CODES.test(code))) || LOST_TEXTS.test(error.message)
}
