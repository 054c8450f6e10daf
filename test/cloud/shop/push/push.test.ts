import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { outgoingHttp } from '../../../../host/outgoing-http.ts'
import { IDLE_MS } from '../../../../cloud/platform/users/sessions.ts'
import { startPushSender } from '../../../../cloud/shop/push/sender.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../../support/databases.ts'
import { liveStores } from '../../../support/live-store.ts'
import { movablePlatform } from '../../../support/movable-platform.ts'
import { newBrowser, startPushService, verifyVapid } from '../../../support/push-service.ts'
import { until } from '../../../support/receiver.ts'

const PUSH = 'https://push.example'
const EAN = '4012345678901'

inFullSizeOnEveryDatabase('push notifications', (kind) => {
  let cloud: TestCloud
  let service: Awaited<ReturnType<typeof startPushService>>
  let key: string
  let storeId: string
  const { platform, forward } = movablePlatform()

  beforeEach(async () => {
    service = await startPushService()
    const real = outgoingHttp()
    cloud = await startTestCloud(kind, {
      platform,
      // Sends requests for the push service's public name to a local server.
      outgoing: {
        send: (request, signal) =>
          real.send(
            {
              ...request,
              url: request.url.replace(PUSH, service.origin),
              rules: { plainHttp: true, privateTargets: true },
            },
            signal,
          ),
      },
    })
    key = await cloud.key('secret', 'live', { package: 'GROW' })
    ;[storeId = ''] = await liveStores(cloud, key, { products: [{ ean: EAN, name: 'Schal', priceCent: 1_000 }] })
  })
  afterEach(async () => {
    await cloud.stop()
    await service.close()
  })

  const subscribe = (fields: Json, by = key) => cloud.call(by, 'registerPushSubscription', { kind: 'web', ...fields })
  const order = async (userId = 'u1'): Promise<string> =>
    (await cloud.ok(key, 'submitClickCollectOrder', { storeId, userId, items: [{ ean: EAN, quantity: 1 }] })).orderId
  const move = (orderId: string, status: string) => cloud.ok(key, 'updateClickCollectStatus', { orderId, status })
  const arrived = (count: number) => until(`${count} notices`, () => service.pushed.length >= count)
  const waiting = () => cloud.db.database.reads.selectFrom('push_delivery').selectAll().execute()
  const drained = () => until('an empty queue', async () => (await waiting()).length === 0)
  const later = (ms: number) => {
    forward(ms)
    cloud.cloud.services.push.wake()
  }
  const register = async (fields: Json): Promise<string> => {
    const answer = await subscribe(fields)
    expect([answer.status, answer.body.error]).toEqual([200, undefined])
    return answer.body.subscriptionId
  }

  it('reach the customer’s browser, encrypted and signed for push services', async () => {
    const browser = newBrowser(`${PUSH}/w/1`)
    const { publicKey } = await cloud.ok(await cloud.key('publishable', 'live'), 'fetchPushKey')
    await register({ userId: 'u1', endpoint: browser.endpoint, keys: browser.keys })
    const orderId = await order()
    await order('somebody-else')
    await move(orderId, 'confirmed')
    await arrived(1)
    await move(orderId, 'ready')
    await arrived(2)
    await drained()
    const [confirmed, ready] = service.pushed
    expect(service.pushed.length).toBe(2)
    expect(browser.read(confirmed!.body)).toMatchObject({
      type: 'clickcollect.order',
      to: 'customer',
      orderId,
      storeId,
      status: 'confirmed',
    })
    expect(browser.read(ready!.body)).toMatchObject({ status: 'ready', userId: 'u1' })
    expect(ready!.path).toBe('/w/1')
    expect(ready!.headers).toMatchObject({
      'content-encoding': 'aes128gcm',
      'content-type': 'application/octet-stream',
      'content-length': String(ready!.body.length),
      urgency: 'high',
    })
    expect(confirmed!.headers.urgency).toBe('normal')
    expect(confirmed!.headers['topic']).toMatch(/^[\w-]{32}$/)
    expect(ready!.headers['topic']).toBe(confirmed!.headers['topic'])
    expect(Number(ready!.headers.ttl)).toBeGreaterThan(86_000)
    const claims = await verifyVapid(
      ready!.headers.authorization ?? '',
      publicKey,
      PUSH,
      new Date(platform.clock.wall()),
    )
    expect(claims).toMatchObject({ sub: 'https://shop.example' })
    expect(
      await cloud.db.database.reads.selectFrom('push_subscription').select('sealed').executeTakeFirst(),
    ).not.toMatchObject({
      sealed: expect.stringContaining('push.example'),
    })
  })

  it('of users belong to their sessions, and only admins and keys name endpoints of servers', async () => {
    const live = { mode: 'live' } as const
    const [guard, colleague] = [await cloud.user('associate', live), await cloud.user('associate', live)]
    const [manager, admin] = [await cloud.user('manager', live), await cloud.user('admin', live)]
    const own = { kind: 'https', endpoint: `${PUSH}/own` }
    for (const by of [guard, manager])
      expect(await subscribe(own, by)).toMatchObject({ status: 403, body: { reason: 'role_too_low' } })
    const all = (await subscribe(own, admin)).body
    const [till, other] = [newBrowser(`${PUSH}/till`), newBrowser(`${PUSH}/other`)]
    const mine = (await subscribe({ storeId, endpoint: till.endpoint, keys: till.keys }, guard)).body
    expect((await subscribe({ storeId, endpoint: other.endpoint, keys: other.keys }, colleague)).status).toBe(200)

    const { userId } = await cloud.ok(guard, 'fetchProfile')
    const list = async (by: string, fields: Json = {}) => cloud.ok(by, 'fetchPushSubscriptions', fields)
    const { subscriptions } = await list(admin)
    expect(subscriptions).toHaveLength(3)
    const find = (id: string) => subscriptions.find((each: Json) => each.subscriptionId === id)
    expect(find(all.subscriptionId)).toMatchObject({ kind: 'https', notices: 'orders', endpoint: `${PUSH}/own` })
    expect(find(mine.subscriptionId)).toMatchObject({ kind: 'web', storeId, consoleUserId: userId })
    // Endpoint and keys of a browser are enough to send to it.
    expect(JSON.stringify(find(mine.subscriptionId))).not.toContain('/till')
    expect(await list(key)).toMatchObject({ subscriptions })
    const first = await list(admin, { limit: 2 })
    expect(first.subscriptions).toHaveLength(2)
    expect((await list(admin, { limit: 2, cursor: first.nextCursor })).subscriptions).toHaveLength(1)
    expect((await cloud.call(manager, 'fetchPushSubscriptions')).status).toBe(403)

    const remove = (by: string, { subscriptionId }: Json) =>
      cloud.call(by, 'removePushSubscription', { subscriptionId })
    expect((await remove(colleague, mine)).status).toBe(404)
    expect((await remove(guard, all)).status).toBe(404)
    await order()
    await arrived(3)
    await drained()
    await cloud.ok(guard, 'signOut')
    forward(IDLE_MS)
    await order()
    await arrived(4)
    await drained()
    expect(service.pushed.filter(({ path }) => path === '/till')).toHaveLength(1)
    expect(
      service.pushed.filter(({ path }) => path === '/other'),
      'a session that was idle',
    ).toHaveLength(1)
    expect(service.pushed.filter(({ path }) => path === '/own')).toHaveLength(2)
    const last = await cloud.user('admin', live)
    expect((await list(last)).subscriptions.map((each: Json) => each.subscriptionId)).not.toContain(mine.subscriptionId)
    expect((await remove(last, all)).status).toBe(200)
  })

  it('about alarms and about orders are switched on and off apart', async () => {
    const guard = await cloud.user('associate', { mode: 'live' })
    const [alarms, orders] = [newBrowser(`${PUSH}/alarms`), newBrowser(`${PUSH}/orders`)]
    await cloud.ok(guard, 'registerAlarmNotices', { endpoint: alarms.endpoint, keys: alarms.keys })
    const made = (await subscribe({ storeId, endpoint: orders.endpoint, keys: orders.keys }, guard)).body
    await cloud.ok(guard, 'removeAlarmNotices')
    await order()
    await arrived(1)
    expect(service.pushed.map(({ path }) => path)).toEqual(['/orders'])
    await cloud.ok(guard, 'registerAlarmNotices', { endpoint: alarms.endpoint, keys: alarms.keys })
    await cloud.ok(guard, 'removePushSubscription', { subscriptionId: made.subscriptionId })
    expect(await cloud.ok(guard, 'fetchAlarmNotices')).toMatchObject({ isOn: true })
    const { subscriptions } = await cloud.ok(key, 'fetchPushSubscriptions')
    expect(subscriptions).toMatchObject([{ kind: 'web', notices: 'alarms' }])
  })

  it('of a new order reach the store, and a merchant’s endpoint gets all, signed', async () => {
    const till = newBrowser(`${PUSH}/till`)
    await register({ storeId, endpoint: till.endpoint, keys: till.keys })
    const all = await subscribe({ kind: 'https', endpoint: `${PUSH}/own` })
    const orderId = await order()
    await arrived(2)
    const byPath = (path: string) => service.pushed.filter((p) => p.path === path)
    expect(till.read(byPath('/till')[0]!.body)).toMatchObject({ to: 'store', orderId, status: 'pending' })
    await move(orderId, 'cancelled')
    await arrived(3)
    const [, own] = byPath('/own')
    const body = own!.body.toString()
    expect(JSON.parse(body)).toMatchObject({ to: 'customer', orderId, userId: 'u1', status: 'cancelled' })
    const { headers } = own!
    const sentAt = new Date(Number(headers['webhook-timestamp']) * 1_000)
    expect(headers['webhook-signature']).toBe(
      new Webhook(all.body.secret).sign(String(headers['webhook-id']), sentAt, body),
    )
  })

  it('are retried with growing pauses, not before Retry-After, and then discarded', async () => {
    const browser = newBrowser(`${PUSH}/w/1`)
    await register({ userId: 'u1', endpoint: browser.endpoint, keys: browser.keys })
    service.answers.push(
      { status: 503 },
      { status: 429, headers: { 'retry-after': '600' } },
      ...Array.from({ length: 9 }, () => ({ status: 500 })),
    )
    await move(await order(), 'confirmed')
    await arrived(1)
    for (const [i, ms] of [10_000, 600_000, 300_000, 1_800_000, 7_200_000, 21_600_000].entries()) {
      await until('a put back notice', async () => (await waiting()).some((d) => d.attempts === i + 1))
      later(ms - 2_000)
      expect(service.pushed.length).toBe(i + 1)
      later(3_000)
      await arrived(i + 2)
    }
    await drained()
    expect(service.pushed.length).toBe(7)
    const [subscription] = await cloud.db.database.reads.selectFrom('push_subscription').selectAll().execute()
    expect(subscription).toMatchObject({ failed_in_row: 1 })
    service.answers.length = 0
    await move(await order(), 'confirmed')
    await arrived(8)
    await until('a success', async () => {
      const [row] = await cloud.db.database.reads.selectFrom('push_subscription').selectAll().execute()
      return row?.failed_in_row === 0
    })
  })

  it.each([404, 410])('end for a browser whose push service returns %i', async (status) => {
    const browser = newBrowser(`${PUSH}/w/1`)
    const subscriptionId = await register({ userId: 'u1', endpoint: browser.endpoint, keys: browser.keys })
    service.answers.push({ status })
    await move(await order(), 'confirmed')
    await until(
      'its end',
      async () => (await cloud.db.database.reads.selectFrom('push_subscription').selectAll().execute()).length === 0,
    )
    expect((await cloud.call(key, 'removePushSubscription', { subscriptionId })).status).toBe(404)
    expect(await waiting()).toEqual([])
  })

  it('of a stopped process are sent by the next under the same public key', async () => {
    const browser = newBrowser(`${PUSH}/w/1`)
    const { publicKey } = await cloud.ok(key, 'fetchPushKey')
    await register({ userId: 'u1', endpoint: browser.endpoint, keys: browser.keys })
    service.answers.push({ status: 503 })
    await move(await order(), 'confirmed')
    await until('a put back notice', async () => (await waiting()).some((d) => d.attempts === 1))
    await cloud.restart(() => void forward(11_000))
    await arrived(2)
    expect(browser.read(service.pushed[1]!.body)).toMatchObject({ status: 'confirmed' })
    expect((await cloud.ok(key, 'fetchPushKey')).publicKey).toBe(publicKey)
  })

  it('are each sent once by any number of processes', async () => {
    const browser = newBrowser(`${PUSH}/w`)
    for (let i = 0; i < 20; i++) await register({ userId: 'u1', endpoint: `${PUSH}/w/${i}`, keys: browser.keys })
    const { services } = cloud.cloud
    const database = kind === 'sqlite' ? cloud.db.database : await cloud.db.again()
    const other = startPushSender(database, () => services, platform)
    const orderId = await order()
    await Promise.all([move(orderId, 'confirmed'), move(await order(), 'confirmed')])
    other.wake()
    await drained()
    await other.stop()
    if (kind !== 'sqlite') await database.close()
    expect(service.pushed.length).toBe(40)
    expect(new Set(service.pushed.map(({ path }) => path)).size).toBe(20)
  })

  it('are not sent with test keys', async () => {
    const testKey = await cloud.key('secret', 'test')
    const { stores } = await cloud.ok(testKey, 'fetchStores')
    const { products } = await cloud.ok(testKey, 'fetchProducts', { storeId: stores[0].storeId, limit: 1 })
    const logged = vi.spyOn(cloud.cloud.services.log, 'info')
    const browser = newBrowser(`${PUSH}/w/1`)
    expect((await subscribe({ userId: 'u1', endpoint: browser.endpoint, keys: browser.keys }, testKey)).status).toBe(
      200,
    )
    const made = await cloud.ok(testKey, 'submitClickCollectOrder', {
      storeId: stores[0].storeId,
      userId: 'u1',
      items: [{ productId: products[0].productId, quantity: 1 }],
    })
    await cloud.ok(testKey, 'updateClickCollectStatus', { orderId: made.orderId, status: 'confirmed' })
    expect(await waiting()).toEqual([])
    expect(service.pushed).toEqual([])
    expect(logged.mock.calls.map(([about, text]) => [about['to'], about['status'], text])).toEqual([
      ['store', 'pending', 'push notice'],
      ['customer', 'confirmed', 'push notice'],
    ])
  })

  it('by publishable key are limited to the customer of a session from a secret key', async () => {
    const pk = await cloud.key('publishable', 'live')
    const browser = newBrowser(`${PUSH}/w/1`)
    const web = { endpoint: browser.endpoint, keys: browser.keys }
    const open = async (by: string, userId?: string): Promise<string> =>
      (await cloud.ok(by, 'checkIn', { storeId, userId })).sessionId
    const claimed = await subscribe({ ...web, sessionId: await open(pk, 'u1') }, pk)
    expect(claimed).toMatchObject({ status: 409, body: { reason: 'session_without_customer' } })
    expect((await subscribe({ ...web, sessionId: await open(key) }, pk)).status).toBe(409)
    expect((await subscribe({ ...web, userId: 'u1' }, pk)).status).toBe(400)
    const sessionId = await open(key, 'u1')
    const made = await subscribe({ ...web, sessionId }, pk)
    expect(made).toMatchObject({ status: 200, body: { userId: 'u1' } })
    expect((await subscribe({ kind: 'https', endpoint: `${PUSH}/x`, sessionId }, pk)).status).toBe(400)
    const { subscriptionId } = made.body
    const remove = (fields: Json) => cloud.call(pk, 'removePushSubscription', { subscriptionId, ...fields })
    expect((await remove({})).status).toBe(400)
    expect((await remove({ sessionId: await open(key, 'u2') })).status).toBe(404)
    expect((await remove({ sessionId })).status).toBe(200)
  })

  it('reject invalid subscriptions by field', async () => {
    const { endpoint, keys } = newBrowser(`${PUSH}/w/1`)
    for (const [path, fields] of [
      ['endpoint', { endpoint: 'https://10.0.0.1/x' }],
      ['endpoint', { endpoint: 'http://push.example/x' }],
      ['keys', { keys: undefined }],
      ['keys.auth', { keys: { ...keys, auth: 'AAAA' } }],
      ['keys.p256dh', { keys: { ...keys, p256dh: 'B'.repeat(87) } }],
      ['userId', { userId: undefined }],
      ['userId', { storeId }],
      ['keys', { kind: 'https' }],
    ] as const) {
      const { status, body } = await subscribe({ endpoint, keys, userId: 'u1', ...fields })
      expect([status, body.details?.[0]?.path]).toEqual([400, path])
    }
    expect((await subscribe({ endpoint, keys, storeId: 'st_x' })).status).toBe(404)
    const bound = await cloud.key('secret', 'live', { storeIds: [storeId] })
    expect((await subscribe({ endpoint, keys, userId: 'u1' }, bound)).body).toMatchObject({
      reason: 'key_bound_to_stores',
    })
    expect((await subscribe({ endpoint, keys, storeId }, bound)).status).toBe(200)
  })

  it('allow 20 subscriptions for a customer, and one for a browser', async () => {
    const browser = newBrowser(`${PUSH}/w/0`)
    const first = await register({ userId: 'u1', endpoint: browser.endpoint, keys: browser.keys })
    expect(await register({ userId: 'u1', endpoint: browser.endpoint, keys: browser.keys })).toBe(first)
    for (let i = 1; i < 20; i++) await register({ userId: 'u1', endpoint: `${PUSH}/w/${i}`, keys: browser.keys })
    const over = await subscribe({ userId: 'u1', endpoint: `${PUSH}/w/20`, keys: browser.keys })
    expect(over).toMatchObject({ status: 409, body: { reason: 'too_many_push_subscriptions' } })
    // Another customer signs in with the same browser.
    const other = await register({ userId: 'u2', endpoint: browser.endpoint, keys: browser.keys })
    expect(other).not.toBe(first)
    expect((await cloud.call(key, 'removePushSubscription', { subscriptionId: first })).status).toBe(404)
  })

  it('end a subscription after 20 undeliverable notices in a row', async () => {
    const browser = newBrowser(`${PUSH}/w/1`)
    await register({ userId: 'u1', endpoint: browser.endpoint, keys: browser.keys })
    await cloud.db.database.write((db) => db.updateTable('push_subscription').set({ failed_in_row: 19 }).execute())
    service.answers.push({ status: 403 })
    await move(await order(), 'confirmed')
    await until(
      'its end',
      async () => (await cloud.db.database.reads.selectFrom('push_subscription').selectAll().execute()).length === 0,
    )
  })

  it('are part of the export and erasure of a customer’s data', async () => {
    const { endpoint, keys } = newBrowser(`${PUSH}/w/1`)
    await register({ userId: 'u1', endpoint, keys })
    const { text } = await cloud.call(key, 'exportCustomerData', { userId: 'u1' })
    expect(text).toContain('pushSubscriptions')
    service.answers.push({ status: 503 })
    await move(await order(), 'confirmed')
    await until('a put back notice', async () => (await waiting()).some((d) => d.attempts === 1))
    await cloud.ok(key, 'eraseCustomerData', { userId: 'u1' })
    expect(await waiting()).toEqual([])
    expect(await cloud.db.database.reads.selectFrom('push_subscription').selectAll().execute()).toEqual([])
  })
})
