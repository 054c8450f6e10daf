import { afterAll, beforeAll, expect, it } from 'vitest'
import { storeEvent } from '../../../cloud/protection/records/record-event.ts'
import { pruneDeliveries } from '../../../cloud/platform/webhooks/plan.ts'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { until } from '../../support/receiver.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

interface Reporter {
  key: string
  storeId: string
  /** Path of the account’s webhook. */
  path: string
}

/** Merchants choose the ids of their events, so several accounts may use alarm-1. */
onEveryDatabase('an eventId that another account also uses', (kind) => {
  let shop: Shop
  let own: Reporter
  let other: Reporter
  const got: { path: string; body: Json }[] = []

  beforeAll(async () => {
    const outgoing = {
      async send({ url, body }: { url: URL | string; body?: string | Uint8Array }) {
        got.push({ path: new URL(String(url)).pathname, body: JSON.parse(Buffer.from(body ?? '').toString()) })
        return { status: 200, headers: {}, body: new Uint8Array(), isCut: false }
      },
    }
    shop = await openShop(kind, { outgoing } as Parameters<typeof openShop>[1])
    own = await reporter(shop.key, '/own')
    other = await reporter(await shop.cloud.key('secret', 'test', { account: 'Deichgold' }), '/other')
  })
  afterAll(() => shop.stop())

  async function reporter(key: string, path: string): Promise<Reporter> {
    const { stores } = await shop.cloud.ok(key, 'fetchStores')
    const { storeId } = stores.find((store: Json) => store.securityTagMode === 'rfid')
    await shop.cloud.ok(key, 'registerWebhook', {
      url: `https://receiver.example${path}`,
      events: ['protection.exception.raised'],
    })
    return { key, storeId, path }
  }
  const alarm = (eventId: string, storeId: string, fields: Json = {}): Json => ({
    type: 'protection.exception.raised',
    eventId,
    occurredAt: new Date(shop.cloud.platform.clock.wall()).toISOString(),
    storeId,
    reason: 'gate_alarm',
    detail: storeId,
    ...fields,
  })
  const report = ({ key, storeId }: Reporter, eventId: string, fields?: Json) =>
    shop.cloud.ok(key, 'reportProtectionEvents', { events: [alarm(eventId, storeId, fields)] })
  const listed = async ({ key, storeId }: Reporter, eventId: string) =>
    (await shop.cloud.ok(key, 'fetchProtectionEvents', { storeId, limit: 500 })).events.filter(
      (event: Json) => event.eventId === eventId,
    )

  it('is accepted: each account may use it once in test mode and once in live mode', async () => {
    for (const who of [own, other]) {
      expect(await report(who, 'alarm-1')).toEqual({ success: true, accepted: 1, duplicates: 0, errors: [] })
      expect(await report(who, 'alarm-1')).toEqual({ success: true, accepted: 0, duplicates: 1, errors: [] })
    }
    for (const who of [own, other]) {
      expect(await listed(who, 'alarm-1')).toEqual([
        expect.objectContaining({ storeId: who.storeId, detail: who.storeId }),
      ])
      const { exceptions } = await shop.cloud.ok(who.key, 'fetchExceptions', {
        storeId: who.storeId,
        kind: 'gate_alarm',
      })
      expect(exceptions).toEqual([expect.objectContaining({ eventId: 'alarm-1', storeId: who.storeId, times: 1 })])
      const { epcisBody } = await shop.cloud.ok(who.key, 'exportEpcisEvents', {
        storeId: who.storeId,
        type: 'protection.exception.raised',
      })
      expect(epcisBody.eventList).toHaveLength(1)
    }
  })

  it('has a separate disposition in each account', async () => {
    for (const [who, disposition] of [
      [own, 'real'],
      [other, 'phantom'],
    ] as const) {
      expect(
        await shop.cloud.ok(who.key, 'disposeAlarm', { eventId: 'alarm-1', disposition, operatorId: who.path }),
      ).toMatchObject({ storeId: who.storeId, disposition })
    }
    for (const [who, disposition] of [
      [own, 'real'],
      [other, 'phantom'],
    ] as const) {
      expect(await listed(who, 'alarm-1')).toEqual([
        expect.objectContaining({ alarm: expect.objectContaining({ disposition, operatorId: who.path }) }),
      ])
    }
  })

  it('is delivered, and redelivered, to the webhooks of each account with its own data', async () => {
    const at = ({ path }: Reporter) => got.filter((each) => each.path === path && each.body.id === 'alarm-1')
    await until('both to arrive', () => at(own).length === 1 && at(other).length === 1)
    for (const who of [own, other])
      expect(at(who).map(({ body }) => [body.type, body.data.storeId])).toEqual([
        ['protection.exception.raised', who.storeId],
      ])
    for (const who of [own, other]) {
      const { events } = await shop.cloud.ok(who.key, 'fetchWebhookEvents', {})
      expect(events.filter((event: Json) => event.id === 'alarm-1')).toEqual([
        expect.objectContaining({ storeId: who.storeId }),
      ])
      const after = await shop.cloud.ok(who.key, 'fetchWebhookEvents', { cursor: 'alarm-1' })
      expect(after.events.map((event: Json) => event.id)).not.toContain('alarm-1')
      const { deliveries } = await shop.cloud.ok(who.key, 'fetchWebhookDeliveries', { eventId: 'alarm-1' })
      expect(deliveries).toEqual([expect.objectContaining({ storeId: who.storeId })])
      await until(
        'it to be noted',
        async () =>
          (await shop.cloud.ok(who.key, 'fetchWebhookDeliveries', { eventId: 'alarm-1' })).deliveries[0].status ===
          'delivered',
      )
      await shop.cloud.ok(who.key, 'redeliverWebhook', { deliveryId: deliveries[0].deliveryId })
    }
    await until('both to arrive again', () => at(own).length === 2 && at(other).length === 2)
    for (const who of [own, other])
      expect(new Set(at(who).map(({ body }) => body.data.storeId))).toEqual(new Set([who.storeId]))
  })

  it('is enqueued once per account, even if a dispatcher batch ends between the two events', async () => {
    const many = Array.from({ length: 150 }, (_, n) => `many-${String(n).padStart(3, '0')}`)
    await shop.cloud.db.database.write(async (db) => {
      for (const [who, tenant] of [
        [own, await tenantOf(own)],
        [other, await tenantOf(other)],
      ] as const) {
        const rows = many.map((event_id) => ({
          event_id,
          tenant,
          store_id: who.storeId,
          type: 'protection.exception.raised',
          at_ms: 1,
          data: JSON.stringify(alarm(event_id, who.storeId)),
        }))
        for (let n = 0; n < rows.length; n += 50)
          await db
            .insertInto('outbox_event')
            .values(rows.slice(n, n + 50))
            .execute()
      }
    })
    const arrived = () =>
      got
        .filter(({ body }) => String(body.id).startsWith('many-'))
        .map(({ path, body }) => `${path} ${body.id} ${body.data.storeId}`)
    const expected = [own, other].flatMap((who) => many.map((id) => `${who.path} ${id} ${who.storeId}`))
    await until('all to arrive', () => arrived().length >= expected.length)
    expect(arrived().sort()).toEqual(expected.sort())
    const places = await shop.cloud.db.database.reads.selectFrom('outbox_event').select('seq').execute()
    expect(new Set(places.map((row) => row.seq)).size).toBe(places.length)
  })

  it('is deleted with the old events of one account, and remains in the other', async () => {
    const { database } = shop.cloud.db
    const now = shop.cloud.platform.clock.wall()
    const old = await tenantOf(own)
    await database.write((db) =>
      db
        .updateTable('outbox_event')
        .set({ at_ms: now - 31 * 86_400_000 })
        .where('tenant', '=', old)
        .where('event_id', '=', 'alarm-1')
        .execute(),
    )
    await pruneDeliveries(database, now - 30 * 86_400_000)
    const left = await database.reads
      .selectFrom('outbox_event')
      .select('tenant')
      .where('event_id', '=', 'alarm-1')
      .execute()
    expect(left.map((row) => row.tenant)).toEqual([await tenantOf(other)])
  })

  it('may also be in an agent’s journal', async () => {
    const agent = await enrolTestAgent(shop)
    expect(await report(other, 'alarm-2')).toMatchObject({ accepted: 1 })
    const row = agent.row({ event: alarm('alarm-2', shop.storeId) })
    expect((await agent.report([row])).body).toMatchObject({ accepted: 1 })
    expect(await listed(own, 'alarm-2')).toHaveLength(1)
    expect(await listed(other, 'alarm-2')).toHaveLength(1)
  })

  it('names one event within an account: another store gets already-exists, and nothing is stored', async () => {
    const answer = await report({ ...own, storeId: shop.otherStoreId }, 'alarm-1')
    expect(answer).toMatchObject({
      accepted: 0,
      duplicates: 0,
      errors: [{ index: 0, code: 'already-exists', message: expect.stringContaining('eventId') }],
    })
    expect(await listed(own, 'alarm-1')).toHaveLength(1)
    expect(await listed({ ...own, storeId: shop.otherStoreId }, 'alarm-1')).toEqual([])
  })

  it('fits headers and cursors; an older invalid id blocks no list', async () => {
    for (const eventId of ['alarm 1', 'Wächter', 'a\nb', '警報']) {
      const answer = await shop.cloud.call(own.key, 'reportProtectionEvents', { events: [alarm(eventId, own.storeId)] })
      expect(answer).toMatchObject({ status: 400, body: { details: [{ path: 'events[0].eventId' }] } })
    }
    const third: Reporter = await reporter(await shop.cloud.key('secret', 'test', { account: 'Dritte' }), '/third')
    const tenant = await tenantOf(third)
    const ids = ['alarm 1', 'a\nb', 'Wächter', '警報', 'z']
    const atMs = Math.floor(shop.cloud.platform.clock.wall())
    await shop.cloud.db.database.write(async (db) => {
      for (const eventId of ids)
        await storeEvent(
          { db, tenant, nowMs: atMs },
          { ...alarm(eventId, third.storeId), processedAt: new Date(atMs).toISOString() },
        )
    })
    const follow = async (operation: string, body: Json, idsOf: (answer: Json) => string[], field = 'nextCursor') => {
      const seen: string[] = []
      for (let cursor: string | undefined, page = 0; page === 0 || cursor !== undefined; page++) {
        const answer: Json = await shop.cloud.ok(third.key, operation, {
          ...body,
          limit: 1,
          ...(cursor !== undefined && { cursor }),
        })
        seen.push(...idsOf(answer))
        cursor = answer[field]
      }
      return seen.sort()
    }
    const { storeId } = third
    // A report wakes the job that orders events.
    ids.push('alarm-3')
    await report(third, 'alarm-3')
    await until(
      'all to have a place',
      async () => (await shop.cloud.ok(third.key, 'fetchWebhookEvents', { storeId })).events.length === ids.length,
    )
    expect(
      await follow('fetchProtectionEvents', { storeId }, ({ events }) => events.map((event: Json) => event.eventId)),
    ).toEqual(ids.toSorted())
    expect(
      await follow('fetchWebhookEvents', { storeId }, ({ events }) => events.map((event: Json) => event.id)),
    ).toEqual(ids.toSorted())
    expect(
      await follow(
        'exportEpcisEvents',
        { storeId, type: 'protection.exception.raised' },
        ({ epcisBody }) => epcisBody.eventList.map(() => 'event'),
        'untag:nextCursor',
      ),
    ).toHaveLength(ids.length)
  })

  it('leaves no error in the log', () => expect(shop.cloud.errors).toEqual([]))

  async function tenantOf({ storeId }: Reporter): Promise<string> {
    const store = await shop.cloud.db.database.reads
      .selectFrom('store')
      .select('tenant')
      .where('store_id', '=', storeId)
      .executeTakeFirstOrThrow()
    return store.tenant
  }
})
