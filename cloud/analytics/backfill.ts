import type { Database, Db } from '../persistence/database.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import { readLines } from '../purchases/queries.ts'
import { countCompleted } from './count-purchases.ts'
import { dayOf } from './days.ts'
import { addToDay, type OfStore } from './store-days.ts'

const NAME = 'day-counters'
/** Rises when more is to be counted afterwards. */
const VERSION = '1'
/** Purchases counted in one transaction, and sessions read at once. */
const BATCH = 200

/**
 * Counts what happened before there were counters: purchases that were paid and sessions that were opened by then. A session knows
 * how many of its purchases were counted; where more of them stand than that, the oldest were not. What was paid and taken back by
 * then stays uncounted, for nobody wrote down when. Once an installation, before the first answer; begun again after a crash it
 * goes on where it was.
 */
export async function backfillCounters(database: Database): Promise<void> {
  const found = await database.reads
    .selectFrom('installation')
    .select('value')
    .where('name', '=', NAME)
    .executeTakeFirst()
  if (found?.value === VERSION) return
  const stores = await database.reads.selectFrom('store').select('store_id').orderBy('store_id').execute()
  for (const { store_id } of stores) await countPurchases(database, store_id)
  await countSessions(database)
  await database.write(async (db) => {
    const row = { name: NAME, value: VERSION }
    await db
      .insertInto('installation')
      .values(row)
      .onConflict((c) => c.column('name').doUpdateSet({ value: row.value }))
      .execute()
  })
}

async function countPurchases(database: Database, storeId: string): Promise<void> {
  const uncounted = await uncountedOf(database.reads, storeId)
  for (let after: Pick<PurchaseRow, 'completed_ms' | 'purchase_id'> | undefined; uncounted.size > 0;) {
    const from = after
    const page = await database.write(async (db) => {
      const purchases = await paidAfter(db, storeId, from)
      const mine = new Map<string, number>()
      for (const purchase of purchases) {
        const done = mine.get(purchase.session_id) ?? 0
        if (done >= (uncounted.get(purchase.session_id) ?? 0)) continue
        mine.set(purchase.session_id, done + 1)
        await countCompleted(
          { db, nowMs: purchase.completed_ms ?? purchase.created_ms },
          purchase,
          await readLines(db, purchase.purchase_id),
        )
      }
      return { purchases, mine }
    })
    // Only now: a transaction may be tried more than once.
    for (const [sessionId, done] of page.mine) {
      const left = (uncounted.get(sessionId) ?? 0) - done
      if (left > 0) uncounted.set(sessionId, left)
      else uncounted.delete(sessionId)
    }
    after = page.purchases.at(-1)
    if (!after || page.purchases.length < BATCH) return
  }
}

/** By session, how many of its purchases stand and were not counted. One whose refund failed stands again and stays taken off. */
async function uncountedOf(db: Db, storeId: string): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('purchase')
    .innerJoin('shopping_session', 'shopping_session.session_id', 'purchase.session_id')
    .select((eb) => ['purchase.session_id', 'shopping_session.completed', eb.fn.countAll<number>().as('standing')])
    .where('purchase.store_id', '=', storeId)
    .where('completed_ms', 'is not', null)
    .where('status', 'in', ['SUCCESS', 'UNLOADED'])
    .where((eb) => eb.or([eb('refund_status', 'is', null), eb('refund_status', '!=', 'failed')]))
    .groupBy(['purchase.session_id', 'shopping_session.completed'])
    .having((eb) => eb(eb.fn.countAll(), '>', eb.ref('shopping_session.completed')))
    .execute()
  return new Map(rows.map(({ session_id, standing, completed }) => [session_id, Number(standing) - completed]))
}

/** Paid purchases of a store, the oldest first. */
function paidAfter(
  db: Db,
  storeId: string,
  after: Pick<PurchaseRow, 'completed_ms' | 'purchase_id'> | undefined,
): Promise<PurchaseRow[]> {
  const { completed_ms, purchase_id } = { completed_ms: 0, purchase_id: '', ...after }
  return db
    .selectFrom('purchase')
    .selectAll()
    .where('store_id', '=', storeId)
    .where('completed_ms', '>=', completed_ms ?? 0)
    .where((eb) => eb.or([eb('completed_ms', '>', completed_ms), eb('purchase_id', '>', purchase_id)]))
    .orderBy('completed_ms')
    .orderBy('purchase_id')
    .limit(BATCH)
    .execute()
}

/** Each day has at least as many sessions as were opened on it; erased ones stay counted. */
async function countSessions(database: Database): Promise<void> {
  const opened = new Map<string, { of: OfStore; day: string; sessions: number }>()
  for (let after = ''; ;) {
    const page = await database.reads
      .selectFrom('shopping_session')
      .select(['session_id', 'store_id', 'tenant', 'created_ms'])
      .where('session_id', '>', after)
      .orderBy('session_id')
      .limit(BATCH)
      .execute()
    for (const { store_id, tenant, created_ms } of page) {
      const day = dayOf(created_ms)
      const key = `${store_id} ${day}`
      opened.set(key, { of: { store_id, tenant }, day, sessions: (opened.get(key)?.sessions ?? 0) + 1 })
    }
    const last = page.at(-1)
    if (!last || page.length < BATCH) break
    after = last.session_id
  }
  for (const { of, day, sessions } of opened.values()) {
    await database.write(async (db) => {
      const row = await db
        .selectFrom('store_day')
        .select('sessions')
        .where('store_id', '=', of.store_id)
        .where('day', '=', day)
        .executeTakeFirst()
      const missing = sessions - (row?.sessions ?? 0)
      if (missing > 0) await addToDay(db, of, day, { sessions: missing })
    })
  }
}
