import type { Compilable, CompiledQuery, DialectAdapter } from 'kysely'
import { assert } from '../../../policy/assert.ts'
import type { Db } from './database.ts'
import { boundValue, placeholdersOf } from './prepared.ts'

/**
 * Possible numbers of keys in one statement. For each number, one statement is compiled. If a list is shorter, its last
 * key fills the rest.
 */
const SIZES = [1, 5, 20, 100]
const LARGEST = 100

interface Plan {
  query: CompiledQuery
  /** Index of the first key among the parameters. */
  from: number
}

/**
 * A query over a list of keys that is compiled once for each number in `SIZES`. `build` must use the list once and
 * unchanged. The keys may contain duplicates, so use the list with `in`. It may use further parameters, see `prepared`.
 *
 *   const unitsOf = preparedForMany((db, ids) =>
 *     db.selectFrom('purchase_unit').selectAll().where('purchase_id', 'in', ids),
 *   )
 *   const units = await unitsOf(db, purchaseIds)
 */
export function preparedForMany<R, P extends object | void = void>(
  build: (db: Db, keys: readonly string[], parameters: P) => Compilable<R>,
): (db: Db, keys: Iterable<string>, parameters: P) => Promise<R[]> {
  const plans = new WeakMap<DialectAdapter, Map<number, Plan>>()

  function planOf(db: Db, size: number): Plan {
    const { adapter } = db.getExecutor()
    const ofSize = plans.get(adapter) ?? new Map<number, Plan>()
    plans.set(adapter, ofSize)
    const known = ofSize.get(size)
    if (known) return known
    const placeholders = Array.from({ length: size }, (_, i) => `\0key ${i}`)
    const query = build(db, placeholders, placeholdersOf<object>() as P).compile()
    const from = query.parameters.indexOf(placeholders[0])
    assert(
      from >= 0 && placeholders.every((placeholder, i) => query.parameters[from + i] === placeholder),
      'the query does not name its keys in their order',
    )
    const plan = { query, from }
    ofSize.set(size, plan)
    return plan
  }

  return async (db, keys, further) => {
    const wanted = [...new Set(keys)]
    const rows: R[] = []
    for (let at = 0; at < wanted.length; at += LARGEST) {
      const part = wanted.slice(at, at + LARGEST)
      const size = SIZES.find((each) => each >= part.length) ?? LARGEST
      const { query, from } = planOf(db, size)
      const parameters = query.parameters.map((parameter) => boundValue(parameter, further ?? {}))
      for (let i = 0; i < size; i++) parameters[from + i] = part[Math.min(i, part.length - 1)]
      const found = await db.executeQuery<R>({ ...query, parameters } as CompiledQuery<R>)
      // A key may have any number of rows, and each argument of a call needs stack.
      for (const row of found.rows) rows.push(row)
    }
    return rows
  }
}
