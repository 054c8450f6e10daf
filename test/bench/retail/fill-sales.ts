import { assert } from '../../../policy/assert.ts'
import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import { dayOf, addToDay } from '../../../cloud/shop/analytics/store-days.ts'
import type { Tenant } from '../../../cloud/platform/foundation/caller.ts'
import type { Database } from '../../../cloud/platform/persistence/database.ts'
import type { Row } from '../../../cloud/platform/persistence/schema.ts'

/** Number of lines per purchase. */
export const LINES_EACH = 2
/** Number of days of the purchases; the last day is today. */
export const DAYS = 365
/** Maximum purchases per transaction, all of the same day. */
const AT_ONCE = 500
const DAY_MS = 86_400_000
/** Number of purchases between two lines of progress. */
const REPORT_EVERY = 50_000

/**
 * Inserts paid purchases of the past year and their daily sums, as checkouts would. Writes directly to the database,
 * because a million checkouts would take longer than the bench.
 */
export async function fillSales(
  database: Database,
  tenant: Tenant,
  count: number,
  platform: Platform,
  onProgress: (done: number) => void,
): Promise<{ storeId: string; from: string; to: string }> {
  const store = await database.reads
    .selectFrom('store')
    .selectAll()
    .where('tenant', '=', tenant)
    .where('security_tag_mode', '=', 'rfid')
    .executeTakeFirst()
  assert(store, 'the sandbox has no store with RFID')
  const nowMs = platform.clock.wall()
  const perDay = Math.ceil(count / DAYS)
  for (let done = 0; done < count;) {
    const day = Math.floor(done / perDay)
    const some = Math.min(AT_ONCE, count - done, (day + 1) * perDay - done)
    await fillSome(database, store, some, nowMs - (DAYS - 1 - day) * DAY_MS, platform)
    done += some
    if (Math.floor(done / REPORT_EVERY) > Math.floor((done - some) / REPORT_EVERY)) onProgress(done)
  }
  return { storeId: store.store_id, from: dayOf(nowMs - (DAYS - 1) * DAY_MS), to: dayOf(nowMs) }
}

async function fillSome(
  database: Database,
  store: Row<'store'>,
  count: number,
  completedMs: number,
  platform: Platform,
): Promise<void> {
  const of = { tenant: store.tenant, store_id: store.store_id }
  const ids = Array.from({ length: count }, () => newId('pur', platform))
  const lineCent = 1_999
  await database.write(async (db) => {
    const purchase = {
      ...of,
      session_id: 'ses_bench',
      user_id: null,
      checkout_session_id: null,
      status: 'SUCCESS',
      currency: 'EUR',
      total_cent: LINES_EACH * lineCent,
      value_cent: LINES_EACH * lineCent,
      security_tag_mode: 'none',
      price_origin: 'server',
      created_ms: completedMs,
      completed_ms: completedMs,
      rev: 2,
    }
    await db
      .insertInto('purchase')
      .values(ids.map((purchaseId) => ({ ...purchase, purchase_id: purchaseId })))
      .execute()
    const line = {
      name: 'Haferdrink Waldhain 500 g',
      ean: '4012345678901',
      price_cent: lineCent,
      quantity: 1,
      vat: 19,
      price_origin: 'server',
      tagged: 0,
      came_back: 0,
      tenant: of.tenant,
    }
    for (let no = 0; no < LINES_EACH; no++) {
      await db
        .insertInto('purchase_line')
        .values(
          ids.map((purchaseId) => ({ ...line, line_id: newId('lin', platform), purchase_id: purchaseId, line_no: no })),
        )
        .execute()
    }
    await addToDay(db, of, dayOf(completedMs), {
      completed_checkouts: count,
      revenue_cent: count * LINES_EACH * lineCent,
      items_scanned: count * LINES_EACH,
      receipts: count,
    })
  })
}
