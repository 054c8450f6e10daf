import { logJobFailure } from '../foundation/log.ts'
import type { Services, Call } from './operation.ts'
import type { Database, Db } from '../persistence/database.ts'
import type { Schema } from '../persistence/schema.ts'
import type { Clock } from '../../../policy/platform.ts'

/** Lets pending events run. Long computations call it, so that other requests do not wait for them. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Runs one piece of work of a job. Logs its failure, and returns false: the next piece must not wait for it. */
export async function isProcessed(log: Services['log'], job: string, process: () => Promise<void>): Promise<boolean> {
  try {
    await process()
    return true
  } catch (error) {
    logJobFailure(log, error, job)
    return false
  }
}

/** Turns of one run. The rest follows in the next run, because a process waits for running jobs before it ends. */
const TURNS = 200
/** Time after which a run looks for further accounts with work, ms. */
const ACCOUNTS_MS = 1_000

/** Work that waits for each account. */
interface AccountTurns<P> {
  /** Name of the job in log lines. */
  readonly job: string
  /** Accounts with waiting work, the longest waiting first. */
  accounts(db: Db): Promise<readonly string[]>
  /**
   * Does the next part of the account's work, in short transactions. Must have no effect if another process has done it.
   * `place`: what the last turn of the account in this run returned. Returns undefined if nothing is left in this run.
   */
  turn(tenant: string, place: P | undefined): Promise<P | undefined>
  /** Default: `TURNS`. */
  readonly turns?: number
}

/**
 * Gives each account one turn, then the next account, so that much work of one account delays no other. An account whose
 * turn failed gets no further one in this run. Returns true if more is left: the next run should follow soon. Several
 * processes may run this at the same time.
 */
export async function inTurns<P extends NonNullable<unknown>>(
  database: Database,
  { log, platform }: Pick<Services, 'log' | 'platform'>,
  { job, accounts, turn, turns: most = TURNS }: AccountTurns<P>,
): Promise<boolean> {
  const places = new Map<string, P | undefined>()
  const ended = new Set<string>()
  let readMs = -Infinity
  for (let turns = 0; turns < most;) {
    if (platform.clock.elapsed() - readMs >= ACCOUNTS_MS) {
      for (const tenant of await accounts(database.reads))
        if (!ended.has(tenant) && !places.has(tenant)) places.set(tenant, undefined)
      readMs = platform.clock.elapsed()
    }
    if (places.size === 0) return false
    for (const [tenant, place] of places) {
      let next: P | undefined
      await isProcessed(log, job, async () => {
        next = await turn(tenant, place)
      })
      turns++
      if (next === undefined) {
        places.delete(tenant)
        ended.add(tenant)
      } else places.set(tenant, next)
      await yieldToEventLoop()
    }
  }
  return places.size > 0
}

/** Accounts per read. */
const ACCOUNTS = 1_000
/** Rows of a turn. */
const ROWS = 5

/** Due rows that a job processes one at a time, each in its own transaction. */
interface DueRows<T> extends Pick<AccountTurns<number>, 'job' | 'accounts'> {
  /** Reads due rows of an account, the oldest first, without the `offset` oldest ones: these failed in this run. */
  read(db: Db, tenant: string, page: { limit: number; offset: number }): Promise<readonly T[]>
  /** Processes one row. Must have no effect if another process has already processed it. */
  process(row: T): Promise<void>
  /** True: the rows of a turn are processed at the same time, and share a commit on SQLite. */
  readonly together?: boolean
}

/** Processes due rows in turns of their accounts. A failed row is logged and stays due; the account's next row follows. */
export function processDue<T>(
  database: Database,
  services: Pick<Services, 'log' | 'platform'>,
  { job, accounts, read, process, together = false }: DueRows<T>,
): Promise<boolean> {
  return inTurns<number>(database, services, {
    job,
    accounts,
    async turn(tenant, failedBefore = 0) {
      let failed = failedBefore
      const rows = await read(database.reads, tenant, { limit: ROWS, offset: failed })
      const settle = async (row: T) => {
        if (!(await isProcessed(services.log, job, () => process(row)))) failed++
      }
      if (together) await Promise.all(rows.map(settle))
      else for (const row of rows) await settle(row)
      return rows.length < ROWS ? undefined : failed
    },
  })
}

/** Accounts with rows whose time has come, the longest waiting first. */
export async function accountsDue<T extends 'purchase' | 'pickup_order' | 'till_sale' | 'till_return' | 'offer_group'>(
  db: Db,
  table: T,
  time: keyof Schema[T],
  nowMs: number,
): Promise<string[]> {
  // Kysely cannot type queries on a table that is a parameter: `till_sale` stands for any of them.
  const [from, column] = [table, time] as unknown as ['till_sale', 'due_ms']
  const rows = await db
    .selectFrom(from)
    .select('tenant')
    .where(column, '<=', nowMs)
    .groupBy('tenant')
    .orderBy((eb) => eb.fn.min(column))
    .orderBy('tenant')
    .limit(ACCOUNTS)
    .execute()
  return rows.map((row) => row.tenant)
}

/** What a step of a job and an operation have in common. */
export type JobCall = Pick<Call, 'db' | 'services' | 'afterCommit' | 'nowMs'>

/**
 * Runs one step of a job in a transaction, and what it announces after the commit. A step does a limited number of
 * statements, because other accounts wait for it. `holder`: the account that the step works for.
 */
export async function runJobStep<T>(
  { database, services, holder }: { database: Database; services: Services; holder: string },
  run: (call: JobCall) => Promise<T>,
): Promise<T> {
  let announced: (() => void | Promise<void>)[] = []
  const result = await database.write(
    (db) => {
      // A transaction may run again after a conflict.
      announced = []
      const afterCommit: Call['afterCommit'] = (task) => void announced.push(task)
      return run({ db, services, nowMs: services.platform.clock.wall(), afterCommit })
    },
    { holder },
  )
  for (const announce of announced) await announce()
  // Before the next step, requests that came meanwhile run.
  await yieldToEventLoop()
  return result
}

/** Time after which a transaction takes no further row, ms: meanwhile other writers wait. */
const TRANSACTION_MS = 100

/**
 * Returns a function that is true once a transaction over rows of unequal work should end, and leave the rest to the
 * next one. Call it after each row, so that each transaction has one.
 */
export function endsSoon(clock: Pick<Clock, 'elapsed'>): () => boolean {
  const endMs = clock.elapsed() + TRANSACTION_MS
  return () => clock.elapsed() >= endMs
}
