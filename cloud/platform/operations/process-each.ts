import { sql } from 'kysely'
import { logJobFailure } from '../foundation/log.ts'
import type { Services, Call } from './operation.ts'
import type { Database, Db, WriteScope } from '../persistence/database.ts'
import type { Clock } from '../../../policy/platform.ts'

/** Lets pending events run. Long computations call it, so that other requests do not wait for them. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/**
 * Items per read, and reads per run. The limits keep a run short, because a process waits for running jobs before it
 * ends.
 */
const READ_LIMIT = 100
const ROUNDS = 10

/** Due items that a job processes one at a time, each in its own transaction. */
interface DueItems<T> {
  /** Name of the job in log lines. */
  job: string
  /**
   * Reads at most `limit` due items, oldest first. Must skip the `failed` oldest items, which failed in this run and
   * are still due.
   */
  read(limit: number, failed: number): Promise<readonly T[]>
  /** Processes one item. Must have no effect if another process has already processed the item. */
  process(piece: T): Promise<void>
}

/**
 * Processes due items. A failed item is logged and stays due; processing continues with the next item. Returns true if
 * more are due: the next run should follow soon.
 */
export async function processEach<T>(
  { log }: Pick<Services, 'log'>,
  { job, read, process }: DueItems<T>,
): Promise<boolean> {
  let failed = 0
  for (let round = 0; round < ROUNDS; round++) {
    const pieces = await read(READ_LIMIT, failed)
    for (const piece of pieces) if (!(await isProcessed(log, job, () => process(piece)))) failed++
    if (pieces.length < READ_LIMIT) return false
  }
  return true
}

/** Items of one run of `processOnce`. */
const ONCE_LIMIT = 10_000

/**
 * Processes items of which some stay due. Accounts take turns, so `read` must sort by `turn` (`turnOf`). A failed item is
 * logged.
 */
export async function processOnce<T>(
  { log }: Pick<Services, 'log'>,
  { job, read, process }: DueItems<T>,
): Promise<void> {
  for (const piece of await read(ONCE_LIMIT, 0)) await isProcessed(log, job, () => process(piece))
}

/** Column `turn`: the number of a row among those of its account. */
export function turnOf(order: string) {
  return sql<number>`row_number() over (partition by tenant order by ${sql.ref(order)})`.as('turn')
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

/** Transactions of one run in turns. The rest follows in the next run, because a process waits for jobs before it ends. */
const TURNS = 400

/** Work that waits for each account. */
export interface AccountTurns {
  /** Name of the job in log lines. */
  readonly job: string
  /** Accounts with waiting work. */
  accounts(db: Db): Promise<readonly string[]>
  /** Does the next part of the account's work in one transaction. */
  step(db: Db, tenant: string): Promise<void>
  /** After the commit of a step. */
  done?(tenant: string): void
  /** What the transaction locks. */
  readonly alone?: WriteScope['alone']
}

/**
 * Gives each account one transaction, then the next account, so that much work of one account delays no other. An
 * account whose step failed gets no further turn in this run. Several processes may run this at the same time.
 */
export async function inTurns(
  database: Database,
  { log }: Pick<Services, 'log'>,
  { job, accounts, step, done, alone }: AccountTurns,
): Promise<void> {
  const failed = new Set<string>()
  for (let turns = 0; turns < TURNS;) {
    const tenants = (await accounts(database.reads)).filter((tenant) => !failed.has(tenant))
    if (tenants.length === 0) return
    for (const holder of tenants) {
      if (turns++ >= TURNS) return
      try {
        await database.write((db) => step(db, holder), { ...(alone && { alone }), holder })
        done?.(holder)
      } catch (error) {
        failed.add(holder)
        logJobFailure(log, error, job)
      }
      await yieldToEventLoop()
    }
  }
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
