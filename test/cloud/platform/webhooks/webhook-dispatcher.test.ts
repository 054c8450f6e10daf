import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Services } from '../../../../cloud/platform/operations/operation.ts'
import type { OutgoingAnswer, OutgoingRequest } from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import type { Database } from '../../../../cloud/platform/persistence/database.ts'
import type { SendLoop } from '../../../../cloud/platform/operations/send-loop.ts'
import { planDeliveries, WAITING_LIMIT } from '../../../../cloud/platform/webhooks/plan.ts'
import { startDispatcher } from '../../../../cloud/platform/webhooks/dispatcher.ts'
import { LEASE_MS } from '../../../../cloud/platform/webhooks/lease.ts'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { stopInVirtualTime, until as untilInTime, untilInProcess } from '../../../support/receiver.ts'

const OK: OutgoingAnswer = { status: 200, headers: {}, body: new Uint8Array(), isCut: false }
const START = Date.parse('2026-11-20T09:00:00Z')

/** Deliveries of one process by id and URL. */
type Sent = { id: string; url: string }[]

/**
 * Runs many dispatchers on one database, like many processes. The cloud's own dispatcher gets no responses and stops
 * first.
 */
inFullSizeOnEveryDatabase('webhook dispatchers', (kind) => {
  let cloud: TestCloud
  let key: string
  let platform: VirtualPlatform
  const opened: Database[] = []
  const running: { dispatcher: SendLoop; platform: VirtualPlatform }[] = []

  beforeEach(async () => {
    platform = virtualPlatform({ startMs: START, seed: 1 })
    cloud = await startTestCloud(kind, { platform })
    key = await cloud.key('secret')
    await cloud.ok(key, 'fetchStores')
    await cloud.cloud.stop()
  })
  afterEach(async () => {
    for (const { dispatcher, platform: own } of running.splice(0)) await stopInVirtualTime(dispatcher, own)
    for (const each of opened.splice(0)) await each.close()
    await cloud.stop()
  })

  const until = kind === 'sqlite' ? untilInProcess : untilInTime
  const register = (i: number, more: Json = {}): Promise<Json> =>
    cloud.ok(key, 'registerWebhook', { url: `https://r${i}.example/`, events: ['webhook.test'], ...more })
  const emit = async (times: number, body: Json = {}) => {
    const ids: string[] = []
    for (let i = 0; i < times; i++) ids.push((await cloud.ok(key, 'sendTestWebhook', body)).eventId)
    return ids
  }

  /** A process with its own connections (one writer for SQLite), optionally its own clock, and its own sender. */
  async function startProcess(
    send: (request: OutgoingRequest, signal: AbortSignal) => Promise<OutgoingAnswer>,
    own: VirtualPlatform = platform,
  ) {
    const database = kind === 'sqlite' ? { ...cloud.db.database, close: async () => undefined } : await cloud.db.again()
    const sent: Sent = []
    const services: Services = {
      ...cloud.cloud.services,
      platform: own,
      outgoing: {
        send(request, signal) {
          sent.push({ id: request.headers['webhook-id'] ?? '', url: request.url })
          return send(request, signal)
        },
      },
    }
    const dispatcher = startDispatcher(database, () => services, own)
    return { database, dispatcher, sent, own }
  }
  type Process = Awaited<ReturnType<typeof startProcess>>
  const stopAtEnd = (process: Process) => {
    opened.push(process.database)
    running.push({ dispatcher: process.dispatcher, platform: process.own })
    return process
  }
  const statuses = async () =>
    (await cloud.db.database.reads.selectFrom('webhook_delivery').select(['status', 'attempts']).execute()).map(
      (d) => `${d.status} ${d.attempts}`,
    )

  it('never send one attempt twice, with any number of processes', async () => {
    await Promise.all([0, 1, 2].map((i) => register(i)))
    const ids = await emit(40)
    const processes = await Promise.all([1, 2, 3].map(async () => stopAtEnd(await startProcess(async () => OK))))
    for (const { dispatcher } of processes) dispatcher.wake()
    await until('all to be delivered', async () => {
      await platform.advance(1)
      const all = await statuses()
      return all.length === 120 && all.every((s) => s === 'delivered 1')
    })
    const sent = processes.flatMap((p) => p.sent.map((s) => `${s.id} ${s.url}`))
    expect(sent.length).toBe(120)
    expect(new Set(sent).size).toBe(120)
    expect(new Set(sent.map((s) => s.split(' ')[0]))).toEqual(new Set(ids))
  })

  it('send events of a dead process at least once, under the same id', async () => {
    await register(1)
    // The process crashes after the commit of the event and before the planning of its deliveries.
    const [first] = await emit(1)
    // The process crashes while the receiver works: its clock stops, and it never gets the response.
    const deadClock = virtualPlatform({ startMs: START, seed: 2 })
    const dead = await startProcess(() => new Promise(() => undefined), deadClock)
    await until('it to be sent', () => dead.sent.length === 1)
    const [second] = await emit(1)
    const next = stopAtEnd(await startProcess(async () => OK))
    await until('the second to be sent', async () => {
      await platform.advance(10)
      return next.sent.length === 1
    })
    expect(next.sent[0]?.id).toBe(second)
    await until('the second to be recorded', async () => (await statuses()).includes('delivered 1'))
    await platform.advance(LEASE_MS - 1_000)
    expect(next.sent.length).toBe(1)
    await until('the first to be sent again', async () => {
      await platform.advance(500)
      return next.sent.length === 2
    })
    expect([dead.sent[0]?.id, next.sent[1]?.id]).toEqual([first, first])
    await until('both to be recorded', async () => (await statuses()).every((s) => s === 'delivered 1'))
    await dead.database.close()
  })

  it('follow the schedule of the first attempt across a restart', async () => {
    const { webhookId } = await register(1)
    await emit(1, { webhookId })
    const one = await startProcess(async () => ({ ...OK, status: 503 }))
    await until('the first attempt', async () => (await statuses())[0] === 'pending 1')
    await stopInVirtualTime(one.dispatcher, platform)
    await one.database.close()
    const restarted = platform.clock.wall()
    const two = stopAtEnd(await startProcess(async () => ({ ...OK, status: 503 })))
    await platform.advance(START + 60_000 - 1 - restarted)
    expect(two.sent).toEqual([])
    await platform.advance(1)
    await until('the second attempt', async () => (await statuses())[0] === 'pending 2')
    const attempts = await cloud.db.database.reads
      .selectFrom('webhook_attempt')
      .select('at_ms')
      .orderBy('attempt')
      .execute()
    expect(attempts.map((a) => a.at_ms - START)).toEqual([0, 60_000])
  })

  it('follow the schedule of the first recorded attempt after another process died', async () => {
    const { webhookId } = await register(1)
    await emit(1, { webhookId })
    const deadClock = virtualPlatform({ startMs: START, seed: 3 })
    const dead = await startProcess(() => new Promise(() => undefined), deadClock)
    await until('it to be sent', () => dead.sent.length === 1)
    const next = stopAtEnd(await startProcess(async () => ({ ...OK, status: 503 })))
    const recorded = async () =>
      (await cloud.db.database.reads.selectFrom('webhook_attempt').select('at_ms').orderBy('attempt').execute()).map(
        (a) => a.at_ms,
      )
    await until('two attempts', async () => {
      const all = await recorded()
      // The database runs in real time. If virtual time runs ahead of it, an attempt takes longer than its lease.
      if (next.sent.length === all.length) await platform.advance(500)
      return all.length === 2
    })
    const [first = 0, second = 0] = await recorded()
    // The timestamp is the time of sending. That may be one clock step after the claim.
    expect(second - first).toBeGreaterThan(55_000)
    expect(next.sent.length).toBe(2)
    await dead.database.close()
  })

  it('release a delivery that a stop interrupts, and the next process sends it', async () => {
    await register(1)
    const cut = await startProcess(
      (_request, signal) =>
        new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('cut off')))),
    )
    await emit(1)
    await until('it to be sent', async () => {
      await platform.advance(10)
      return cut.sent.length === 1
    })
    await stopInVirtualTime(cut.dispatcher, platform)
    await cut.database.close()
    expect(await statuses()).toEqual(['pending 0'])
    const next = stopAtEnd(await startProcess(async () => OK))
    await until('it to be delivered', async () => (await statuses())[0] === 'delivered 1')
    expect(next.sent.length).toBe(1)
    cloud.errors.length = 0
  })

  it('disable a webhook after 50 failed deliveries in a row over days', async () => {
    const { webhookId } = await register(1)
    stopAtEnd(await startProcess(async () => ({ ...OK, status: 500 })))
    await emit(60, { webhookId })
    const webhook = async () => (await cloud.ok(key, 'fetchWebhooks')).webhooks[0]
    // The database runs in real time. If virtual time ran ahead of it, every attempt would take longer than its lease.
    const recorded = async () =>
      (
        await cloud.db.database.reads
          .selectFrom('webhook_delivery')
          .select('delivery_id')
          .where('lease_id', 'is not', null)
          .execute()
      ).length === 0
    const pass = async (minutes: number) => {
      for (let i = 0; i < 10; i++) {
        await platform.advance(minutes * 6_000)
        await until('the attempts to be recorded', recorded)
      }
    }
    await until('all deliveries to fail', async () => {
      await pass(5)
      const all = await statuses()
      return all.length === 60 && all.every((s) => s === 'failed 4')
    })
    expect(await webhook()).toMatchObject({ enabled: true })
    platform.setWall(platform.clock.wall() + 25 * 3_600_000)
    await emit(1, { webhookId })
    await until('the webhook to be disabled', async () => {
      await pass(5)
      return (await webhook()).enabled === false
    })
    expect(await webhook()).toMatchObject({ disabledReason: 'failing' })
    expect((await cloud.call(key, 'sendTestWebhook', { webhookId })).body.reason).toBe('webhook_disabled')
    expect(await cloud.ok(key, 'updateWebhook', { webhookId, enabled: true })).not.toHaveProperty('failingSince')
  })

  it('let dead receivers delay each other, but not working receivers', async () => {
    const dead = new Set<string>()
    const process = stopAtEnd(
      await startProcess(({ url }, signal) =>
        dead.has(url)
          ? new Promise((_r, reject) => signal.addEventListener('abort', () => reject(new Error('time is up'))))
          : Promise.resolve(OK),
      ),
    )
    for (let i = 1; i <= 70; i++) dead.add((await register(i)).url)
    const alive = await register(0, { events: ['product.created'] })
    await emit(1)
    await until('every place of one account to be taken', async () => {
      await platform.advance(1)
      return process.sent.length === 32
    })
    await until('the rest to be tried', async () => {
      await platform.advance(1_000)
      return process.sent.length >= 70
    })
    await platform.advance(10_000)
    // The dispatcher treats these receivers as failing, so they can use only some of the slots.
    await emit(5)
    await until('the slots of failing receivers to be in use', async () => {
      await platform.advance(1)
      return process.sent.length >= 70 + 24
    })
    const before = platform.clock.wall()
    await emit(10, { event: 'product.created' })
    await until('the living to have all', async () => {
      await platform.advance(1)
      return process.sent.filter((s) => s.url === alive.url).length === 10
    })
    expect(platform.clock.wall() - before).toBeLessThan(5_000)
    cloud.errors.length = 0
  })

  it('let an account with many slow receivers delay itself, but no other account', async () => {
    const slow = new Set<string>()
    const later = (signal: AbortSignal) =>
      new Promise<OutgoingAnswer>((resolve, reject) => {
        const cancel = platform.timers.after(9_900, () => resolve(OK))
        signal.addEventListener('abort', () => (cancel(), reject(new Error('time is up'))))
      })
    const process = stopAtEnd(
      await startProcess(({ url }, signal) => (slow.has(url) ? later(signal) : Promise.resolve(OK))),
    )
    for (let i = 1; i <= 60; i++) slow.add((await register(i)).url)
    // Its live data is no other account.
    const live = await cloud.key('secret', 'live')
    for (let i = 100; i <= 120; i++) {
      slow.add(`https://r${i}.example/`)
      await cloud.ok(live, 'registerWebhook', { url: `https://r${i}.example/`, events: ['webhook.test'] })
    }
    const other = await cloud.key('secret', 'test', { account: 'Deichgold' })
    await cloud.ok(other, 'fetchStores')
    const { url } = await cloud.ok(other, 'registerWebhook', {
      url: 'https://other.example/',
      events: ['webhook.test'],
    })
    // These are more deliveries than the dispatcher can send during this test.
    for (let i = 0; i < 20; i++) await cloud.ok(live, 'sendTestWebhook')
    await emit(20)
    await until('the slots of one account to be in use', async () => {
      await platform.advance(1)
      return process.sent.length >= 32
    })
    expect(process.sent.length).toBe(32)
    const before = platform.clock.wall()
    for (let i = 0; i < 5; i++) await cloud.ok(other, 'sendTestWebhook')
    await until('the other account to have its own', async () => {
      await platform.advance(1)
      return process.sent.filter((s) => s.url === url).length === 5
    })
    expect(platform.clock.wall() - before).toBeLessThan(5_000)
    cloud.errors.length = 0
  })

  it('plan events of accounts by turns, so that many of one delay no other', async () => {
    const { database } = cloud.db
    const other = await cloud.key('secret', 'test', { account: 'Andere' })
    await cloud.ok(other, 'registerWebhook', { url: 'https://other.example/', events: ['webhook.test'] })
    await emit(1)
    await planDeliveries(database, platform)
    const row = await database.reads.selectFrom('outbox_event').selectAll().executeTakeFirstOrThrow()
    const copies = Array.from({ length: 5_000 }, (_, n) => ({ ...row, seq: null, event_id: `evt_0${n}` }))
    for (let n = 0; n < copies.length; n += 1_000)
      await database.write((db) =>
        db
          .insertInto('outbox_event')
          .values(copies.slice(n, n + 1_000))
          .execute(),
      )
    await cloud.ok(other, 'sendTestWebhook', {})
    await planDeliveries(database, platform)
    const unplanned = await database.reads
      .selectFrom('outbox_event')
      .select('tenant')
      .where('seq', 'is', null)
      .execute()
    expect(new Set(unplanned.map(({ tenant }) => tenant))).toEqual(new Set([row.tenant]))
    expect(unplanned.length).toBeGreaterThan(3_000)
  })

  it('queue no more events of an account of which 50,000 wait, and say so at the webhook', async () => {
    const { database } = cloud.db
    const { webhookId } = await register(1)
    await emit(1)
    await planDeliveries(database, platform)
    const row = await database.reads.selectFrom('webhook_delivery').selectAll().executeTakeFirstOrThrow()
    const waiting = () =>
      database.reads
        .selectFrom('webhook_delivery')
        .select((eb) => eb.fn.countAll().as('n'))
        .where('status', '=', 'pending')
        .executeTakeFirstOrThrow()
    const copies = Array.from({ length: WAITING_LIMIT - 1 }, (_, n) => ({ ...row, delivery_id: `whd_${n}` }))
    for (let n = 0; n < copies.length; n += 2_000)
      await database.write((db) =>
        db
          .insertInto('webhook_delivery')
          .values(copies.slice(n, n + 2_000))
          .execute(),
      )
    const other = await cloud.key('secret', 'test', { account: 'Andere' })
    await cloud.ok(other, 'registerWebhook', { url: 'https://other.example/', events: ['webhook.test'] })
    const [missed] = await emit(1)
    await cloud.ok(other, 'sendTestWebhook', {})
    await planDeliveries(database, platform)
    expect(Number((await waiting()).n)).toBe(WAITING_LIMIT + 1)
    const { webhooks } = await cloud.ok(key, 'fetchWebhooks')
    expect(webhooks).toMatchObject([{ webhookId, missedAt: new Date(platform.clock.wall()).toISOString() }])
    const { events } = await cloud.ok(key, 'fetchWebhookEvents')
    expect(events.map((event: Json) => event.id)).toContain(missed)
  })
})
