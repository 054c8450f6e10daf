import type { Platform } from '../../../policy/platform.ts'
import type { KeptKind } from '../../platform/foundation/keep-days.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'

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
