import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sealAudit, verifyAudit } from '../../../../cloud/platform/accounts/audit-chain.ts'
import { deletedBeforeMs, parseKeepDays, type KeepDays } from '../../../../cloud/platform/foundation/config.ts'
import type { Schema } from '../../../../cloud/platform/persistence/schema.ts'
import { Retention } from '../../../../cloud/service/retention/apply-retention.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { guardPlans } from '../../../support/plan-guard.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'

const DAY_MS = 86_400_000

/** Statements that may read whole tables, each with the reason. */
const MAY_READ_ALL: readonly (readonly [RegExp, string])[] = [
  [/^SCAN position_offset: /, 'has one row'],
  [/^SCAN (store|agent|audit_head): select "\w+" from "\w+" limit \d+$/, 'the next owners of rows, each by its key'],
  [/^(SCAN|SEARCH) store_closing: /, 'a store has one a day, and keeps its last one'],
  [/^SCAN operator: /, 'a store has a limit of operators'],
]

describe('the periods of retention', () => {
  it('of bookkeeping begin at the end of the year', () => {
    const at = (now: string) => new Date(deletedBeforeMs({}, 'purchases', Date.parse(now))).toISOString()
    expect(at('2034-12-31T12:00:00Z')).toBe('2025-12-31T00:00:00.000Z')
    expect(at('2035-01-01T00:00:00Z')).toBe('2026-12-31T00:00:00.000Z')
  })

  it('are read from text, and a wrong one is named', () => {
    expect(parseKeepDays('purchases=3653, chats=14')).toEqual({ value: { purchases: 3_653, chats: 14 } })
    expect(parseKeepDays('purchase=3653')).toEqual({
      fault: expect.stringContaining('does not know "purchase": use purchases, closings'),
    })
    expect(parseKeepDays('purchases=1')).toEqual({
      fault: 'needs a whole number of days from 30 to 36500 for purchases, not "1"',
    })
    expect(parseKeepDays('ledger=15')).toEqual({ fault: expect.stringContaining('from 1 to 14 for ledger') })
  })
})

onEveryDatabase('retention', (kind) => {
  let shop: Shop
  let purchaseId: string
  beforeEach(async () => {
    shop = await openShop(kind)
    const { storeId } = shop
    const item = await shop.newItem(shop.products[0])
    const bought = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
    purchaseId = bought.transactionId
    await shop.ok('submitClickCollectOrder', {
      storeId,
      userId: 'shopper-1',
      note: 'bitte klingeln',
      items: [{ productId: shop.products[1].productId, quantity: 1 }],
    })
    await shop.ok('recordEngagement', { type: 'follow', storeId, userId: 'shopper-1' })
    await shop.ok('registerPushSubscription', { kind: 'https', endpoint: 'https://push.example/', userId: 'shopper-1' })
    await shop.ok('updateItemStatus', { storeId, epc: item.epc, itemStatus: 'exception_hold', reason: 'x' })
    const agent = await enrolTestAgent(shop)
    await agent.report([agent.row({ atMs: now() }), agent.row({ atMs: now() })])
    await sealAudit(shop.cloud.db.database, now() + 60_000)
  })
  afterEach(() => shop.stop())

  const now = () => shop.cloud.platform.clock.wall()
  /** Runs retention once, some days from now. */
  const apply = (days: number, keepDays: KeepDays = {}) => {
    const clock = { ...shop.cloud.platform.clock, wall: () => now() + days * DAY_MS }
    const platform = { ...shop.cloud.platform, clock }
    const log = { info: () => undefined, warn: () => undefined, error: (f: unknown) => void shop.cloud.errors.push(f) }
    return new Retention({ database: shop.cloud.db.database, platform, log, keepDays }).apply()
  }
  const count = async (table: keyof Schema) =>
    (await shop.cloud.db.database.reads.selectFrom(table).selectAll().execute()).length
  const counts = async (...tables: (keyof Schema)[]) => Promise.all(tables.map(count))

  it('deletes nothing within the periods', async () => {
    const tables = ['purchase', 'pickup_order', 'audit_entry', 'item_move', 'journal_row', 'push_subscription'] as const
    const before = await counts(...tables)
    expect(Math.min(...before)).toBeGreaterThan(0)
    await apply(364)
    expect(await counts(...tables)).toEqual(before)
    expect(shop.cloud.errors).toEqual([])
  })

  if (kind === 'sqlite')
    it('finds what is old by an index', async () => {
      const plans = guardPlans()
      await apply(364)
      expect(plans.slowStatements(MAY_READ_ALL)).toEqual([])
    })

  it('deletes reports, moves and push subscriptions after a year, and customers after three', async () => {
    await apply(366)
    expect(await counts('item_move', 'journal_row', 'push_subscription', 'protection_event')).toEqual([0, 0, 0, 0])
    expect(await counts('follower', 'loyalty_member', 'purchase')).toEqual([1, 1, 1])
    await apply(1_097)
    expect(await counts('follower', 'loyalty_member', 'loyalty_entry', 'shopping_session')).toEqual([0, 0, 0, 0])
    const months = await shop.cloud.db.database.reads.selectFrom('loyalty_month').selectAll().execute()
    expect(months.filter((row) => row.entries !== 0 || row.amount !== 0)).toEqual([])
    const { receipt } = await shop.ok('fetchPurchase', { transactionId: purchaseId })
    expect(receipt).toMatchObject({ status: 'SUCCESS', userId: expect.stringMatching(/^anon_/) })
    const order = await shop.cloud.db.database.reads.selectFrom('pickup_order').selectAll().executeTakeFirstOrThrow()
    expect(order).toMatchObject({ user_id: expect.stringMatching(/^anon_/), note: null })
    await apply(1_098)
    const again = await shop.ok('fetchPurchase', { transactionId: purchaseId })
    expect(again.receipt.userId).toBe(receipt.userId)
    expect(shop.cloud.errors).toEqual([])
  })

  it('deletes purchases with all their rows after eight years, and keeps open orders', async () => {
    await apply(9 * 366)
    const tables = ['purchase', 'purchase_line', 'purchase_unit', 'payment', 'refund', 'unit_right'] as const
    expect(await counts(...tables)).toEqual([0, 0, 0, 0, 0, 0])
    expect(await count('pickup_order')).toBe(1)
    await shop.cloud.db.database.write((db) => db.updateTable('pickup_order').set({ expires_ms: null }).execute())
    await apply(9 * 366)
    expect(await count('pickup_order')).toBe(0)
    expect((await shop.call('fetchPurchase', { transactionId: purchaseId })).status).toBe(404)
    expect(shop.cloud.errors).toEqual([])
  })

  it('shortens a period by the setting', async () => {
    await apply(800, { purchases: 30 })
    expect(await count('purchase')).toBe(0)
  })

  it('prunes the audit log, whose chain still verifies and shows a removal that retention did not make', async () => {
    const { database } = shop.cloud.db
    const before = await count('audit_entry')
    const { entries } = (await verifyAudit(database.reads)).chains.find((chain) => chain.entries > 5) ?? { entries: 0 }
    await apply(12 * 366)
    expect(await count('audit_entry')).toBeLessThan(before)
    await sealAudit(database, now() + 13 * 366 * DAY_MS)
    const { chains } = await verifyAudit(database.reads)
    expect(chains.filter((chain) => chain.broken)).toEqual([])
    const pruned = chains.find((chain) => chain.pruned > 0)
    expect(pruned).toMatchObject({ pruned: entries - 1, entries: entries + 1 })
    const log = await shop.ok('fetchAuditLog')
    expect(log.entries.at(-1)).toMatchObject({ actor: 'retention', operation: 'pruneAuditLog' })
    await database.write((db) => db.deleteFrom('audit_entry').where('operation', '=', 'pruneAuditLog').execute())
    await database.write((db) =>
      db
        .updateTable('audit_head')
        .set({ seq: entries })
        .where('seq', '=', entries + 1)
        .execute(),
    )
    expect((await verifyAudit(database.reads)).chains.find((chain) => chain.broken)?.broken?.why).toMatch(
      /no entry records that retention deleted them/,
    )
  })

  it('publishes a new policy once when the days of the ledgers change', async () => {
    const version = async () =>
      (await shop.cloud.db.database.reads.selectFrom('store').select('document_version').executeTakeFirstOrThrow())
        .document_version
    const before = await version()
    await apply(0)
    expect(await version()).toBe(before)
    await apply(0, { ledger: 3 })
    await apply(0, { ledger: 3 })
    expect(await version()).toBe(before + 1)
    await apply(0)
    expect(await version()).toBe(before + 2)
  })
})
