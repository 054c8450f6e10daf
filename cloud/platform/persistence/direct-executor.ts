import {
  DefaultQueryExecutor,
  Kysely,
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type DialectAdapter,
  type QueryCompiler,
  type QueryResult,
} from 'kysely'
import type { Clock } from '../../../policy/platform.ts'
import { type Db, DatabaseBusy } from './database.ts'
import type { Schema } from './schema.ts'

/** Maximum number of waiting transactions or reads, in total and of one holder. */
const QUEUE_LIMIT = 10_000
const QUEUE_LIMIT_OF_ONE = 4_000

/**
 * Waiting transactions or reads. The queue takes turns between holders, so that one with many entries delays others by one entry at most.
 * Entries of one holder keep their order.
 */
export class FairQueue<T> {
  /** Entries of each holder that has some. The first holder has the next turn. */
  readonly #byHolder = new Map<string, T[]>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Throws `DatabaseBusy` if too many entries wait, in total or of this holder. */
  add(holder: string, entry: T): void {
    const own = this.#byHolder.get(holder)
    if (this.#size >= QUEUE_LIMIT || (own?.length ?? 0) >= QUEUE_LIMIT_OF_ONE)
      throw new DatabaseBusy('too many requests wait for the database')
    if (own) own.push(entry)
    else this.#byHolder.set(holder, [entry])
    this.#size++
  }

  /** Removes and returns the first entry of the holder whose turn it is. */
  take(): T | undefined {
    for (const [holder, own] of this.#byHolder) {
      const entry = own.shift()
      this.#byHolder.delete(holder)
      if (own.length > 0) this.#byHolder.set(holder, own)
      this.#size--
      return entry
    }
    return undefined
  }

  /** Removes and returns all entries. */
  takeAll(): T[] {
    const all = [...this.#byHolder.values()].flat()
    this.#byHolder.clear()
    this.#size = 0
    return all
  }
}

/** Runs at most `size` tasks at the same time. Holders that wait take turns. */
export function fairSlots(size: number): <T>(holder: string, task: () => Promise<T>) => Promise<T> {
  const waiting = new FairQueue<() => void>()
  let atWork = 0
  return async (holder, task) => {
    if (atWork < size) atWork++
    else await new Promise<void>((resolve) => waiting.add(holder, resolve))
    try {
      return await task()
    } finally {
      const next = waiting.take()
      if (next) next()
      else atWork--
    }
  }
}

/** Maximum number of free turns after a task. */
const FREE_TURNS_LIMIT = 200

/**
 * Calls `then` after as many free turns of the event loop as a task has blocked it for ms. In one turn Node.js accepts
 * one connection: with one turn between long tasks, new connections of all clients would wait for those of the busiest.
 */
export function afterFreeTurns(blockedMs: number, then: () => void): void {
  let left = Math.min(FREE_TURNS_LIMIT, Math.floor(blockedMs))
  const turn = () => {
    if (left-- > 0) setImmediate(turn)
    else then()
  }
  turn()
}

/**
 * Starts one task in a turn of the event loop, for tasks that block the process while they run. Holders that wait take
 * turns, and other events run in between.
 */
export function fairTurns(clock: Pick<Clock, 'elapsed'>): <T>(holder: string, task: () => Promise<T>) => Promise<T> {
  const waiting = new FairQueue<() => void>()
  let isTaken = false
  const next = () => {
    const start = waiting.take()
    isTaken = start !== undefined
    if (!start) return
    beginTurn()
    start()
  }
  /** The task runs until the next turn of the event loop begins. */
  const beginTurn = () => {
    const startMs = clock.elapsed()
    setImmediate(() => afterFreeTurns(clock.elapsed() - startMs, next))
  }
  return async (holder, task) => {
    if (isTaken) await new Promise<void>((resolve) => waiting.add(holder, resolve))
    else {
      isTaken = true
      beginTurn()
    }
    return task()
  }
}

/**
 * The parts of Kysely that differ between SQLite and PostgreSQL. `prepared.ts` caches compiled queries by `adapter`.
 */
export interface Engine {
  readonly adapter: DialectAdapter
  readonly compiler: QueryCompiler
  readonly dialect: Pick<Dialect, 'createIntrospector'>
}

/**
 * Kysely that sends every query to `connection`. Kysely's own executor acquires and releases a connection for each
 * query, which costs eight promises. Kysely's executor also sends the queries of a transaction one at a time.
 */
export function kyselyOver({ adapter, compiler, dialect }: Engine, connection: DatabaseConnection): Db {
  const nothing = () => Promise.resolve()
  const driver = {
    init: nothing,
    acquireConnection: () => Promise.resolve(connection),
    beginTransaction: nothing,
    commitTransaction: nothing,
    rollbackTransaction: nothing,
    releaseConnection: nothing,
    destroy: nothing,
  }
  const whole: Dialect = {
    createAdapter: () => adapter,
    createIntrospector: (db) => dialect.createIntrospector(db),
    createQueryCompiler: () => compiler,
    createDriver: () => driver,
  }
  const executor = new DirectExecutor(adapter, compiler, connection)
  return new Kysely<Schema>({ config: { dialect: whole }, dialect: whole, driver, executor })
}

class DirectExecutor extends DefaultQueryExecutor {
  readonly #connection: DatabaseConnection

  constructor(adapter: DialectAdapter, compiler: QueryCompiler, connection: DatabaseConnection) {
    super(compiler, adapter, { provideConnection: (consumer) => consumer(connection) })
    this.#connection = connection
  }

  override executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    return this.#connection.executeQuery<R>(query)
  }
}
