import type { Compilable, CompiledQuery, DialectAdapter } from 'kysely'
import { assert, BrokenInvariant } from '../../../policy/assert.ts'
import type { Db } from './database.ts'

/** Possible numbers of rows in one insert: few, because each number needs its own compiled statement. */
const CHUNKS = [100, 20, 5, 2, 1]

/** Splits rows into chunks of the sizes that inserts are compiled for. */
export function* insertChunks<T>(rows: readonly T[]): Generator<readonly T[]> {
  let at = 0
  for (const size of CHUNKS) for (; rows.length - at >= size; at += size) yield rows.slice(at, at + size)
}

/** Stands for a parameter while a query is compiled. */
class Placeholder {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}

interface Plan {
  query: CompiledQuery
  /** Placeholders and constant values, in the order of the statement. */
  parameters: readonly unknown[]
}

/** Parameters for `build`, each a placeholder. */
function placeholdersOf<P extends object>(): P {
  return new Proxy({}, { get: (_target, name) => new Placeholder(String(name)) }) as P
}

/** The value of a placeholder; other values unchanged. */
function boundValue(parameter: unknown, parameters: object): unknown {
  if (!(parameter instanceof Placeholder)) return parameter
  const value = (parameters as Record<string, unknown>)[parameter.name]
  if (value === undefined) throw new BrokenInvariant(`parameter ${parameter.name} is missing`)
  return value
}

/**
 * A query that is compiled once and run with different parameters, because compiling takes longer than most look-ups.
 * `build` receives placeholders and must pass them to the query unchanged.
 *
 *   const keyByHash = prepared((db, p: { hash: string }) =>
 *     db.selectFrom('api_key').selectAll().where('hash', '=', p.hash),
 *   )
 *   const [key] = await keyByHash(db, { hash })
 */
export function prepared<P extends object, R>(
  build: (db: Db, parameters: P) => Compilable<R>,
): (db: Db, parameters: P) => Promise<R[]> {
  const plans = new WeakMap<DialectAdapter, Plan>()

  return async (db, parameters) => {
    const { adapter } = db.getExecutor()
    let plan = plans.get(adapter)
    if (!plan) {
      const query = build(db, placeholdersOf<P>()).compile()
      plan = { query, parameters: query.parameters }
      plans.set(adapter, plan)
    }
    const bound = plan.parameters.map((parameter) => boundValue(parameter, parameters))
    const { rows } = await db.executeQuery<R>({ ...plan.query, parameters: bound } as CompiledQuery<R>)
    return rows
  }
}

/** Like `prepared`, for a query whose parameters follow each other instead of having names. */
export function preparedRows<A extends readonly unknown[], R>(
  build: (db: Db, ...parameters: A) => Compilable<R>,
): (db: Db, ...parameters: A) => Promise<R[]> {
  const places = Array.from({ length: build.length - 1 }, (_, n) => n)
  const run = prepared<A, R>((db, parameters) => build(db, ...(places.map((n) => parameters[n]) as unknown as A)))
  return (db, ...parameters) => run(db, parameters)
}

/** Like `preparedRows`, for a query that has at most one row, or of which only the first row counts. */
export function preparedRow<A extends readonly unknown[], R>(
  build: (db: Db, ...parameters: A) => Compilable<R>,
): (db: Db, ...parameters: A) => Promise<R | undefined> {
  const rows = preparedRows(build)
  return async (db, ...parameters) => (await rows(db, ...parameters))[0]
}

/**
 * Copies these parameters into an object for `values(…)`. `{ ...parameters }` does not work, because while a query is
 * compiled the parameters have no properties of their own.
 */
export function fieldsOf<T extends object, K extends keyof T>(parameters: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(names.map((name) => [name, parameters[name]])) as unknown as Pick<T, K>
}

interface InsertPlan {
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
  const plans = new WeakMap<DialectAdapter, Map<number, InsertPlan>>()

  return async (db, rows) => {
    const [first] = rows
    if (!first) return []
    const { adapter } = db.getExecutor()
    const ofSize = plans.get(adapter) ?? new Map<number, InsertPlan>()
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
        if (value === undefined) throw new BrokenInvariant(`column ${name} is missing`)
        parameters.push(value)
      }
    }
    return (await db.executeQuery<O>({ ...query, parameters } as CompiledQuery<O>)).rows
  }
}

/**
 * Possible numbers of keys in one statement. For each number, one statement is compiled. If a list is shorter, its last
 * key fills the rest.
 */
const SIZES = [1, 5, 20, 100]
const LARGEST = 100

interface KeysPlan {
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
  const plans = new WeakMap<DialectAdapter, Map<number, KeysPlan>>()

  function planOf(db: Db, size: number): KeysPlan {
    const { adapter } = db.getExecutor()
    const ofSize = plans.get(adapter) ?? new Map<number, KeysPlan>()
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
