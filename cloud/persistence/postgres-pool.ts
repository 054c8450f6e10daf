import type { PostgresPool, PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { DatabaseBusy, DatabaseUnavailable } from './database.ts'
import { isDiskFull, type OnStorageState } from './storage-state.ts'

/** Connections of one process. */
export const POOL_SIZE = 12
/** Calls that wait for a free connection. */
export const WAITING_LIMIT = 10_000
/** How long callers are held while the server or the network is silent. */
export interface PoolLimits {
  /** For opening a connection, and for waiting for a free one, ms. */
  connectMs: number
  /** For the answer to one statement, ms. After that the connection is closed. */
  statementMs: number
}
export const POOL_LIMITS: PoolLimits = { connectMs: 5_000, statementMs: 20_000 }
/** The server ends a transaction whose client is silent for this long, ms: a lost client holds no locks and no follower of events. */
const IDLE_IN_TRANSACTION_LIMIT_MS = 30_000

/**
 * SQLSTATE classes and codes that mean "no server for now" (PostgreSQL manual, appendix A): connection exceptions, shutdown, start-up,
 * too many connections, and a standby that was not promoted yet.
 */
const AWAY_CODES = /^(?:08...|57P0[1-5]|53300|25006|25P03)$/
/** Codes of the operating system and texts of `pg` for a connection that could not be opened or was lost. */
const SYSTEM_CODES = /^(?:ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_|ENOENT)/
const LOST_TEXTS =
  /connection (?:terminated|ended|error)|timeout exceeded when trying to connect|query read timeout|not queryable|server closed/i

/** A pool whose connections never end the process: every loss is a `DatabaseUnavailable` of the call that needed it. */
export interface GuardedPool extends PostgresPool {
  query<R extends pg.QueryResultRow>(text: string): Promise<pg.QueryResult<R>>
}

/** Makes a pool for this URL. It connects when the first statement comes. */
export function guardedPool(
  url: string,
  types: pg.CustomTypesConfig,
  note: OnStorageState,
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
  // Without listeners an error would end the process: the pool listens to idle connections only.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  let isAway = false

  function explained(error: unknown, statement: string): unknown {
    if (isDiskFull(error)) note('full', error)
    if (!isLoss(error)) return error
    isAway = true
    note('away', error)
    return new DatabaseUnavailable(statement === 'commit', { cause: error })
  }

  async function connect(): Promise<PostgresPoolClient> {
    if (pool.waitingCount >= WAITING_LIMIT) throw new DatabaseBusy('too many calls wait for a connection')
    const client = await pool.connect().catch((error: unknown) => {
      throw explained(error, '')
    })
    /** The first loss. After a lost COMMIT a ROLLBACK follows, which must not hide that the outcome is unknown. */
    let loss: DatabaseUnavailable | undefined
    const query = async (statement: string, parameters: readonly unknown[]) => {
      if (loss) throw loss
      try {
        const result = await client.query(statement, [...parameters])
        if (isAway) note('available')
        isAway = false
        // Whether there is room again shows when a transaction is stored.
        if (statement === 'commit') note('available')
        return result
      } catch (error) {
        const thrown = explained(error, statement)
        if (thrown instanceof DatabaseUnavailable) loss = thrown
        throw thrown
      }
    }
    return {
      query: query as unknown as PostgresPoolClient['query'],
      // A connection whose statement timed out is still busy with it.
      release: () => client.release(loss !== undefined),
    }
  }

  return {
    connect,
    end: () => pool.end(),
    query: (text) =>
      pool.query(text).catch((error: unknown) => {
        throw explained(error, text)
      }),
  }
}

function isLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const { code } = error as { code?: string }
  return (code !== undefined && (AWAY_CODES.test(code) || SYSTEM_CODES.test(code))) || LOST_TEXTS.test(error.message)
}
