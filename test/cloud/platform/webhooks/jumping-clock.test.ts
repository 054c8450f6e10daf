import { afterEach, beforeEach, expect, it } from 'vitest'
import { ensureConnection, takeLease } from '../../../../cloud/sales/integrations/queries.ts'
import { claimRequest, findStoredResponse } from '../../../../cloud/platform/operations/idempotency.ts'
import type { OutgoingAnswer } from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { startTestCloud, type TestCloud } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { openPaidStore, type PaidStore } from '../../../support/paid-store.ts'
import { stopInVirtualTime, until } from '../../../support/receiver.ts'

const START = Date.parse('2026-11-20T09:00:00Z')
const YEAR_MS = 365 * 86_400_000

inFullSizeOnEveryDatabase('webhooks while the cloud’s clock jumps', (kind) => {
  let cloud: TestCloud
  let key: string
  let platform: VirtualPlatform
  let status: number
  let sent: string[]

  beforeEach(async () => {
    ;[platform, status, sent] = [virtualPlatform({ startMs: START }), 503, []]
    const send = async ({ headers }: { headers: Record<string, string> }): Promise<OutgoingAnswer> => {
      sent.push(headers['webhook-id'] ?? '')
      return { status, headers: {}, body: new Uint8Array(), isCut: false }
    }
    cloud = await startTestCloud(kind, { platform, outgoing: { send } })
    key = await cloud.key('secret')
    await cloud.ok(key, 'registerWebhook', { url: 'https://r.example/', events: ['webhook.test'] })
  })
  afterEach(() => stopInVirtualTime(cloud, platform))

  const putBack = () => platform.setWall(START + platform.clock.elapsed())
  /** Waits for the recorded attempts. */
  const attempts = (count: number) =>
    until(
      `attempt ${count}`,
      async () => (
        await platform.advance(1_000),
        sent.length >= count && (await deliveries())[0]?.endsWith(` ${count}`) === true
      ),
    )
  const deliveries = async (): Promise<string[]> =>
    (await cloud.ok(key, 'fetchWebhookDeliveries')).deliveries.map(
      (each: { status: string; attempts: unknown[] }) => `${each.status} ${each.attempts.length}`,
    )

  it('are not deleted by the jump', async () => {
    await cloud.ok(key, 'sendTestWebhook')
    await attempts(1)
    platform.setWall(START + YEAR_MS)
    await platform.advance(5_000)
    putBack()
    expect(await deliveries()).toHaveLength(1)
    const { events } = await cloud.ok(key, 'fetchWebhookEvents')
    expect(events).toHaveLength(1)
  })

  it('are sent again after a failure during the jump', async () => {
    platform.setWall(START + YEAR_MS)
    await platform.advance(120_000)
    await cloud.ok(key, 'sendTestWebhook')
    await attempts(1)
    putBack()
    status = 200
    await platform.advance(120_000)
    platform.sleep(3_600_000)
    await attempts(2)
    expect(await deliveries()).toEqual(['delivered 2'])
  })
})

inFullSizeOnEveryDatabase('payments while the cloud’s clock jumps', (kind) => {
  let store: PaidStore
  beforeEach(async () => {
    store = await openPaidStore(kind)
  })
  afterEach(() => store.stop())

  /** Sets the clock a year ahead. The returned function corrects the clock. */
  async function yearAhead(): Promise<() => Promise<void>> {
    const { platform } = store
    const right = platform.clock.wall() - platform.clock.elapsed()
    platform.setWall(platform.clock.wall() + YEAR_MS)
    await platform.advance(120_000)
    return async () => {
      platform.setWall(right + platform.clock.elapsed())
      await platform.advance(120_000)
    }
  }

  it('are polled if paid during the jump and the notification was lost', async () => {
    const { psp } = store
    const putBack = await yearAhead()
    const { transactionId } = await store.start()
    const session = await store.sessionOf(transactionId)
    psp.switches.keep = true
    await putBack()
    await psp.end(session, 'paid')
    await store.wait('the money', async () => (await store.statusOf(transactionId)) === 'SUCCESS', 60_000)
  })

  it('are awaited for half an hour despite the jump', async () => {
    const { platform } = store
    const putBack = await yearAhead()
    const { transactionId } = await store.start()
    await putBack()
    platform.sleep(20 * 60_000)
    await platform.advance(1_000)
    expect(await store.statusOf(transactionId)).toBe('PENDING_PAYMENT')
    await store.wait('the end', async () => (await store.statusOf(transactionId)) === 'CANCELLED', 60_000)
  })

  it('are refunded again after an attempt failed during the jump', async () => {
    const { psp } = store
    const { transactionId } = await store.start()
    const session = await store.sessionOf(transactionId)
    await psp.end(session, 'paid')
    await store.wait('the money', async () => (await store.statusOf(transactionId)) === 'SUCCESS')
    const putBack = await yearAhead()
    psp.switches.status = 503
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({ refundStatus: 'pending' })
    psp.switches.status = undefined
    await putBack()
    await store.wait('the refund', () => psp.refunds.some((refund) => refund.sessionId === session), 60_000)
  })
})

inFullSizeOnEveryDatabase('leases of a clock that was ahead', (kind) => {
  let cloud: TestCloud
  const db = () => cloud.db.database
  beforeEach(async () => {
    cloud = await startTestCloud(kind)
  })
  afterEach(() => cloud.stop())

  it('end with the correction: a pending request can be repeated', async () => {
    const request = { tenant: 'tenant_a/live', operation: 'pushSaleToERP', keyHash: 'k', requestHash: 'r' }
    await db().write((tx) => claimRequest(tx, request, START + YEAR_MS))
    expect(await findStoredResponse(db().reads, request, START)).toBeUndefined()
    await db().write((tx) => claimRequest(tx, request, START + 20_000))
    await expect(findStoredResponse(db().reads, request, START)).rejects.toThrow('still running')
  })

  it('end with the correction: a system can be synchronized', async () => {
    const connectionId = 'con_1'
    const key = await cloud.key('secret')
    const [{ storeId }] = (await cloud.ok(key, 'fetchStores')).stores
    const { tenant } = await db().reads.selectFrom('store').select('tenant').executeTakeFirstOrThrow()
    const [row, lease] = [
      { connection_id: connectionId, tenant, store_id: storeId, side: 'erp', system: 'custom' },
      { lease_id: null, lease_until_ms: 0 },
    ]
    await db().write((tx) => ensureConnection(tx, { ...row, ...lease, sealed: null, updated_ms: START }))
    const take = (id: string, nowMs: number) =>
      db().write((tx) => takeLease(tx, connectionId, { id, untilMs: nowMs + 60_000, nowMs }))
    expect(await take('a', START + YEAR_MS)).toBe(true)
    expect(await take('b', START)).toBe(true)
    expect(await take('c', START)).toBe(false)
  })
})
