import type { Kysely } from 'kysely'
import type { Schema } from './schema.ts'

/** What queries are made on: a transaction, or the reading side outside of one. */
export type Db = Kysely<Schema>

/**
 * The store of everything. The same schema and the same queries run on SQLite and on PostgreSQL;
 * what differs is in `sqlite.ts` and `postgres.ts`.
 */
export interface Database {
  readonly dialect: 'sqlite' | 'postgres'
  /** Reads what is committed; never inside a transaction of somebody else. */
  readonly reads: Db
  /**
   * Runs `work` in one serializable transaction and resolves when it is durable. `work` awaits nothing
   * but the `db` it is given, has no effect besides, and may be run again when another transaction got in its way.
   */
  write<T>(work: (db: Db) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** A fault of the disk after which nobody knows what is on it: no answer may rest on this process any more. */
export class StorageFailure extends Error {
  override name = 'StorageFailure'
}

/** Too many transactions wait. Nothing was stored: the caller may try again. */
export class DatabaseBusy extends Error {
  override name = 'DatabaseBusy'
}

/** The database did not answer, or the connection to it was lost. Nothing was stored, unless `isOutcomeUnknown`. */
export class DatabaseUnavailable extends Error {
  override name = 'DatabaseUnavailable'
  /** The connection was lost during COMMIT: the transaction may be stored or not. */
  readonly isOutcomeUnknown: boolean
  constructor(isOutcomeUnknown: boolean, options?: ErrorOptions) {
    super('the database does not answer', options)
    this.isOutcomeUnknown = isOutcomeUnknown
  }
}
