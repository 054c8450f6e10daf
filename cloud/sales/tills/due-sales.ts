import { sql, type SqlBool } from 'kysely'
import { newId } from '../../../policy/ids.ts'
import { systemCaller, type Tenant } from '../../platform/foundation/caller.ts'
import { performTask } from '../../platform/operations/perform.ts'
import { accountsDue, processDue } from '../../platform/operations/job-steps.ts'
import type { Services } from '../../platform/operations/operation.ts'
import type { Database, Db } from '../../platform/persistence/database.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import { SALES_KEPT_MS } from './queries.ts'
import { WAIT_FOR_SALE_MS } from './void-sale.ts'
import { voidSale } from './sale-operations.ts'
import { deleteSome } from '../../platform/persistence/delete-some.ts'

/** Open sales that ended, and voids and returns whose sale never came. Several processes may run this at once. */
export async function endDueSales(database: Database, services: Services): Promise<boolean> {
  let isMore = false
  const nowMs = services.platform.clock.wall()
  for (const table of ['till_sale', 'till_return'] as const) {
    const id = table === 'till_sale' ? 'sale_key' : 'return_key'
    const hasMore = await processDue(database, services, {
      job: 'due sales of tills',
      accounts: (db) => accountsDue(db, table, 'due_ms', nowMs),
      read: (db, account, { limit, offset }) =>
        db
          .selectFrom(table)
          .select([`${id} as key`, 'tenant', 'store_id', 'due_ms'])
          .where('tenant', '=', account)
          .where('due_ms', '<=', nowMs)
          .orderBy('due_ms')
          .limit(limit)
          .offset(offset)
          .execute(),
      process: ({ key, tenant, store_id: storeId }) =>
        performTask(
          {
            operation: voidSale,
            caller: systemCaller(tenant as Tenant, 'due sales'),
            requestId: newId('req', services.platform),
          },
          database,
          services,
          async (call) => {
            call.changed(storeId)
            const ended = await call.db
              .updateTable(table)
              .set({ due_ms: null })
              .where(id, '=', key)
              .where('due_ms', '<=', nowMs)
              .returningAll()
              .executeTakeFirst()
            if (!ended || ('state' in ended && ended.state === 'open')) return
            const isVoid = 'state' in ended
            await raiseException(
              { db: call.db, tenant, platform: services.platform, nowMs },
              {
                storeId,
                kind: isVoid ? 'void_without_sale' : 'return_unclear',
                subject: key,
                detail: isVoid
                  ? `the void of sale ${ended.sale_id} waited 7 days for its sale`
                  : 'a return waited 7 days for its sale',
              },
            )
          },
        ),
    })
    isMore ||= hasMore
  }
  return isMore
}

const HOUR_MS = 3_600_000
/** Time for which the sums of an hour are kept, ms: sales of the last day may still arrive. */
const HOURS_KEPT_MS = 48 * HOUR_MS

/** Deletes old sums, codes, returns, and identities of sales whose till may use the number again. */
export async function pruneSales(db: Db, nowMs: number): Promise<number> {
  const beforeMs = nowMs - SALES_KEPT_MS
  const firstHour = Math.floor((nowMs - HOURS_KEPT_MS) / HOUR_MS)
  // What waits for its sale stays. An agent without a clock may have stored it long ago.
  const oldReturns = sql<SqlBool>`stored_ms < ${beforeMs} AND due_ms IS NULL`
  // The time of a sale tells a copy that arrives late from a sale that uses the number again. An agent may have been
  // away for months, and its till may still void the sale.
  const oldSales = sql<SqlBool>`stored_ms < ${beforeMs - WAIT_FOR_SALE_MS} AND due_ms IS NULL AND NOT EXISTS (
    SELECT 1 FROM purchase p WHERE p.purchase_id = till_sale.purchase_id AND p.created_ms >= ${beforeMs})`
  return Math.max(
    await deleteSome(db, 'till_hour', ['store_id', 'till_id', 'hour'], sql`hour < ${firstHour}`),
    await deleteSome(db, 'receipt_code', ['store_id', 'code', 'sale_key'], sql`stored_ms < ${beforeMs}`),
    await deleteSome(db, 'till_return', ['return_key'], oldReturns),
    await deleteSome(db, 'till_sale', ['sale_key'], oldSales),
    await deleteSome(db, 'piece_report', ['item_id', 'report_key'], sql`at_ms < ${beforeMs}`),
  )
}
