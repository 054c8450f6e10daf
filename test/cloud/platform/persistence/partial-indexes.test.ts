import Sqlite from 'better-sqlite3'
import { Kysely, SqliteDialect } from 'kysely'
import { expect, it } from 'vitest'
import { fetchAuditLog } from '../../../../cloud/platform/accounts/audit-operations.ts'
import type { Call } from '../../../../cloud/platform/operations/operation.ts'
import { openExceptions } from '../../../../cloud/protection/agents/watch/incidents.ts'
import { newestMoveOfEach, newestMovesByOthers } from '../../../../cloud/protection/items/item-moves.ts'
import { receiptOfAlarm } from '../../../../cloud/protection/records/alarm-receipt.ts'
import { acknowledgeAlarm } from '../../../../cloud/protection/records/alarm-queries.ts'
import { eventsAfter, newestEvents } from '../../../../cloud/protection/records/event-operations.ts'
import { fetchPurchaseHistory, salesOfTills } from '../../../../cloud/sales/checkout/history-operations.ts'
import type { IngestCall } from '../../../../cloud/protection/agents/journal/apply-rows.ts'
import { retryUnapplied } from '../../../../cloud/protection/agents/journal/retry-unapplied.ts'
import { retryEvidenceOfReceipt } from '../../../../cloud/protection/receipt-home/receipt-rights.ts'
import { movesAfter } from '../../../../cloud/sales/epcis/read-events.ts'
import { replaceConfig } from '../../../../cloud/sales/payments/queries.ts'
import { salesOfTill } from '../../../../cloud/sales/tills/revoke-till.ts'
import { goodsOfRequests } from '../../../../cloud/shop/assistance/goods.ts'
import { deleteOpenReservations } from '../../../../cloud/shop/pickup-orders/queries.ts'
import { listSubscriptions } from '../../../../cloud/shop/push/subscriptions.ts'
import { countOpen } from '../../../../cloud/shop/assistance/queries.ts'
import { countGroups } from '../../../../cloud/shop/offers/queries.ts'
import { findEarned } from '../../../../cloud/shop/loyalty/queries.ts'
import type { Db } from '../../../../cloud/platform/persistence/database.ts'
import type { Row, Schema } from '../../../../cloud/platform/persistence/schema.ts'
import { needsSpotCheck } from '../../../../cloud/sales/checkout/approval.ts'
import { bringForward, lease } from '../../../../cloud/platform/webhooks/lease.ts'
import { dropPending } from '../../../../cloud/platform/webhooks/queries.ts'
import { newDatabase } from '../../../support/databases.ts'
import { seededRandom } from '../../../verification/simulation/virtual/virtual-platform.ts'

const PRODUCT = {
  productId: 'prd',
  ean: '4012345678901',
  name: 'Jacke',
  brand: null,
  category: null,
  imageUrl: null,
  priceCent: 1,
}
const CONFIG: Row<'psp_config'> = {
  config_id: 'c',
  tenant: 't',
  store_id: 'st_1',
  provider: 'custom',
  sealed: '',
  is_current: 1,
  created_ms: 1,
}
const REQUEST = {
  request_id: 'r',
  reason: 'manual_assistance_required',
  subject: 'dev_1 E280',
  purchase_id: null,
} as Row<'assistance_request'>
const ALARM = { occurredMs: 1, item: undefined, product: PRODUCT }

/**
 * SQLite uses a partial index only if the query text contains the index's condition. With a parameter it reads all
 * rows.
 */
it('queries for waiting rows read a partial index, not all rows', async () => {
  const made = await newDatabase('sqlite')
  await made.database.close()
  if (!('file' in made.location)) throw new Error('the database is not a file')
  const file = new Sqlite(made.location.file)
  const queries: string[] = []
  const db = new Kysely<Schema>({
    dialect: new SqliteDialect({ database: file }),
    log: ({ query }) => void queries.push(query.sql),
  }) as unknown as Db
  const indexesOf = async (work: () => Promise<unknown>): Promise<string> => {
    queries.length = 0
    // The tables are empty, so the results do not matter.
    await work().catch(() => undefined)
    return queries
      .flatMap((sql) =>
        file
          .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
          .all(...Array.from({ length: sql.split('?').length - 1 }, () => 1)),
      )
      .map(({ detail }) => detail)
      .join('\n')
  }
  expect(await indexesOf(() => lease(db, 'wh_1', 'l', 10, 0))).toContain(
    'webhook_delivery_pending (webhook_id=? AND due_ms<?)',
  )
  expect(await indexesOf(() => openExceptions(db))).toContain('protection_exception_watched (kind=?)')
  expect(await indexesOf(() => bringForward(db, 0))).toContain('webhook_delivery_pending')
  expect(await indexesOf(() => dropPending(db, 'wh_1', 0))).toContain('webhook_delivery_pending')
  expect(await indexesOf(() => findEarned(db, 'prg_1', 't_1'))).toContain('loyalty_earned_once')
  expect(await indexesOf(() => countOpen(db, 'st_1', 'manual_assistance_required'))).toContain(
    'assistance_request_open',
  )
  const moves = await indexesOf(() => newestMovesByOthers(db, ['itm_1', 'itm_2'], { storeId: 'st_1' }))
  expect(moves).toContain('item_move_by_others (item_id=? AND store_id=?)')
  expect(moves).not.toContain('CORRELATED')
  const alarm = { storeId: 'st_1', eventId: 'e', by: 'op', atMs: 1 }
  expect(await indexesOf(() => acknowledgeAlarm(db, alarm))).toContain('protection_exception_by_event')
  expect(await indexesOf(() => receiptOfAlarm(db, 'st_1', ALARM))).toContain(
    'purchase_line_by_ean (tenant=? AND ean=? AND purchase_id=?)',
  )
  const receipt = { services: { authority: { cloudGeneration: 2 } }, db } as unknown as Call
  const sold = { store_id: 'st_1', till: null }
  expect(await indexesOf(() => retryEvidenceOfReceipt(receipt, sold, 'cti'))).toContain('journal_row_about (about=?)')
  const shopper = {
    session: { session_id: 's', tenant: 't', store_id: 'st_1', spot_check_due: 0 },
    userId: 'u',
  } as Parameters<typeof needsSpotCheck>[2]
  expect(
    await indexesOf(() =>
      needsSpotCheck(db, { policy: '{"spotCheckRate":0.000001}' } as Parameters<typeof needsSpotCheck>[1], shopper, {
        random: seededRandom(1),
        nowMs: 0,
      }),
    ),
  ).toContain('session_by_spot_check')
  file.prepare('PRAGMA foreign_keys = OFF').run()
  const columns = file
    .prepare<[], { name: string }>(
      'SELECT name FROM pragma_table_info(\'agent\') WHERE "notnull" = 1 AND dflt_value IS NULL',
    )
    .pluck()
    .all() as unknown as string[]
  file
    .prepare(
      `INSERT INTO agent (${columns.join(', ')}) VALUES (${columns.map((name) => (name === 'agent_id' ? "'a'" : '0')).join(', ')})`,
    )
    .run()
  expect(
    await indexesOf(() => retryUnapplied('a', async (work) => void (await work({ db, nowMs: 0 } as IngestCall)))),
  ).toContain('journal_row_unapplied')
  file.close()
  await made.remove()
})

it('filters of lists read an index with the filter, and no rows of other accounts', async () => {
  const made = await newDatabase('sqlite')
  await made.database.close()
  if (!('file' in made.location)) throw new Error('the database is not a file')
  const file = new Sqlite(made.location.file)
  const plans: string[] = []
  const db = new Kysely<Schema>({
    dialect: new SqliteDialect({ database: file }),
    log: ({ query: { sql } }) => {
      const values = Array.from({ length: sql.split('?').length - 1 }, () => 1)
      const plan = file.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...values)
      plans.push(...plan.map(({ detail }) => detail))
    },
  }) as unknown as Db
  const planOf = async (work: () => Promise<unknown>) => {
    plans.length = 0
    await work()
    return plans.join('\n')
  }
  const events = (filter: object) =>
    planOf(() => eventsAfter(db, { storeId: 'st_1', ...filter }, { below: 9, sinceMs: 0 }, { position: 0, id: '' }, 10))
  const active = { tenant: 't', storeIds: ['st_1'], only: 'active' as const, nowMs: 1 }
  expect(await planOf(() => countGroups(db, active))).toContain(
    'offer_by_store (store_id=? AND is_active=? AND valid_to_ms>?)',
  )
  expect(await events({ type: 'a' })).toContain('protection_event_by_type (store_id=? AND type=? AND')
  expect(await events({ deviceId: 'a' })).toContain('protection_event_by_device (store_id=? AND device_id=? AND')
  expect(await events({ purchaseId: 'a' })).toContain('protection_event_by_purchase (store_id=? AND purchase_id=? AND')
  const caller = { kind: 'secret', tenant: 'ten_1', storeIds: null, keyId: 'key_1', package: 'PRIME' }
  const call = { db, caller, nowMs: 1_795_165_200_000 } as unknown as Call
  const history = (filter: object) => planOf(() => fetchPurchaseHistory.run(call, filter as never))
  expect(await history({ ean: '4012345678901' })).toContain(
    'purchase_line_by_ean (tenant=? AND ean=? AND purchase_id>?',
  )
  expect(await history({ totalCent: 5 })).toContain('purchase_by_total (tenant=? AND total_cent=? AND purchase_id>?')
  expect(await history({ day: '2026-11-20' })).toContain('purchase_by_tenant (tenant=? AND purchase_id>? AND')
  // What one account stores must not cost others anything, and few rows of an account must not cost all of it.
  const bySale = await planOf(() => salesOfTill(db, 'st_1', 't1', { storedMs: 0, key: '' }, 20))
  expect(bySale).toBe(
    'SEARCH till_sale USING INDEX till_sale_by_till (store_id=? AND till_id=? AND (stored_ms,sale_key)>(?,?))',
  )
  expect(await planOf(() => deleteOpenReservations(db, ['itm_1']))).not.toMatch(/SCAN|LIST SUBQUERY/)
  expect(await planOf(() => replaceConfig(db, CONFIG).catch(() => {}))).not.toContain('SCAN')
  const subscriptions = await planOf(() => listSubscriptions(db, 't', { storeIds: null, limit: 1 }))
  expect(subscriptions).toContain('push_subscription_by_tenant (tenant=? AND subscription_id>?)')
  expect(await planOf(() => newestMoveOfEach(db, ['itm_1'], { storeId: 'st_1' }))).toContain('item_move_1 (item_id=?)')
  for (const filter of [{}, { deviceId: 'a' }, { purchaseId: 'a' }, { type: 'a' }])
    for (const sinceMs of [0, 5])
      expect(await planOf(() => newestEvents(db, { storeId: 'st_1', ...filter }, sinceMs, 1))).not.toContain(
        'TEMP B-TREE',
      )
  const coded = await planOf(() => salesOfTills(db, 'st_1', { saleId: undefined, receiptCode: 'c' }).execute())
  expect(coded).toContain('receipt_code_1 (store_id=? AND code=?)')
  expect(coded).not.toContain('till_sale_by_till')
  const range = { below: 9, sinceMs: 0 }
  const start = { position: 0, id: '' }
  const moves = (filter: object) => planOf(() => movesAfter(db, { storeId: 'st_1', ...filter }, range, start, 1))
  expect(await moves({ purchaseId: 'p' })).toContain('item_move_by_purchase (purchase_id=?)')
  expect(await moves({})).toContain('item_move_by_position (store_id=?')
  const goods = await planOf(() => goodsOfRequests(db, 't', [REQUEST]))
  expect(goods).not.toMatch(/(protected_item|product) USING INDEX \S+ \(tenant=\?\)/)
  const log = await planOf(() => fetchAuditLog.run(call, { since: '2026-11-20T00:00:00Z' } as never))
  expect(log).toContain('audit_entry_by_tenant (tenant=? AND entry_id>?')
  file.close()
})
