import type { Compilable, CompiledQuery, DialectAdapter } from 'kysely'
import { assert } from '../../../policy/assert.ts'
import type { Db } from './database.ts'

interface Plan {
  query: CompiledQuery
  columns: readonly string[]
}

/**
 * An insert of rows, or another statement over rows, that is compiled once for each number of rows, because building
 * its SQL takes longer than running it. `build` must pass the rows to `values` unchanged and have no other parameters. All rows need the same columns,
 * and each column needs a value other than undefined. Use `insertChunks` to get few different numbers of rows.
 *
 *   const insertWords = preparedInsert((db, rows: readonly ProductWordRow[]) =>
 * db.insertInto('product_word').values(rows))
 */
export function preparedInsert<R extends object, O>(
  build: (db: Db, rows: readonly R[]) => Compilable<O>,
): (db: Db, rows: readonly R[]) => Promise<O[]> {
  const plans = new WeakMap<DialectAdapter, Map<number, Plan>>()

  return async (db, rows) => {
    const [first] = rows
    if (!first) return []
    const { adapter } = db.getExecutor()
    const ofSize = plans.get(adapter) ?? new Map<number, Plan>()
    plans.set(adapter, ofSize)
    let plan = ofSize.get(rows.length)
    if (!plan) {
      plan = { query: build(db, rows).compile(), columns: Object.keys(first) }
      assert(
        plan.query.parameters.length === rows.length * plan.columns.length,
        'the insert has other parameters than its rows',
      )
      ofSize.set(rows.length, plan)
    }
    const { query, columns } = plan
    const parameters: unknown[] = []
    for (const row of rows) {
      assert(Object.keys(row).length === columns.length, 'a row has other columns than the first one had')
      for (const name of columns) {
        const value = (row as Record<string, unknown>)[name]
        assert(value !== undefined, `column ${name} is missing`)
        parameters.push(value)
      }
    }
    return (await db.executeQuery<O>({ ...query, parameters } as CompiledQuery<O>)).rows
  }
}
