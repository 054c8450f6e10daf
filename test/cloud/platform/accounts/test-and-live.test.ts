import { sql } from 'kysely'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { sealAudit } from '../../../../cloud/platform/accounts/audit-chain.ts'
import { OPERATION_TABLE } from '../../../../cloud/service/operation-table.ts'
import type { Db } from '../../../../cloud/platform/persistence/database.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { until } from '../../../support/receiver.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent } from '../../../support/test-agent.ts'

/** Tables that have no rows in this test, with the reason for each. */
const EMPTY_HERE: Record<string, string> = {
  payment: 'made in live mode only; the sandbox asks no provider',
  integration_connection: 'made in live mode only; the sandbox asks no system and keeps no credentials',
  integration_pull: 'as integration_connection',
  erp_record: 'as integration_connection',
  listing_refresh: 'made only if a product is sold in more stores than one transaction writes',
  item_refresh: 'made when a product with tags changes, and a job empties it',
  token_revocation: 'made only if more tokens end than one transaction revokes',
  stock_reservation: 'made by open baskets with products that have a stock level',
  agent_outage: 'made when an agent was silent for minutes',
  image_room: 'made when a picture is uploaded',
  staff_notice: 'made only while a browser gets notices about alarms',
  push_delivery: 'made in live mode only; the sandbox logs each notice',
}

/**
 * Fills the test side of an account and then moves all rows of all tables to the live side. A test key must neither
 * see nor change them.
 */
onEveryDatabase('live data', (kind) => {
  let shop: Shop
  let tables: string[]
  let live: string
  /** Live ids by column, such as `store_id`. */
  const ids = new Map<string, string[]>()

  beforeAll(async () => {
    shop = await openShop(kind, {
      outgoing: { send: async () => ({ status: 200, headers: {}, body: new Uint8Array(), isCut: false }) },
    })
    await fill(shop)
    await shop.ok('createSetupCode', { storeId: shop.storeId })
    await shop.ok('updateAccountSettings', { acceptUpc: true })
    const till = { storeId: shop.storeId, tillId: 'till-9' }
    const lines = [{ name: 'Schirm', quantity: 1, priceUnit: 990, vat: 19 }]
    await shop.ok('recordSales', {
      ...till,
      tillId: undefined,
      sales: [{ saleId: '1', occurredAt: '2026-11-20T09:00:00Z', lines }],
    })
    const { epc } = await shop.newItem(shop.products[0])
    await shop.ok('recordReturns', {
      storeId: shop.storeId,
      returns: [
        { returnId: '1', saleId: 'later' },
        { returnId: '2', epcs: [epc] },
      ],
    })
    await shop.ok('revokeTill', till)
    await allDelivered()
    live = await shop.cloud.key('secret', 'live')
    const { database } = shop.cloud.db
    tables = await tablesWith(database.reads, 'tenant', kind)
    for (const table of tables)
      await database.write((db) =>
        sql`UPDATE ${sql.table(table)} SET tenant = replace(tenant, '.test', '.live')`.execute(db),
      )
    // The sandbox stores no offers.
    await shop.cloud.ok(live, 'createOffer', {
      storeIds: [shop.storeId],
      title: 'Herbst',
      validFrom: '2020-01-01T00:00:00Z',
      validTo: '2099-01-01T00:00:00Z',
      products: [{ name: 'Schirm', price: 9.99 }],
    })
    // Also seals the new audit entry, as at the end of fill().
    await sealAudit(database, shop.cloud.platform.clock.wall() + 60_000)
    await allDelivered()
    // The test seals entries itself, so that no job changes rows during the comparison.
    await sealAudit(shop.cloud.db.database, shop.cloud.platform.clock.wall() + 60_000)
    for (const table of tables) {
      for (const row of await rowsOf(database.reads, table)) {
        for (const [column, value] of Object.entries(row)) {
          if (typeof value === 'string' && /(_id|^nonce|^epc|^tag_uid|^ean|^cti)$/.test(column))
            ids.set(column, [...new Set([...(ids.get(column) ?? []), value])])
        }
      }
    }
  })
  afterAll(() => shop.stop())

  it('covers every table with a tenant', async () => {
    expect(tables.length).toBeGreaterThan(12)
    for (const table of tables) {
      const rows = await rowsOf(shop.cloud.db.database.reads, table)
      expect([table, rows.length > 0 || table in EMPTY_HERE]).toEqual([table, true])
      expect([table, rows.filter((row) => String(row['tenant']).endsWith('.test'))]).toEqual([table, []])
    }
  })

  it('is neither shown nor changed by any operation with a test key', async () => {
    const before = await dump()
    const seen = await walk([shop.key, await shop.cloud.key('publishable')])
    expect(seen.filter(({ status, shown }) => status >= 500 || shown.length > 0)).toEqual([])
    expect(await dump()).toEqual(before)
    for (const storeId of ids.get('store_id') ?? [])
      expect((await shop.call('fetchStore', { storeId })).status).toBe(404)
  })

  it('is shown to a live key by the same requests', async () => {
    const seen = await walk([live])
    const showing = new Set(seen.filter(({ shown }) => shown.length > 0).map(({ operation }) => operation))
    expect([...showing]).toEqual(
      expect.arrayContaining([
        'fetchStores',
        'fetchProducts',
        'fetchDevices',
        'fetchPurchase',
        'fetchProtectionEvents',
        'fetchOperators',
        'fetchRegistrations',
        'fetchAuditLog',
        'updateClickCollectStatus',
        'getStoreLoyaltyPrograms',
        'fetchWebhooks',
        'fetchWebhookDeliveries',
        'fetchWebhookEvents',
      ]),
    )
  })

  /**
   * Calls every operation with these keys and live ids. Returns the live ids that a response contains although the
   * request does not.
   */
  async function walk(
    keys: readonly string[],
  ): Promise<{ operation: string; request: Json; status: number; shown: string[] }[]> {
    // Ids that both sides of an account share.
    const liveIds = [...ids]
      .filter(([column]) => column.endsWith('_id') && !['account_id', 'user_id', 'tag_id'].includes(column))
      .flatMap(([, values]) => values)
    const seen = []
    for (const operation of OPERATION_TABLE.values()) {
      if (
        operation.callers.includes('anyone') ||
        operation.callers.every((caller) => caller === 'admin' || caller === 'agent')
      )
        continue
      for (const request of requestsFor(operation.example)) {
        for (const key of keys) {
          const { status, text } = await shop.cloud.call(key, operation.name, request)
          const sent = JSON.stringify(request)
          seen.push({
            operation: operation.name,
            request,
            status,
            shown: liveIds.filter((id) => text.includes(`"${id}"`) && !sent.includes(id)),
          })
        }
      }
    }
    return seen
  }

  /** Waits for pending deliveries, because they would change rows later. */
  function allDelivered(): Promise<void> {
    const { reads } = shop.cloud.db.database
    return until('every event to be delivered', async () => {
      const unplanned = await reads.selectFrom('outbox_event').select('event_id').where('seq', 'is', null).execute()
      const pending = await reads
        .selectFrom('webhook_delivery')
        .select('delivery_id')
        .where('status', '=', 'pending')
        .execute()
      return unplanned.length + pending.length === 0
    })
  }

  async function dump(): Promise<Json> {
    const { reads } = shop.cloud.db.database
    // Excludes rows that test keys create on the test side.
    const rows = await Promise.all(
      tables.map(async (table) => [
        table,
        (await rowsOf(reads, table))
          .filter((row) => String(row['tenant']).endsWith('.live'))
          .map((row) => JSON.stringify(row))
          .sort(),
      ]),
    )
    return Object.fromEntries(rows)
  }

  /** The example of an operation with the first and the last live id of each kind. */
  function requestsFor(example: Json): Json[] {
    const columns: Record<string, string> = {
      storeId: 'store_id',
      productId: 'product_id',
      deviceId: 'device_id',
      operatorId: 'operator_id',
      sessionId: 'session_id',
      purchaseId: 'purchase_id',
      transactionId: 'purchase_id',
      registrationId: 'registration_id',
      agentId: 'agent_id',
      replayProtectedNonce: 'nonce',
      epc: 'epc',
      tagUid: 'tag_uid',
      ean: 'ean',
      itemLineId: 'line_id',
      requestId: 'request_id',
      offerId: 'offer_id',
      orderId: 'order_id',
      programId: 'program_id',
      webhookId: 'webhook_id',
      deliveryId: 'delivery_id',
      groupId: 'group_id',
      exceptionId: 'exception_id',
      eventId: 'event_id',
      zoneId: 'zone_id',
      redemptionId: 'redemption_id',
      subscriptionId: 'subscription_id',
      recallId: 'recall_id',
    }
    return [0, -1].map((at) =>
      Object.fromEntries(
        Object.entries(example as Record<string, Json>).map(([name, value]) => [
          name,
          ids.get(columns[name] ?? '')?.at(at) ?? value,
        ]),
      ),
    )
  }
})

async function fill(shop: Shop): Promise<void> {
  await shop.ok('registerWebhook', { url: 'https://receiver.example/', events: ['*'], storeId: shop.storeId })
  const product = shop.products[0]
  const { epc } = await shop.newItem(product)
  const purchase = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
  await shop.ok('registerPushSubscription', {
    storeId: shop.storeId,
    kind: 'https',
    endpoint: 'https://receiver.example/push',
  })
  await shop.ok('generateReceiptQR', { purchaseId: purchase.transactionId })
  const grant = await shop.ok(
    'verifyProtectedItem',
    {
      deviceId: shop.devices.self_checkout_detacher,
      protectionAction: 'detach_hard_tag',
      epc,
      purchaseId: purchase.transactionId,
    },
    { 'idempotency-key': 'k' },
  )
  await shop.ok('redeemProtectionAuthorization', {
    authorizationToken: grant.authorizationToken,
    deviceId: shop.devices.self_checkout_detacher,
    redemptionId: 'redemption-1',
    outcome: 'confirmed',
  })
  const stolen = await shop.newItem(product)
  await shop.ok('verifyProtectedItem', {
    deviceId: shop.devices.exit_gate,
    protectionAction: 'authorize_exit',
    epc: stolen.epc,
  })
  const alarm = {
    type: 'protection.exception.raised',
    eventId: 'evt-alarm',
    occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
    storeId: shop.storeId,
    reason: 'gate_alarm',
  }
  await shop.ok('reportProtectionEvents', { events: [alarm] })
  await shop.ok('disposeAlarm', { eventId: 'evt-alarm', disposition: 'phantom', operatorId: 'op-1' })
  await shop.ok('registerOperator', { storeId: shop.storeId, name: 'Frau Petersen' })
  await enrolTestAgent(shop)
  await shop.ok('configurePSP', {
    storeId: shop.storeId,
    provider: 'custom',
    config: { baseUrl: 'https://psp.example', webhookSecret: 'a-secret-of-their-own' },
  })
  await shop.ok('refundPayment', { purchaseId: purchase.transactionId, amount: 1 })
  await shop.ok('submitClickCollectOrder', {
    storeId: shop.storeId,
    userId: 'shopper-1',
    items: [{ productId: shop.products[1].productId, quantity: 1 }],
  })
  await shop.ok('submitStoreRegistration', {
    companyName: 'Deichgold GmbH',
    tradingName: 'Deichgold',
    address: { street: 'Kai 1', city: 'Kiel', zip: '24103', country: 'DE' },
  })
  const { offers } = await shop.ok('getManagerOffers')
  await shop.ok('recordEngagement', { type: 'follow', storeId: shop.storeId, userId: 'shopper-1' })
  await shop.ok('recordEngagement', {
    type: 'offer_favorite',
    storeId: shop.storeId,
    userId: 'shopper-1',
    offerId: offers[0].id,
  })
  const { zoneId } = await shop.ok('createZone', { storeId: shop.storeId, name: 'Herren' })
  await shop.ok('requestAssistance', { zoneId, message: 'Hallo?', userId: 'shopper-1' })
  await shop.ok('recallProducts', { storeIds: [shop.storeId], ean: shop.products[1].ean, reason: 'Splitter' })
  await shop.ok('closeStoreDay', { storeId: shop.storeId })
  // The cancelled purchase raises an exception, because its goods were released.
  await shop.call('markPurchaseCancelled', { purchaseId: purchase.transactionId })
  // The test seals entries itself, so that no job changes rows during the comparison.
  await sealAudit(shop.cloud.db.database, shop.cloud.platform.clock.wall() + 60_000)
}

async function tablesWith(db: Db, column: string, kind: string): Promise<string[]> {
  const names =
    kind === 'sqlite'
      ? sql<{
          name: string
        }>`SELECT m.name AS name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = ${column} ORDER BY m.name`
      : sql<{
          name: string
        }>`SELECT table_name AS name FROM information_schema.columns WHERE table_schema = 'public' AND column_name = ${column} ORDER BY table_name`
  return (await names.execute(db)).rows.map((row) => row.name)
}

async function rowsOf(db: Db, table: string): Promise<Record<string, unknown>[]> {
  return (
    await sql<
      Record<string, unknown>
    >`SELECT * FROM ${sql.table(table)} WHERE tenant LIKE '%.test' OR tenant LIKE '%.live'`.execute(db)
  ).rows
}
