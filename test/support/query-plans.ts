import Sqlite from 'better-sqlite3'
import { Kysely, PostgresDialect, SqliteDialect, type CompiledQuery, type LogEvent } from 'kysely'
import pg from 'pg'
import type { Db } from '../../cloud/platform/persistence/database.ts'
import type { Schema } from '../../cloud/platform/persistence/schema.ts'
import type { Json } from './cloud.ts'

export interface QueryPlans {
  /** Runs queries on the database of the cloud, and notes them. */
  readonly db: Db
  readonly queries: CompiledQuery[]
  /** Plans of the queries that this work runs on `db`. */
  of(work: () => Promise<unknown>): Promise<string[]>
  /** Reads how the rows of all tables are distributed, as the jobs of a cloud do. */
  analyze(): Promise<void>
  close(): Promise<void>
}

/** Opens the database of a test a second time, to read how it runs queries. */
export function openQueryPlans(location: { file: string } | { url: string }): QueryPlans {
  const queries: CompiledQuery[] = []
  const log = (event: LogEvent) => void queries.push(event.query)
  const isFile = 'file' in location
  const dialect = isFile
    ? new SqliteDialect({ database: new Sqlite(location.file) })
    : new PostgresDialect({ pool: new pg.Pool({ connectionString: location.url }) })
  const db: Db = new Kysely<Schema>({ dialect, log })
  const sqlOf = async (sql: string, parameters: readonly unknown[] = []) =>
    (await db.executeQuery<Json>({ sql, parameters, query: { kind: 'RawNode' } } as unknown as CompiledQuery)).rows
  return {
    db,
    queries,
    async of(work) {
      queries.length = 0
      await work()
      const plans = []
      for (const { sql, parameters } of queries.splice(0)) {
        const rows = await sqlOf(`EXPLAIN ${isFile ? 'QUERY PLAN ' : ''}${sql}`, parameters)
        plans.push(rows.map((row) => row.detail ?? row['QUERY PLAN']).join('\n'))
      }
      return plans
    },
    analyze: async () => void (await sqlOf('ANALYZE')),
    close: () => db.destroy(),
  }
}
