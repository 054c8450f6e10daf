import type { CompiledQuery, DatabaseConnection, QueryResult } from 'kysely'
import type pg from 'pg'
import { assert } from '../../policy/assert.ts'
import { DatabaseUnavailable, isCounted, type Db } from './database.ts'
import { kyselyOver, type Engine } from './direct-executor.ts'
import { TransactionReads } from './transaction-reads.ts'
import { resultOf, statementOf, type GuardedPool, type PooledConnection, type Statement } from './postgres-pool.ts'

/** Maximum number of statements on the wire in one transaction. The next statement waits for the oldest. */
const SENT_LIMIT = 500

const NO_ROWS: QueryResult<never> = { rows: [] }

/** How a transaction runs. */
export interface TransactionSettings {
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
export async function runTransaction<T>(
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

function isWriteWithoutResult(compiled: CompiledQuery): boolean {
  const { query } = compiled
  if (query.kind !== 'InsertQueryNode' && query.kind !== 'UpdateQueryNode' && query.kind !== 'DeleteQueryNode')
    return false
  return query.returning === undefined && !isCounted(compiled)
}

/**
 * True if a prepared statement failed because its table has changed since the statement was prepared. The same work
 * succeeds on a new connection.
 */
export function isPlanOutdated(error: unknown): boolean {
  const { code, message } = (error ?? {}) as { code?: string; message?: string }
  return code === '0A000' && message?.startsWith('cached plan') === true
}
