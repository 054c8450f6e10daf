import { PostgresAdapter, sql, type DialectAdapter, type RawBuilder } from 'kysely'
import { assert } from '../../../policy/assert.ts'
import { pause, type Timers } from '../../../policy/platform.ts'
import type { Db } from './database.ts'

/**
 * Positions in the lists that callers read again and again for new rows: protection events, item moves and completed
 * purchases. A position is the offset plus the id of the writing transaction.
 *
 * PostgreSQL numbers a transaction at its first write and makes its rows visible at its commit. If transaction 100 is
 * open and 101 is committed, readers list only rows below 100 (`finalBelow`). No transaction can still add a row below
 * 100, so readers miss no row. Numbering by transaction id needs no shared counter row, and writing transactions need
 * no lock.
 *
 * On SQLite one connection writes, and sqlite.ts numbers its transactions. Readers of SQLite need no bound.
 *
 * A restored database, or another PostgreSQL cluster, may count transactions from a lower number. The cloud then raises
 * the offset.
 */
export function commitPosition(db: Db): RawBuilder<number> {
  const offset = OPENED.get(db.getExecutor().adapter)?.offset
  const added = offset === undefined ? sql`(select value from position_offset)` : sql.lit(offset)
  return sql<number>`(${added} + cast(cast(pg_current_xact_id() as text) as bigint))`
}

/** What this process knows about an open PostgreSQL database. */
interface OpenedDatabase {
  /**
   * Changes only while no cloud runs on the database. Statements contain the offset as a literal, because reading it
   * from the table makes inserts 50 % slower.
   */
  readonly offset: number
  /** For waits on open transactions. */
  readonly timers: Timers
}

const OPENED = new WeakMap<DialectAdapter, OpenedDatabase>()

/** Stores offset and timers of an open PostgreSQL database. */
export function rememberDatabase(db: Db, opened: OpenedDatabase): void {
  OPENED.set(db.getExecutor().adapter, opened)
}

/** Larger than every position. */
const NO_BOUND = Number.MAX_SAFE_INTEGER

/** Tables with positions. `storedAt` is the column with the time at which the cloud stored a row. */
const POSITIONED = {
  protection: { table: 'protection_event', position: 'position', storedAt: 'processed_ms' },
  item: { table: 'item_move', position: 'position', storedAt: 'at_ms' },
  checkout: { table: 'purchase', position: 'completed_position', storedAt: 'completed_ms' },
} as const
type Positioned = keyof typeof POSITIONED

const SOURCES = Object.values(POSITIONED)

/**
 * True for transactions of other databases in the same cluster. Such transactions cannot write to this database, so
 * readers do not wait for them.
 */
const IS_ELSEWHERE = sql`exists (
    select from pg_stat_activity a where a.backend_xid = open.id::xid and a.datname <> current_database())
  or exists (
    select from pg_prepared_xacts p where p.transaction = open.id::xid and p.database <> current_database())`

/** Bounds for reading the lists, valid for one point in time. */
interface Frontier {
  /** Rows below this position are final, because each open transaction has this position or a higher one. */
  finalBelow: number
  /** Higher than all committed positions. */
  end: number
}

/** Reads the present frontier. */
async function readFrontier(db: Db): Promise<Frontier> {
  if (!isPostgres(db)) return { finalBelow: NO_BOUND, end: NO_BOUND }
  const { rows } = await sql<Frontier>`
    select o.value + e.id as "end", o.value + coalesce(
      (select min(open.id::text::bigint) from pg_snapshot_xip(now.snapshot) as open(id) where not (${IS_ELSEWHERE})),
      e.id) as "finalBelow"
    from position_offset as o, (select pg_current_snapshot() as snapshot) as now,
      lateral (select pg_snapshot_xmax(now.snapshot)::text::bigint as id) as e`.execute(db)
  const [frontier] = rows
  assert(frontier !== undefined, 'position_offset has no row')
  return frontier
}

/** An open transaction for which readers wait. */
interface OpenTransaction {
  id: number
  /** Process id of the connection; null for a prepared transaction (two-phase commit). */
  pid: number | null
  application: string | null
}

/** The oldest open transaction of this database that has written; undefined on SQLite. */
export async function oldestOpen(db: Db): Promise<OpenTransaction | undefined> {
  if (!isPostgres(db)) return undefined
  const { rows } = await sql<OpenTransaction>`
    select open.id::text::bigint as id, a.pid, a.application_name as application
    from pg_snapshot_xip(pg_current_snapshot()) as open(id) left join pg_stat_activity as a on a.backend_xid = open.id::xid
    where not (${IS_ELSEWHERE}) order by 1 limit 1`.execute(db)
  return rows[0]
}

/** True if committed rows of this store are not final yet, because an older transaction is still open. */
async function isHeldBack(db: Db, storeId: string, { finalBelow, end }: Frontier): Promise<boolean> {
  if (finalBelow >= end) return false
  const found = sql.join(
    SOURCES.map(
      ({ table, position }) =>
        sql`exists (select 1 from ${sql.table(table)} where store_id = ${storeId} and ${sql.ref(position)} >= ${finalBelow} and ${sql.ref(position)} < ${end})`,
    ),
    sql` or `,
  )
  const { rows } = await sql<{ held: boolean }>`select (${found}) as held`.execute(db)
  return rows[0]?.held === true
}

/**
 * Pauses between reads, ms. Transactions usually last milliseconds. The sum of the pauses limits the wait for a slow
 * transaction.
 */
const WAITS_MS = [2, 4, 8, 16, 32, 64, 128, 256]

/**
 * Position below which no transaction can add events of this store. Waits up to half a second for an older running
 * transaction, so that callers see all acknowledged events.
 */
export async function waitForFinalPosition(db: Db, storeId: string): Promise<number> {
  const { end, ...first } = await readFrontier(db)
  let { finalBelow } = first
  const timers = OPENED.get(db.getExecutor().adapter)?.timers
  if (!timers) return finalBelow
  for (const ms of WAITS_MS) {
    if (!(await isHeldBack(db, storeId, { finalBelow, end }))) break
    await pause(timers, ms)
    finalBelow = (await readFrontier(db)).finalBelow
  }
  return finalBelow
}

/** Maximum difference of clocks plus maximum duration of a transaction, ms. */
const DISORDER_MS = 3_600_000

/**
 * First position that can hold a row stored at `sinceMs` or later. Positions and times have only roughly the same
 * order.
 */
export async function positionSince(db: Db, source: Positioned, storeId: string, sinceMs: number): Promise<number> {
  if (sinceMs <= 0) return 0
  const { table, position, storedAt } = POSITIONED[source]
  const time = sql.ref(storedAt)
  const first = sql`(select min(${time}) from ${sql.table(table)} where store_id = ${storeId} and ${time} >= ${sinceMs})`
  const { rows } = await sql<{ start: number | null }>`
    select min(${sql.ref(position)}) as start from ${sql.table(table)}
    where store_id = ${storeId} and ${time} >= ${sinceMs} and ${time} <= ${first} + ${DISORDER_MS}`.execute(db)
  return rows[0]?.start ?? NO_BOUND
}

/**
 * Raises the offset if the next position would be at or below a stored position. Returns the offset. Runs at each
 * start, because the database may have been moved to another cluster. Call it in a transaction that has not written
 * yet: PostgreSQL numbers a transaction at its first write.
 */
export async function raisePositions(db: Db): Promise<number> {
  const highest = await highestPosition(db)
  const known = await db.selectFrom('position_offset').select('value').executeTakeFirst()
  if (known && highest < known.value + (await transactionId(db))) return known.value
  return countFrom(db, highest + 1)
}

/**
 * Raises the offset above every position that the lost database may have issued since the backup. The lost database
 * used fewer than one position per microsecond. The time of the restore in microseconds is therefore higher.
 */
export async function skipLostPositions(db: Db, nowMs: number): Promise<void> {
  await countFrom(db, Math.max((await highestPosition(db)) + 1, Math.floor(nowMs) * 1_000))
}

async function countFrom(db: Db, position: number): Promise<number> {
  const value = position - (await transactionId(db))
  await db
    .insertInto('position_offset')
    .values({ id: 1, value })
    .onConflict((c) => c.column('id').doUpdateSet({ value }))
    .execute()
  return value
}

async function transactionId(db: Db): Promise<number> {
  const { rows } = await sql<{ id: number }>`select cast(cast(pg_current_xact_id() as text) as bigint) as id`.execute(
    db,
  )
  return rows[0]?.id ?? 0
}

/** Reads the last row of each store, because no index orders the rows of all stores. */
async function highestPosition(db: Db): Promise<number> {
  const lasts = sql.join(
    SOURCES.map(
      ({ table, position }) =>
        sql`select (select max(${sql.ref(`t.${position}`)}) from ${sql.table(table)} as t where t.store_id = store.store_id) as position from store`,
    ),
    sql` union all `,
  )
  const { rows } = await sql<{ highest: number | null }>`
    select max(position) as highest from (
      ${lasts} union all select value from position_offset) as positions`.execute(db)
  return rows[0]?.highest ?? 0
}

function isPostgres(db: Db): boolean {
  return db.getExecutor().adapter instanceof PostgresAdapter
}
