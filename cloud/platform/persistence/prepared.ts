import type { Compilable, CompiledQuery, DialectAdapter } from 'kysely'
import { assert } from '../../../policy/assert.ts'
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
export function placeholdersOf<P extends object>(): P {
  return new Proxy({}, { get: (_target, name) => new Placeholder(String(name)) }) as P
}

/** The value of a placeholder; other values unchanged. */
export function boundValue(parameter: unknown, parameters: object): unknown {
  if (!(parameter instanceof Placeholder)) return parameter
  const value = (parameters as Record<string, unknown>)[parameter.name]
  assert(value !== undefined, `parameter ${parameter.name} is missing`)
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
