import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** Target of queries: a transaction, or the read connection outside of transactions. */
export type Db = Kysely<Schema>

/**
 * The database of the cloud. Schema and queries are the same on SQLite and PostgreSQL; `sqlite.ts` and `postgres.ts`
 * hold the differences.
 */
export interface Database {
  readonly dialect: 'sqlite' | 'postgres'
  /** Reads committed data, outside of any transaction. */
  readonly reads: Db
  /**
   * Runs `work` in one serializable transaction and resolves after the durable commit. After a conflict `work` runs
   * again. It must therefore await only its `db` and have no other effects.
   */
  write<T>(work: (db: Db) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Error after an I/O failure: the content of the disk is unknown. The process must stop serving requests. */
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
