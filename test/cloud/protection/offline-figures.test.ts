import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Evidence } from '../../../policy/journal.ts'
import { OFFLINE_KINDS } from '../../../cloud/protection/records/offline-figures.ts'
import { WITHDRAWN } from '../../../cloud/protection/records/exceptions.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { movablePlatform } from '../../support/movable-platform.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../support/test-agent.ts'

const HOUR_MS = 3_600_000

onEveryDatabase('what it cost that agents were offline', (kind) => {
  const { platform, forward } = movablePlatform()
  let shop: Shop
  let agent: TestAgent
  let startMs: number
  const at = (hours: number) => new Date(startMs + hours * HOUR_MS).toISOString()
  const figures = (from: number, to: number): Promise<Json> =>
    shop.ok('fetchOfflineFigures', { storeId: shop.storeId, since: at(from), until: at(to) })

  beforeAll(async () => {
    startMs = platform.clock.wall()
    shop = await openShop(kind, { platform })
    agent = await enrolTestAgent(shop)
    await agent.call('reportDeviceHeartbeat', { deviceId: shop.devices.self_checkout_detacher })
  })
  afterAll(() => shop.stop())

  it('counts the part of each outage that lies in the period', async () => {
    const outages = [
      ['otg_1', 10, 12],
      ['otg_2', 19, 23],
      ['otg_3', 40, null],
    ] as const
    const { tenant } = await shop.cloud.db.database.reads
      .selectFrom('agent')
      .select('tenant')
      .where('agent_id', '=', agent.agentId)
      .executeTakeFirstOrThrow()
    await shop.cloud.db.database.write((db) =>
      db
        .insertInto('agent_outage')
        .values(
          outages.map(([outage_id, from, to]) => ({
            outage_id,
            tenant,
            store_id: shop.storeId,
            agent_id: agent.agentId,
            began_ms: startMs - 100 * HOUR_MS + from * HOUR_MS,
            ended_ms: to === null ? null : startMs - 100 * HOUR_MS + to * HOUR_MS,
          })),
        )
        .execute(),
    )
    const { outages: found } = await figures(-100, -80)
    expect(found).toMatchObject({ count: 2, seconds: 3 * 3_600 })
    expect(found.agents).toMatchObject([{ agentId: agent.agentId, count: 2, seconds: 3 * 3_600, isRunning: false }])
    // It lasts until now.
    expect((await figures(-60, -50)).outages).toMatchObject({ seconds: 10 * 3_600, agents: [{ isRunning: true }] })
    expect((await figures(-200, -100)).outages).toEqual({ count: 0, seconds: 0, agents: [] })
  })

  it('counts decisions that the agent took alone, and the value of goods that a reachable cloud had kept', async () => {
    const deviceId = shop.devices.self_checkout_detacher
    const [product] = shop.products
    const { epc } = await shop.newItem(product)
    const purchase = await shop.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const grant = { deviceId, protectionAction: 'detach_hard_tag', epc, purchaseId: purchase.transactionId }
    const { replayProtectedNonce: nonce } = (await agent.call('verifyProtectedItem', grant)).body
    const usedMs = platform.clock.wall()
    forward(600_000)
    await agent.login()
    await shop.ok('markPurchaseCancelled', { transactionId: purchase.transactionId })
    const claim: Evidence = {
      kind: 'claim',
      redemptionId: 'offline-1',
      nonce,
      source: 'token',
      rightClass: 'release',
      ordinals: [0],
      deviceId,
    }
    const event = (
      eventId: string,
      type: 'protection.device.offline' | 'protection.authorization.denied',
      offline = true,
    ) => ({
      type,
      eventId,
      occurredAt: new Date(usedMs).toISOString(),
      storeId: shop.storeId,
      deviceId,
      offline,
    })
    await agent.report([
      agent.row({ evidence: claim, atMs: usedMs, event: event('evt_alone', 'protection.device.offline') }),
      agent.row({ event: event('evt_refused', 'protection.authorization.denied'), atMs: usedMs }),
      agent.row({ event: event('evt_online', 'protection.authorization.denied', false), atMs: usedMs }),
    ])
    const { decisions, exceptions, goods, isCut } = await figures(-1, 2)
    expect(decisions).toEqual({ released: 1, denied: 1 })
    const lost = { pieces: 1, value: product.price, withoutPrice: 0 }
    expect(exceptions).toEqual([{ kind: 'cancelled_after_release', count: 1, ...lost }])
    expect([goods, isCut]).toEqual([lost, false])
    expect(await figures(-3, -2)).toMatchObject({ decisions: { released: 0, denied: 0 }, exceptions: [] })

    // A second exception about the same piece. One that later evidence took back does not count.
    const {
      exceptions: [known],
    } = await shop.ok('fetchExceptions', { storeId: shop.storeId, kinds: [...OFFLINE_KINDS] })
    await shop.cloud.db.database.write(async (db) => {
      const row = await db
        .selectFrom('protection_exception')
        .selectAll()
        .where('exception_id', '=', known.exceptionId)
        .executeTakeFirstOrThrow()
      const more = [
        { exception_id: 'exc_a', kind: 'double_redeem', subject: nonce },
        { exception_id: 'exc_b', kind: 'late_redeem', subject: 'offline-1', acknowledged_by: WITHDRAWN },
      ]
      for (const each of more)
        await db
          .insertInto('protection_exception')
          .values({ ...row, ...each })
          .execute()
    })
    const twice = await figures(-1, 2)
    expect(twice.exceptions.map((each: Json) => [each.kind, each.value])).toEqual([
      ['double_redeem', product.price],
      ['cancelled_after_release', product.price],
    ])
    expect(twice.goods).toEqual(lost)
  })

  it('refuses a period that is empty or too long', async () => {
    for (const [from, to] of [
      [0, 0],
      [0, 94 * 24],
    ] as const) {
      const answer = await shop.call('fetchOfflineFigures', { storeId: shop.storeId, since: at(from), until: at(to) })
      expect(answer).toMatchObject({ status: 400, body: { details: [{ path: 'until' }] } })
    }
  })
})
