import type { Platform } from '../../../policy/platform.ts'
import type { KeptKind } from '../../platform/foundation/config.ts'
import { firstIdAt } from '../../../policy/ids.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import type { Schema } from '../../platform/persistence/schema.ts'

/** Maximum number of rows that one transaction of a rule deletes or changes. */
export const BATCH = 200

/** What a rule needs. */
export interface RetentionScope {
  readonly database: Database
  readonly platform: Platform
  readonly nowMs: number
}

/** Deletes data of one kind from before a time. */
export interface RetentionRule {
  readonly kind: KeptKind
  /**
   * Deletes at most `BATCH` of the oldest rows, with the rows that belong to them. Returns their number; 0 if no row is
   * old enough.
   */
  deleteSome(scope: RetentionScope, beforeMs: number): Promise<number>
}

/** Deletes what `find` returned, if there is anything. Most runs find nothing and so write nothing. */
export async function deleteFound<T>(
  { database }: RetentionScope,
  find: (db: Db) => Promise<readonly T[]>,
  remove: (db: Db, found: readonly T[]) => Promise<unknown>,
): Promise<number> {
  const found = await find(database.reads)
  if (found.length > 0) await database.write((db) => remove(db, found))
  return found.length
}

/** Rule that finds the oldest rows, at most `BATCH`, and removes them in one transaction. */
export function rule<T>(
  kind: KeptKind,
  find: (db: Db, beforeMs: number) => Promise<readonly T[]>,
  remove: (db: Db, found: readonly T[], scope: RetentionScope) => Promise<unknown>,
): RetentionRule {
  return {
    kind,
    deleteSome: (scope, beforeMs) =>
      deleteFound(
        scope,
        (db) => find(db, beforeMs),
        (db, found) => remove(db, found, scope),
      ),
  }
}

/** Rule for a table whose ids begin with the time of their row. `time`: column that must be before the limit, too. */
export function oldRows<T extends keyof Schema>(
  kind: KeptKind,
  of: { table: T; id: keyof Schema[T]; prefix: string; time: keyof Schema[T] },
): RetentionRule {
  // Kysely cannot type queries on a table that is a parameter: `erasure` stands for any table.
  const { table, id, time } = of as unknown as { table: 'erasure'; id: 'erasure_id'; time: 'done_ms' }
  return rule(
    kind,
    (db, beforeMs) =>
      db
        .selectFrom(table)
        .select(id)
        .where(id, '<', firstIdAt(of.prefix, beforeMs))
        .where(time, '<', beforeMs)
        .orderBy(id)
        .limit(BATCH)
        .execute(),
    (db, rows) => {
      const ids = rows.map((row) => row[id])
      return db.deleteFrom(table).where(id, 'in', ids).execute()
    },
  )
}
