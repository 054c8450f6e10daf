import Sqlite, { type Database } from 'better-sqlite3'

type Read = (
  sql: string,
  values?: unknown[],
) => { detail?: string; type?: string; name?: string; sql?: string | null }[]
type Prepare = (this: Database, sql: string) => { all: (...values: unknown[]) => ReturnType<Read> }

/** Notes the plan of each statement that SQLite prepares in this process. */
export interface PlanGuard {
  /**
   * Statements that read all rows of a table, or sort all rows of an account, store or till. `isFine`: patterns of statements
   * that may, each with the reason. Ends the guard.
   */
  slowStatements(isFine: readonly (readonly [RegExp, string])[]): string[]
}

/** Starts to note plans. The databases have no statistics, so a plan does not depend on the rows of a test. */
export function guardPlans(): PlanGuard {
  const known = new Map<string, string[]>()
  const { prepare } = Sqlite.prototype as unknown as { prepare: Prepare }
  Sqlite.prototype.prepare = function (this: Database, sql: string) {
    const statement = prepare.call(this, sql)
    const read = (text: string, values: unknown[] = []) => prepare.call(this, text).all(...values)
    if (/^\s*(select|update|delete|insert|with)\b/i.test(sql) && !known.has(sql)) known.set(sql, slowSteps(sql, read))
    return statement
  } as unknown as Database['prepare']
  return {
    slowStatements(isFine) {
      Sqlite.prototype.prepare = prepare as unknown as Database['prepare']
      return [...known]
        .flatMap(([sql, steps]) => steps.map((step) => `${step}: ${sql.replaceAll(/\s+/g, ' ').trim()}`))
        .filter((line, i, lines) => lines.indexOf(line) === i && !isFine.some(([pattern]) => pattern.test(line)))
    },
  }
}

/** A step that reads all rows of an account, store or till, or all with one status, perhaps within a range. */
const WHOLE_OWNER = /\((tenant|store_id|till_id|sender|status)=\?( AND \w+[<>]\?)*\)/

/** Steps of the plan of a statement that take longer, the more rows its tables have. */
function slowSteps(sql: string, read: Read): string[] {
  const steps = read(`EXPLAIN QUERY PLAN ${sql}`, valuesFor(sql)).map(({ detail = '' }) => detail)
  const schema = read('SELECT type, name, sql FROM sqlite_master')
  const tables = schema.flatMap(({ type, name = '' }) => (type === 'table' ? [name] : []))
  // A partial index has only the rows that wait for something.
  const partial = new Set(
    schema.flatMap(({ type, name, sql: made }) => (type === 'index' && / where /i.test(made ?? '') ? [name] : [])),
  )
  const sorts = steps.some((step) => step.startsWith('USE TEMP B-TREE'))
  return steps.flatMap((step) => {
    const [, how = '', alias = '', index] = /^(SCAN|SEARCH) (\S+)(?: USING (?:COVERING )?INDEX (\S+))?/.exec(step) ?? []
    const isSlow = how === 'SCAN' || (how === 'SEARCH' && sorts && WHOLE_OWNER.test(step))
    const table = tableOf(sql, alias, tables)
    return isSlow && table !== undefined && !partial.has(index) ? [`${how} ${table}`] : []
  })
}

/** A value for each parameter of a statement: `EXPLAIN` needs them, but does not use them. */
function valuesFor(sql: string): unknown[] {
  const named = [...sql.matchAll(/@(\w+)/g)].map(([, name = '']) => [name, 1])
  return named.length > 0 ? [Object.fromEntries(named)] : Array.from({ length: sql.split('?').length - 1 }, () => 1)
}

/**
 * The table that a step of a plan names, perhaps by an alias. Undefined for a table that the statement does not name: it
 * refers to the written one, and SQLite reads it only while foreign keys are violated.
 */
function tableOf(sql: string, alias: string, tables: readonly string[]): string | undefined {
  return tables.find((table) =>
    table === alias
      ? new RegExp(`\\b${table}\\b`).test(sql)
      : new RegExp(`\\b${table}"?\\s+(as\\s+)?"?${alias}\\b`, 'i').test(sql),
  )
}
