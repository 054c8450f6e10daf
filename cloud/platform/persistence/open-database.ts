import type { Clock } from '../../../policy/platform.ts'
import { type Database, type StorageFailure, type OnStorageState, kyselyOver } from './database.ts'
import { type MigrationMode, migratePostgres } from './migrate.ts'
import type { PostgresPlace } from './postgres.ts'
import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import type pg from 'pg'
import { resultOf } from './postgres-pool.ts'

/** Applies all missing migrations in the open transaction of this client. */
export async function createTables(client: pg.ClientBase): Promise<void> {
  const engine = {
    adapter: new PostgresAdapter(),
    compiler: new PostgresQueryCompiler(),
    dialect: {
      createIntrospector: (db: ConstructorParameters<typeof PostgresIntrospector>[0]) => new PostgresIntrospector(db),
    },
  }
  await migratePostgres(
    kyselyOver(engine, {
      executeQuery: async ({ sql, parameters }) => resultOf(await client.query({ text: sql, values: [...parameters] })),
      streamQuery: () => {
        throw new Error('a migration streams nothing')
      },
    }),
  )
}

/** A SQLite file. */
interface SqlitePlace {
  readonly file: string
  /** Default: `apply`. */
  readonly migrations?: MigrationMode
  /** For a cloud that serves several accounts: expensive transactions of one do not delay the commits of others. */
  readonly clock?: Pick<Clock, 'elapsed'>
}

/**
 * Opens `file` (SQLite) or a `postgres://` URL, applies missing migrations and checks that commits are durable.
 * Calls `onFailure` if the content of SQLite's disk is unknown, and `onState` for each change of the storage's state.
 */
export async function openDatabase(
  place: SqlitePlace | PostgresPlace,
  onFailure: (failure: StorageFailure) => void,
  onState: OnStorageState = () => undefined,
): Promise<Database> {
  if ('file' in place) {
    const { openConnection, openSqlite } = await import('./sqlite.ts')
    return openSqlite(place.file, onFailure, openConnection, onState, place.migrations, place.clock)
  }
  const { openPostgres } = await import('./postgres.ts')
  return openPostgres(place, onState)
}
