import {
  DefaultQueryExecutor,
  Kysely,
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type DialectAdapter,
  type QueryCompiler,
  type QueryResult,
} from 'kysely'
import type { Db } from './database.ts'
import type { Schema } from './schema.ts'

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
