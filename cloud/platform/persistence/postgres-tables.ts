import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from 'kysely'
import type pg from 'pg'
import { kyselyOver } from './direct-executor.ts'
import { migratePostgres } from './migrate.ts'
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
