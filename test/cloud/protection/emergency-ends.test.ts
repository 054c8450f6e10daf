import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { onEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

onEveryDatabase('ends of emergencies', (kind) => {
  let shop: Shop
  let events = 0
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  const event = (reason: string, deviceId: string, minute: number): Json => ({
    type: 'protection.exception.raised',
    eventId: `evt-end-${++events}`,
    occurredAt: `2026-11-05T13:${String(minute).padStart(2, '0')}:00.000Z`,
    storeId: shop.storeId,
    deviceId,
    reason,
  })
  const exceptions = async (reason: string) =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: reason })).exceptions as Json[]

  it('are one exception of each agent or program, which names the last device', async () => {
    const [one, other] = [await enrolTestAgent(shop), await enrolTestAgent(shop)]
    const { exit_gate: gate, cabinet_unlocker: cabinet } = shop.devices
    await one.report([
      one.row({ event: event('emergency_started', gate, 1) }),
      one.row({ event: event('emergency_ended', gate, 5) }),
      one.row({ event: event('emergency_ended', cabinet, 6) }),
    ])
    await other.report([
      other.row({ event: event('emergency_started', cabinet, 2) }),
      other.row({ event: event('emergency_ended', cabinet, 1) }),
    ])
    await shop.ok('reportProtectionEvents', {
      events: Array.from({ length: 20 }, (_, n) => event('emergency_ended', `dev_${n}`, 10)),
    })
    expect((await exceptions('emergency_ended')).map(({ times, deviceId }) => [times, deviceId])).toEqual([
      [20, 'dev_19'],
      [1, cabinet],
      [2, cabinet],
    ])
    const started = await exceptions('emergency_started')
    expect(started.map(({ deviceId, emergency }) => [deviceId, emergency.endedAt])).toEqual([
      [cabinet, undefined], // the end that it reported is older
      [gate, '2026-11-05T13:06:00.000Z'],
    ])
    const { tasks } = await shop.ok('fetchOpenTasks', { storeId: shop.storeId })
    expect(tasks[0]).toMatchObject({ kind: 'emergency', count: 1 })
  })
})
