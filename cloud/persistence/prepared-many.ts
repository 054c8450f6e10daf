import type { Compilable } from 'kysely'
import type { Db } from './database.ts'
import { prepared } from './prepared.ts'

/** Keys of one statement: few numbers of them, so that there are few statements to compile; what is left over is filled up. */
const SIZES = [1, 5, 20, 100]
const LARGEST = 100

/**
 * A query over a list of keys that is compiled once for each of a few lengths of the list. `build` passes the keys on as they
 * are, and must not mind one that is named twice: use it with `in`.
 *
 *   const unitsOf = preparedForMany((db, ids) => db.selectFrom('purchase_unit').selectAll().where('purchase_id', 'in', ids))
 *   const units = await unitsOf(db, purchaseIds)
 */
export function preparedForMany<R>(build: (db: Db, keys: readonly string[]) => Compilable<R>): (db: Db, keys: Iterable<string>) => Promise<R[]> {
  const plans = SIZES.map((size) => ({
    size,
    run: prepared((db, p: Record<string, string>) => build(db, Array.from({ length: size }, (_, i) => p[`key${i}`] as string))),
  }))

  return async (db, keys) => {
    const wanted = [...new Set(keys)]
    const rows: R[] = []
    for (let from = 0; from < wanted.length; from += LARGEST) {
      const part = wanted.slice(from, from + LARGEST)
      const plan = plans.find(({ size }) => size >= part.length)
      const parameters: Record<string, string> = {}
      for (let i = 0; i < (plan?.size ?? 0); i++) parameters[`key${i}`] = part[Math.min(i, part.length - 1)] as string
      rows.push(...((await plan?.run(db, parameters)) ?? []))
    }
    return rows
  }
}
