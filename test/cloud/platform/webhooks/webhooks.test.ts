import { createHmac } from 'node:crypto'
import { newId } from '../../../../policy/ids.ts'
import { outgoingHttp } from '../../../../host/outgoing-http.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { virtualPlatform, type VirtualPlatform } from '../../../verification/simulation/virtual/virtual-platform.ts'
import type { Json } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import {
  answerWith,
  resolveNothing,
  startRawReceiver,
  startReceiver,
  stopInVirtualTime,
  until,
  type ReceivedRequest,
  type Receiver,
} from '../../../support/receiver.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

const MINUTE = 60_000
const NOTHING: ReceivedRequest = { path: '', headers: {}, body: '' }
const START = Date.parse('2026-11-20T09:00:00Z')

inFullSizeOnEveryDatabase('webhooks', (kind) => {
  let shop: Shop
  let platform: VirtualPlatform
  const receivers: { close(): Promise<void> }[] = []

  beforeAll(async () => {
    platform = virtualPlatform({ startMs: START })
    shop = await openShop(kind, {
      platform,
      config: { allowPrivateTargets: true },
      outgoing: outgoingHttp(resolveNothing),
    })
  })
  afterAll(async () => {
    for (const each of receivers) await each.close()
    await stopInVirtualTime(shop.cloud, platform)
  })

  const receive = async (answer?: Receiver['answer']) => {
    const receiver = await startReceiver(answer)
    receivers.push(receiver)
    return receiver
  }
  const register = (url: string, more: Json = {}) =>
    shop.ok('registerWebhook', { url, events: ['webhook.test'], ...more })
  const deliveries = async (webhookId: string): Promise<Json[]> =>
    (await shop.ok('fetchWebhookDeliveries', { webhookId })).deliveries
  const attempted = (webhookId: string, times: number) =>
    until(`${times} attempts at ${webhookId}`, async () => (await deliveries(webhookId))[0]?.attempts.length === times)
  const over = (webhookId: string) =>
    until(`the delivery to ${webhookId} is over`, async () =>
      ['delivered', 'failed'].includes((await deliveries(webhookId))[0]?.status),
    )

  describe('registrations', () => {
    it('show their secret once', async () => {
      const made = await register('https://once.example/hook')
      expect(made).toMatchObject({
        webhookId: expect.stringMatching(/^whk_/),
        secret: expect.stringMatching(/^whsec_.{44}$/),
        enabled: true,
        events: ['webhook.test'],
      })
      const { webhooks } = await shop.ok('fetchWebhooks')
      expect(JSON.stringify(webhooks)).not.toContain(made.secret)
      const withOwnSecret = await register('https://given.example/hook', { secret: 'sixteen-chars-it' })
      expect(withOwnSecret).not.toHaveProperty('secret')
      const { reads } = shop.cloud.db.database
      const dump = JSON.stringify(
        await Promise.all(
          (['webhook', 'idempotency', 'audit_entry'] as const).map((t) => reads.selectFrom(t).selectAll().execute()),
        ),
      )
      for (const secret of [made.secret, 'sixteen-chars-it', Buffer.from('sixteen-chars-it').toString('base64')])
        expect(dump).not.toContain(secret)
    })

    it('reject a URL that is too long in its encoded form', async () => {
      const url = (letters: number) => `https://long.example/${'ü'.repeat(letters)}`
      const fits = Math.floor((2_048 - 'https://long.example/'.length) / 6)
      expect((await shop.call('registerWebhook', { url: url(fits), events: ['webhook.test'] })).status).toBe(200)
      const { webhookId } = await register('https://long.example/short')
      for (const letters of [fits + 1, 2_000]) {
        const refusal = { status: 400, body: { details: [{ path: 'url' }] } }
        expect(await shop.call('registerWebhook', { url: url(letters), events: ['webhook.test'] })).toMatchObject(
          refusal,
        )
        expect(await shop.call('updateWebhook', { webhookId, url: url(letters) })).toMatchObject(refusal)
        expect(
          await shop.call('getLoyaltyWebhookEvents', {
            storeId: shop.storeId,
            url: url(letters),
            events: ['loyalty.enrollment'],
            secret: 'sixteen-chars-it',
          }),
        ).toMatchObject(refusal)
      }
    })

    it('accept a weak secret of the merchant, with a warning', async () => {
      const { storeId } = shop
      const weak = { warnings: [expect.stringContaining('short')] }
      const { webhookId, ...made } = await register('https://weak.example/hook', { secret: 'geheim' })
      expect(made).toMatchObject(weak)
      const loyal = await shop.ok('getLoyaltyWebhookEvents', {
        storeId,
        url: 'https://weak.example/loyalty',
        events: ['loyalty.enrollment'],
        secret: 'x',
      })
      expect(loyal).toMatchObject(weak)
      await shop.ok('deleteWebhook', { webhookId: loyal.webhookId })
      expect(await shop.ok('updateWebhook', { webhookId, secret: 'whsec_geheimes$Geheimnis' })).toMatchObject({
        warnings: [expect.stringContaining('not base64')],
      })
      expect(await shop.ok('rollWebhookSecret', { webhookId, secret: 'geheim2' })).toMatchObject(weak)
      expect(await shop.ok('updateWebhook', { webhookId, secret: 'lang-genug-und-geheim' })).not.toHaveProperty(
        'warnings',
      )
      expect(await shop.ok('updateWebhook', { webhookId, events: ['*'] })).not.toHaveProperty('warnings')
      for (const secret of ['', 'x'.repeat(129), 'two words'])
        expect((await shop.call('updateWebhook', { webhookId, secret })).status).toBe(400)
      await shop.ok('deleteWebhook', { webhookId })
    })

    it('merge with those of getLoyaltyWebhookEvents, and only updateWebhook replaces', async () => {
      const { storeId } = shop
      const first = await register('https://two.example/doors', { storeId, events: ['loyalty.enrollment'] })
      const second = await shop.ok('getLoyaltyWebhookEvents', {
        storeId,
        url: 'HTTPS://two.example:443/doors',
        events: ['loyalty.points_earned'],
        secret: 'their-own-secret-1',
      })
      expect(second).toMatchObject({
        webhookId: first.webhookId,
        events: ['loyalty.enrollment', 'loyalty.points_earned'],
        warnings: [expect.stringContaining('another secret')],
      })
      expect(second).not.toHaveProperty('secret')
      const third = await register('https://two.example/doors', { storeId, events: ['checkout.completed'] })
      expect(third).toMatchObject({
        webhookId: first.webhookId,
        events: ['checkout.completed', 'loyalty.enrollment', 'loyalty.points_earned'],
      })
      expect(third).not.toHaveProperty('secret')
      const other = await register('https://two.example/doors', { storeId: shop.otherStoreId })
      expect(other.webhookId).not.toBe(first.webhookId)
      const listed = await shop.cloud.get(`/api/v1/getLoyaltyWebhookEvents?storeId=${storeId}`, {
        authorization: `Bearer ${shop.key}`,
      })
      expect(listed).toMatchObject({
        status: 200,
        body: { success: true, total: 1, data: [{ webhookId: first.webhookId }] },
      })
      const updated = await shop.ok('updateWebhook', {
        webhookId: first.webhookId,
        events: ['webhook.test'],
        url: 'https://three.example/',
      })
      expect(updated).toMatchObject({ events: ['webhook.test'], url: 'https://three.example/' })
      const third2 = await register('https://four.example/', { storeId })
      expect(
        await shop.call('updateWebhook', { webhookId: third2.webhookId, url: 'https://three.example' }),
      ).toMatchObject({ status: 409, body: { code: 'already-exists' } })
    })

    it('reject forbidden addresses before anything is stored', async () => {
      const strict = await openShop('sqlite')
      try {
        for (const url of [
          'https://127.0.0.1/',
          'https://10.1.2.3/',
          'https://[::1]/',
          'https://localhost/',
          'ftp://a.example/',
          'https://a.example:22/',
          'nonsense',
          'https://u:p@a.example/',
        ]) {
          const answer = await strict.call('registerWebhook', { url, events: ['*'] })
          expect([url, answer.status, answer.body.details?.[0]]).toEqual([
            url,
            400,
            expect.objectContaining({ path: 'url', code: 'url_refused' }),
          ])
          const isPrivate = /10\.1|::1|localhost|127/.test(url)
          expect([url, /untag listen .*--allow-private-targets/.test(answer.body.error)]).toEqual([url, isPrivate])
        }
        const live = await strict.cloud.key('secret', 'live')
        expect(
          (await strict.cloud.call(live, 'registerWebhook', { url: 'http://a.example/', events: ['*'] })).status,
        ).toBe(400)
        expect((await strict.call('registerWebhook', { url: 'http://a.example/', events: ['*'] })).status).toBe(200)
        expect((await strict.ok('fetchWebhooks')).total).toBe(1)
      } finally {
        await strict.stop()
      }
    })

    it('are hidden from other accounts and from keys for other stores', async () => {
      const whole = await register('https://mine.example/')
      const ofStore = await register('https://mine.example/', { storeId: shop.storeId })
      const stranger = await shop.cloud.key('secret', 'test', { account: 'Stranger' })
      const bound = await shop.cloud.key('secret', 'test', { storeIds: [shop.otherStoreId] })
      for (const { webhookId } of [whole, ofStore]) {
        for (const key of [stranger, bound]) {
          for (const name of [
            'updateWebhook',
            'deleteWebhook',
            'rollWebhookSecret',
            'sendTestWebhook',
            'fetchWebhookDeliveries',
          ])
            expect([name, (await shop.cloud.call(key, name, { webhookId })).status]).toEqual([name, 404])
        }
      }
      expect((await shop.cloud.ok(stranger, 'fetchWebhooks')).total).toBe(0)
      expect(
        (await shop.cloud.call(bound, 'registerWebhook', { url: 'https://b.example/', events: ['*'] })).status,
      ).toBe(400)
      expect(
        (
          await shop.cloud.ok(bound, 'registerWebhook', {
            url: 'https://b.example/',
            events: ['*'],
            storeId: shop.otherStoreId,
          })
        ).storeId,
      ).toBe(shop.otherStoreId)
    })

    it('are limited to 100', async () => {
      const key = await shop.cloud.key('secret', 'test', { account: 'Many' })
      for (let i = 0; i < 100; i++)
        await shop.cloud.ok(key, 'registerWebhook', { url: `https://a.example/${i}`, events: ['*'] })
      expect(
        await shop.cloud.call(key, 'registerWebhook', { url: 'https://a.example/100', events: ['*'] }),
      ).toMatchObject({ status: 409, body: { reason: 'too_many_webhooks' } })
      expect(
        (await shop.cloud.ok(key, 'registerWebhook', { url: 'https://a.example/7', events: ['webhook.test'] })).events,
      ).toEqual(['*', 'webhook.test'])
    })
  })

  describe('deliveries', () => {
    it('of a purchase arrive at once, signed, in the envelope of the specification', async () => {
      const receiver = await receive()
      const { webhookId, secret } = await register(receiver.url, {
        events: ['checkout.completed'],
        storeId: shop.storeId,
      })
      const elsewhere = await receive()
      await register(elsewhere.url, { events: ['*'], storeId: shop.otherStoreId })
      const { transactionId } = await shop.buy([{ ean: shop.products[0].ean, quantity: 1 }])
      await over(webhookId)
      expect(receiver.requests.length).toBe(1)
      const { headers, body } = receiver.requests[0] ?? NOTHING
      const event = JSON.parse(body)
      expect(event).toEqual({
        id: expect.stringMatching(/^whe_/),
        event: 'checkout.completed',
        type: 'checkout.completed',
        timestamp: new Date(START).toISOString(),
        data: expect.objectContaining({ transactionId, storeId: shop.storeId }),
      })
      expect(headers['x-untag-signature']).toBe(createHmac('sha256', secret).update(body).digest('hex'))
      expect(headers['webhook-id']).toBe(event.id)
      const signed = createHmac('sha256', Buffer.from(secret.slice(6), 'base64'))
        .update(`${event.id}.${headers['webhook-timestamp']}.${body}`)
        .digest('base64')
      expect(headers['webhook-signature']).toBe(`v1,${signed}`)
      expect((await deliveries(webhookId))[0]).toMatchObject({
        status: 'delivered',
        eventId: event.id,
        attempts: [{ attempt: 1, status: 200 }],
      })
      expect(elsewhere.requests).toEqual([])
      expect((await shop.ok('fetchWebhookEvents', { events: ['checkout.completed'] })).events).toEqual([
        { ...event, storeId: shop.storeId },
      ])
    })

    it('of protection events arrive as well', async () => {
      const receiver = await receive()
      await register(receiver.url, { events: ['protection.authorization.denied'] })
      const { epc } = await shop.newItem(shop.products[0])
      const denied = await shop.ok('verifyProtectedItem', {
        deviceId: shop.devices.exit_gate,
        protectionAction: 'authorize_exit',
        epc,
      })
      await platform.advance(1_000)
      await until('the denial', () => receiver.requests.length === 1)
      expect(JSON.parse(receiver.requests[0]?.body ?? '')).toMatchObject({
        id: denied.eventId,
        type: 'protection.authorization.denied',
        data: { eventId: denied.eventId, reason: 'item_not_paid', epc },
      })
    })

    it('are tried after 0, 1, 5 and 30 minutes, and again on request', async () => {
      const receiver = await receive(answerWith(500, 'out of\u0000order'))
      const { webhookId } = await register(receiver.url)
      const began = platform.clock.wall()
      const { eventId, webhooks } = await shop.ok('sendTestWebhook', { webhookId })
      expect(webhooks).toBe(1)
      await attempted(webhookId, 1)
      for (const [n, minute] of [
        [2, 1],
        [3, 5],
        [4, 30],
      ] as const) {
        const due = began + minute * MINUTE
        await platform.advance(due - 1 - platform.clock.wall())
        await platform.advance(1)
        await attempted(webhookId, n)
      }
      const [delivery] = await deliveries(webhookId)
      expect(delivery.attempts.map((a: Json) => (Date.parse(a.at) - began) / MINUTE)).toEqual([0, 1, 5, 30])
      expect(delivery).toMatchObject({
        status: 'failed',
        attempts: [{ status: 500, answer: 'out of\ufffdorder' }, {}, {}, {}],
      })
      expect(delivery).not.toHaveProperty('nextAttemptAt')
      expect(new Set(receiver.requests.map((g) => g.headers['webhook-id']))).toEqual(new Set([eventId]))
      expect(new Set(receiver.requests.map((g) => g.body)).size).toBe(1)
      expect(new Set(receiver.requests.map((g) => g.headers['webhook-timestamp'])).size).toBe(4)
      await platform.advance(60 * MINUTE)
      expect(receiver.requests.length).toBe(4)
      expect((await shop.ok('fetchWebhooks')).webhooks.find((w: Json) => w.webhookId === webhookId)).toMatchObject({
        enabled: true,
        failingSince: new Date(began).toISOString(),
      })
      receiver.answer = answerWith(204)
      const again = await shop.ok('redeliverWebhook', { deliveryId: delivery.deliveryId })
      expect(again).toMatchObject({ status: 'pending', eventId, attempts: [] })
      await over(webhookId)
      expect(receiver.requests.at(-1)).toMatchObject({
        headers: { 'webhook-id': eventId },
        body: receiver.requests[0]?.body,
      })
      expect((await shop.ok('fetchWebhooks')).webhooks.find((w: Json) => w.webhookId === webhookId)).not.toHaveProperty(
        'failingSince',
      )
    })

    it('end after 10 seconds if the receiver hangs, at once after a reset', async () => {
      const hanging = await receive(() => undefined)
      const dripping = await startRawReceiver((socket) => {
        const drip = setInterval(() => socket.write('H'), 20)
        socket.on('close', () => clearInterval(drip))
      })
      const resetting = await startRawReceiver((socket) => socket.once('data', () => socket.resetAndDestroy()))
      receivers.push(dripping, resetting)
      const [hang, drip, reset] = await Promise.all(
        [hanging.url, dripping.url, resetting.url].map((url) => register(url)),
      )
      for (const { webhookId } of [hang, drip, reset]) await shop.ok('sendTestWebhook', { webhookId })
      await attempted(reset.webhookId, 1)
      await until('both to be tried', () => hanging.requests.length === 1 && dripping.connections() === 1)
      expect((await deliveries(hang.webhookId))[0].attempts).toEqual([])
      await platform.advance(10_000)
      for (const { webhookId } of [hang, drip]) {
        await attempted(webhookId, 1)
        const [first] = (await deliveries(webhookId))[0].attempts
        expect(first).toMatchObject({
          error: expect.stringMatching(webhookId === hang.webhookId ? /^timeout$/ : /^(timeout|not_http)$/),
        })
        if (first.error === 'timeout') expect(first.durationMs).toBe(10_000)
      }
      expect((await deliveries(reset.webhookId))[0].attempts).toMatchObject([{ error: 'connection_reset' }])
      for (const { webhookId } of [hang, drip, reset]) await shop.ok('deleteWebhook', { webhookId })
    })

    it('treat a redirect as a failure, and store little of a large response', async () => {
      const redirecting = await receive(answerWith(307, '', { location: '/elsewhere' }))
      const large = await receive((response) => void response.writeHead(200).end(Buffer.alloc(10_000_000, 'ü')))
      const [a, b] = await Promise.all([redirecting.url, large.url].map((url) => register(url)))
      for (const { webhookId } of [a, b]) await shop.ok('sendTestWebhook', { webhookId })
      await attempted(a.webhookId, 1)
      await over(b.webhookId)
      expect((await deliveries(a.webhookId))[0]).toMatchObject({ status: 'pending', attempts: [{ status: 307 }] })
      expect(redirecting.requests.map((g) => g.path)).toEqual(['/hook'])
      const [delivered] = await deliveries(b.webhookId)
      expect(delivered).toMatchObject({ status: 'delivered', attempts: [{ status: 200 }] })
      expect(delivered.attempts[0].answer.length).toBeLessThanOrEqual(1_024)
      await shop.ok('deleteWebhook', { webhookId: a.webhookId })
    })

    it('stop after 410 until a caller enables the webhook again', async () => {
      const receiver = await receive(answerWith(410))
      const { webhookId } = await register(receiver.url)
      await shop.ok('sendTestWebhook', { webhookId })
      await over(webhookId)
      const webhook = async () => (await shop.ok('fetchWebhooks')).webhooks.find((w: Json) => w.webhookId === webhookId)
      expect(await webhook()).toMatchObject({ enabled: false, disabledReason: 'gone', disabledAt: expect.any(String) })
      expect(await shop.call('sendTestWebhook', { webhookId })).toMatchObject({
        status: 409,
        body: { reason: 'webhook_disabled' },
      })
      const [{ deliveryId }] = await deliveries(webhookId)
      expect((await shop.call('redeliverWebhook', { deliveryId })).status).toBe(409)
      const audit = await shop.cloud.db.database.reads
        .selectFrom('audit_entry')
        .selectAll()
        .where('entity_id', '=', webhookId)
        .where('actor', '=', 'webhook-dispatcher')
        .execute()
      expect(audit).toMatchObject([{ operation: 'updateWebhook' }])
      receiver.answer = answerWith(200)
      expect(await shop.ok('updateWebhook', { webhookId, enabled: true })).not.toHaveProperty('disabledReason')
      await shop.ok('redeliverWebhook', { deliveryId })
      await until('it to arrive', () => receiver.requests.length === 2)
    })

    it('to a dead receiver delay no other receiver', async () => {
      const dead = await receive(() => undefined)
      const alive = await receive()
      const began = platform.clock.wall()
      const [a, b] = await Promise.all(
        [dead.url, alive.url].map((url) => register(url, { events: ['webhook.test'], storeId: shop.otherStoreId })),
      )
      for (let i = 0; i < 40; i++) await shop.ok('sendTestWebhook', { storeId: shop.otherStoreId })
      await until('all 40', () => alive.requests.length === 40)
      expect(platform.clock.wall()).toBe(began)
      expect(new Set(alive.requests.map((g) => g.headers['webhook-id'])).size).toBe(40)
      expect(dead.requests.length).toBeLessThanOrEqual(4)
      for (const { webhookId } of [a, b]) await shop.ok('deleteWebhook', { webhookId })
      await platform.advance(10_000)
    })

    it('are signed with both secrets during a roll', async () => {
      const receiver = await receive()
      const { webhookId, secret } = await register(receiver.url)
      const rolled = await shop.ok('rollWebhookSecret', { webhookId, overlapHours: 1 })
      expect(rolled).toMatchObject({
        secret: expect.stringMatching(/^whsec_/),
        oldSecretUntil: new Date(platform.clock.wall() + 60 * MINUTE).toISOString(),
      })
      const last = async (n: number) => {
        await shop.ok('sendTestWebhook', { webhookId })
        await until('the test', () => receiver.requests.length === n)
        const { headers, body } = receiver.requests[n - 1] ?? NOTHING
        const of = (key: string) => createHmac('sha256', key).update(body).digest('hex')
        return {
          signatures: String(headers['webhook-signature']).split(' ').length,
          byOld: headers['x-untag-signature'] === of(secret),
          byNew: headers['x-untag-signature'] === of(rolled.secret),
        }
      }
      expect(await last(1)).toEqual({ signatures: 2, byOld: true, byNew: false })
      await platform.advance(60 * MINUTE)
      expect(await last(2)).toEqual({ signatures: 1, byOld: false, byNew: true })
    })

    it('respect the package of the account, and test keys send test events only', async () => {
      const receiver = await receive()
      const poor = await shop.cloud.key('secret', 'test', { account: 'Poor', package: 'DISCOVER' })
      const made = await shop.cloud.ok(poor, 'registerWebhook', {
        url: receiver.url,
        events: ['offer.published', 'checkout.completed', 'product.created'],
      })
      expect(made.warnings).toEqual([expect.stringContaining('offer.published needs the package GO')])
      for (const event of ['offer.published', 'checkout.completed', 'product.created'])
        await shop.cloud.ok(poor, 'sendTestWebhook', { event })
      await until('what the package has', () => receiver.requests.length === 2)
      expect(receiver.requests.map((g) => JSON.parse(g.body).type).toSorted()).toEqual([
        'checkout.completed',
        'product.created',
      ])
      const live = await shop.cloud.key('secret', 'live')
      expect(await shop.cloud.call(live, 'sendTestWebhook', { event: 'checkout.completed' })).toMatchObject({
        status: 409,
        body: { reason: 'test_keys_only' },
      })
      expect(
        await shop.cloud.call(poor, 'getLoyaltyWebhookEvents', {
          storeId: 'st_x',
          url: receiver.url,
          events: ['*'],
          secret: 'sixteen-chars-it',
        }),
      ).toMatchObject({ status: 403, body: { requiredUpgrade: 'GO' } })
    })

    it('are listed in pages without gaps or repetitions', async () => {
      const receiver = await receive()
      const { webhookId } = await register(receiver.url)
      const since = new Date(platform.clock.wall()).toISOString()
      const sent: string[] = []
      for (let i = 0; i < 7; i++) sent.push((await shop.ok('sendTestWebhook', { webhookId })).eventId)
      await until('all', () => receiver.requests.length === 7)
      const pages = async (operation: string, field: string, body: Json) => {
        const ids: string[] = []
        for (let cursor: string | undefined; ;) {
          const page = await shop.ok(operation, { ...body, limit: 3, ...(cursor !== undefined && { cursor }) })
          ids.push(...page[field].map((x: Json) => x.eventId ?? x.id))
          cursor = page.nextCursor
          if (cursor === undefined) return ids
        }
      }
      expect((await pages('fetchWebhookDeliveries', 'deliveries', { webhookId })).toSorted()).toEqual(sent.toSorted())
      expect(
        (await pages('fetchWebhookEvents', 'events', { events: ['webhook.test'], since })).filter((id) =>
          sent.includes(id),
        ),
      ).toHaveLength(7)
      const status = (await shop.ok('fetchWebhookDeliveries', { webhookId, status: 'failed' })).deliveries
      expect(status).toEqual([])
    })

    it('are listed 10,000 at a time where a filter leaves most of them out', async () => {
      const { reads } = shop.cloud.db.database
      const one = await reads.selectFrom('outbox_event').selectAll().orderBy('seq', 'desc').executeTakeFirstOrThrow()
      const others = Array.from({ length: 10_010 }, (_, n) => ({
        ...one,
        event_id: newId('whe', platform),
        store_id: 'st_other',
        seq: Number(one.seq) + 1 + n,
      }))
      await shop.cloud.db.database.write(async (db) => {
        for (let n = 0; n < others.length; n += 500)
          await db
            .insertInto('outbox_event')
            .values(others.slice(n, n + 500))
            .execute()
      })
      const filter = { storeId: shop.storeId, cursor: one.event_id }
      const first = await shop.ok('fetchWebhookEvents', filter)
      expect(first).toMatchObject({ events: [], nextCursor: others[9_999]?.event_id })
      expect(await shop.ok('fetchWebhookEvents', { ...filter, cursor: first.nextCursor })).toEqual({
        success: true,
        events: [],
      })
      await shop.cloud.db.database.write((db) =>
        db.deleteFrom('outbox_event').where('store_id', '=', 'st_other').execute(),
      )
    })

    it('are stored for 30 days', async () => {
      platform.sleep(31 * 86_400_000)
      const left = async () => (
        await platform.advance(1_000),
        (await shop.ok('fetchWebhookDeliveries')).deliveries.length
      )
      await until('the log to be cleared', async () => (await left()) === 0)
      expect((await shop.ok('fetchWebhookEvents')).events).toEqual([])
    })
  })

  it('leave no error in the log', () => {
    expect(shop.cloud.errors).toEqual([])
  })
})
