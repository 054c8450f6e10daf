import { afterEach, beforeEach, expect, it } from 'vitest'
import { outgoingHttp } from '../../../../host/outgoing-http.ts'
import type { Platform } from '../../../../policy/platform.ts'
import { startTestCloud, type Json, type TestCloud } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { passingTime } from '../../../support/passing-time.ts'
import { newBrowser, startPushService } from '../../../support/push-service.ts'
import { until } from '../../../support/receiver.ts'

const PUSH = 'https://push.example'

onEveryDatabase('push notices about alarms', (kind) => {
  let cloud: TestCloud
  let service: Awaited<ReturnType<typeof startPushService>>
  let key: string
  let storeIds: string[]
  let events = 0
  let time: ReturnType<typeof passingTime>
  let platform: Platform

  beforeEach(async () => {
    time = passingTime()
    ;({ platform } = time)
    service = await startPushService()
    const real = outgoingHttp()
    cloud = await startTestCloud(kind, {
      platform,
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
    key = await cloud.key('secret', 'test')
    storeIds = (await cloud.ok(key, 'fetchStores')).stores.map(({ storeId }: Json) => storeId)
  })
  afterEach(async () => {
    await cloud.stop()
    time.stop()
    await service.close()
  })

  const raise = async (fields: Json = {}, ms = platform.clock.wall()) => {
    const event = {
      type: 'protection.exception.raised',
      eventId: `alarm-${++events}`,
      occurredAt: new Date(ms).toISOString(),
      storeId: storeIds[0],
      reason: 'gate_alarm',
      ...fields,
    }
    await cloud.ok(key, 'reportProtectionEvents', { events: [event] })
    return event
  }
  let browsers = 0
  const switchOn = async (session: string) => {
    const browser = newBrowser(`${PUSH}/w/${++browsers}`)
    const { endpoint, keys } = browser
    expect(await cloud.ok(session, 'registerAlarmNotices', { endpoint, keys })).toMatchObject({ isOn: true })
    return browser
  }
  const arrived = (count: number) => until(`${count} notices`, () => service.pushed.length >= count)
  const waiting = () => cloud.db.database.reads.selectFrom('push_delivery').selectAll().execute()
  const unread = () => cloud.db.database.reads.selectFrom('staff_notice').selectAll().execute()
  const drained = () =>
    until('an empty queue', async () => (await unread()).length === 0 && (await waiting()).length === 0)
  const paths = () => service.pushed.map(({ path }) => path).toSorted()

  it('reach the guard’s closed phone with store, kind and page, and replace one another', async () => {
    const guard = await cloud.user('associate')
    expect(await cloud.ok(guard, 'fetchAlarmNotices')).toMatchObject({ isOn: false, publicKey: expect.any(String) })
    const browser = await switchOn(guard)
    expect(await cloud.ok(guard, 'fetchAlarmNotices')).toMatchObject({ isOn: true })
    const { eventId } = await raise()
    await arrived(1)
    await raise()
    await arrived(2)
    const [first, second] = service.pushed
    const notice = browser.read(first!.body)
    expect(notice).toMatchObject({
      id: eventId,
      reason: 'gate_alarm',
      storeName: expect.stringMatching(/./),
      path: `/console/alarms?mode=test&store=${storeIds[0]}`,
    })
    expect(first!.headers).toMatchObject({ urgency: 'high', topic: notice.tag })
    expect(second!.headers['topic']).toBe(notice.tag)
    expect(Number(first!.headers.ttl)).toBeLessThanOrEqual(1_800)
  })

  it('reach only users of the role, store, account and mode', async () => {
    const guard = await switchOn(await cloud.user('associate'))
    const manager = await switchOn(await cloud.user('manager'))
    await switchOn(await cloud.user('manager', { storeIds: [storeIds[1] ?? 'st_other'] }))
    await switchOn(await cloud.user('manager', { account: 'Other' }))
    await switchOn(await cloud.user('manager', { mode: 'live' }))
    await raise()
    await arrived(2)
    await drained()
    const of = (...each: { endpoint: string }[]) => each.map(({ endpoint }) => endpoint.slice(PUSH.length)).toSorted()
    expect(paths()).toEqual(of(guard, manager))
    service.pushed.length = 0
    await raise({ reason: 'door_forced' })
    await arrived(1)
    await drained()
    expect(paths()).toEqual(of(manager))
    expect(manager.read(service.pushed[0]!.body).path).toMatch(/^\/console\/exceptions\?/)
    const viewer = await cloud.user('viewer')
    const { endpoint, keys } = newBrowser(`${PUSH}/w/viewer`)
    expect(await cloud.call(viewer, 'registerAlarmNotices', { endpoint, keys })).toMatchObject({ status: 403 })
    expect(await cloud.call(key, 'registerAlarmNotices', { endpoint, keys })).toMatchObject({ status: 403 })
  })

  it('ring colleagues, but not the guard who calls them to an alarm', async () => {
    const caller = await cloud.user('associate')
    await switchOn(caller)
    const colleague = await switchOn(await cloud.user('associate'))
    const { eventId } = await raise()
    await arrived(2)
    await drained()
    service.pushed.length = 0
    const { requestId } = await cloud.ok(caller, 'callHelpToAlarm', { eventId })
    await cloud.ok(caller, 'callHelpToAlarm', { eventId })
    await arrived(1)
    await drained()
    const notice = { id: requestId, reason: 'help_at_alarm', path: `/console/help?mode=test&store=${storeIds[0]}` }
    expect(service.pushed.map(({ body }) => colleague.read(body))).toMatchObject([notice])
  })

  it('end with the session, the switch or the browser', async () => {
    const [leaver, quiet, idle] = await Promise.all([1, 2, 3].map(() => cloud.user('associate')))
    await switchOn(leaver!)
    await cloud.ok(leaver!, 'signOut')
    await switchOn(quiet!)
    expect(await cloud.ok(quiet!, 'removeAlarmNotices')).toMatchObject({ isOn: false })
    await switchOn(idle!)
    // web-push compares the time of its tokens with the real clock, so the test ages the session instead.
    await cloud.db.database.write((db) =>
      db
        .updateTable('user_session')
        .set({ seen_ms: platform.clock.wall() - 13 * 3_600_000 })
        .execute(),
    )
    const late = await cloud.user('associate')
    const browser = await switchOn(late)
    await raise()
    await arrived(1)
    await drained()
    expect(paths()).toEqual([browser.endpoint.slice(PUSH.length)])
    service.answers.push({ status: 410 })
    await raise()
    await until('the end', async () => (await cloud.ok(late, 'fetchAlarmNotices')).isOn === false)
  })

  it('do not ring for alarms that an agent reports late', async () => {
    await switchOn(await cloud.user('associate'))
    await raise({}, platform.clock.wall() - 20 * 60_000)
    expect([...(await unread()), ...(await waiting())]).toEqual([])
    await raise()
    await arrived(1)
  })

  it('are removed with their user, and a second press renews the browser', async () => {
    const owner = await cloud.user('owner')
    const guard = await cloud.user('associate')
    await switchOn(guard)
    await switchOn(guard)
    const rows = () => cloud.db.database.reads.selectFrom('push_subscription').selectAll().execute()
    expect(await rows()).toHaveLength(1)
    const { userId } = await cloud.ok(guard, 'fetchProfile')
    await cloud.ok(owner, 'removeUser', { userId })
    expect(await rows()).toEqual([])
  })
})
