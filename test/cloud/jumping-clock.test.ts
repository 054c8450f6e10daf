import { afterEach, beforeEach, expect, it } from 'vitest'
import type { OutgoingAnswer } from '../../cloud/outgoing/outgoing-http.ts'
import { virtualPlatform, type VirtualPlatform } from '../../simulators/world/virtual-platform.ts'
import { startTestCloud, type TestCloud } from '../support/cloud.ts'
import { onEveryDatabase } from '../support/databases.ts'
import { openPaidStore, type PaidStore } from '../support/paid-store.ts'
import { stopInVirtualTime, until } from '../support/receiver.ts'

const START = Date.parse('2026-11-20T09:00:00Z')
const YEAR_MS = 365 * 86_400_000

onEveryDatabase('webhooks of a cloud whose clock jumps', (kind) => {
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
  const attempts = (count: number) => until(`attempt ${count}`, async () => (await platform.advance(1_000), sent.length >= count))
  const deliveries = async () => (await cloud.ok(key, 'fetchWebhookDeliveries')).deliveries.map((each: { status: string; attempts: unknown[] }) => `${each.status} ${each.attempts.length}`)

  it('are not forgotten by a year that never was', async () => {
    await cloud.ok(key, 'sendTestWebhook')
    await attempts(1)
    platform.setWall(START + YEAR_MS)
    await platform.advance(5_000)
    putBack()
    expect(await deliveries()).toHaveLength(1)
    const { events } = await cloud.ok(key, 'fetchWebhookEvents')
    expect(events).toHaveLength(1)
  })

  it('go on when what failed in a year that never was is due in it', async () => {
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

onEveryDatabase('refunds of a cloud whose clock jumps', (kind) => {
  let store: PaidStore
  beforeEach(async () => {
    store = await openPaidStore(kind)
  })
  afterEach(() => store.stop())

  it('are sent again when the try that failed was made in a year that never was', async () => {
    const { platform, psp } = store
    const { transactionId } = await store.start()
    const session = await store.sessionOf(transactionId)
    await psp.end(session, 'paid')
    await store.wait('the money', async () => (await store.statusOf(transactionId)) === 'SUCCESS')
    const right = platform.clock.wall() - platform.clock.elapsed()
    platform.setWall(platform.clock.wall() + YEAR_MS)
    await platform.advance(120_000)
    psp.switches.status = 503
    expect(await store.ok('refundPayment', { transactionId })).toMatchObject({ refundStatus: 'pending' })
    psp.switches.status = undefined
    platform.setWall(right + platform.clock.elapsed())
    await platform.advance(120_000)
    await store.wait('the refund', () => psp.refunds.some((refund) => refund.sessionId === session), 60_000)
  })
})
