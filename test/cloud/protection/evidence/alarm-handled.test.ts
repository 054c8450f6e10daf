import { afterAll, beforeAll, expect, it } from 'vitest'
import type { AlarmStep } from '../../../../policy/vocabulary.ts'
import type { ProtectionEvent } from '../../../../policy/protection-events.ts'
import type { Json } from '../../../support/cloud.ts'
import { onEveryDatabase } from '../../../support/databases.ts'
import { openShop, type Shop } from '../../../support/shop.ts'
import { enrolTestAgent, type TestAgent } from '../../../support/test-agent.ts'

onEveryDatabase('an alarm that an operator handled at the gate', (kind) => {
  let shop: Shop
  let gate: TestAgent
  let ids = 0
  beforeAll(async () => {
    shop = await openShop(kind)
    gate = await enrolTestAgent(shop)
    expect((await gate.call('reportDeviceHeartbeat', { deviceId: shop.devices.exit_gate })).status).toBe(200)
  })
  afterAll(() => shop.stop())

  const nowMs = () => shop.cloud.platform.clock.wall()
  const alarm = (change: Partial<ProtectionEvent> = {}) => ({
    type: 'protection.exception.raised' as const,
    eventId: `evt_alarm_${++ids}`,
    occurredAt: new Date(nowMs()).toISOString(),
    storeId: shop.storeId,
    deviceId: shop.devices.exit_gate,
    reason: 'gate_alarm',
    epc: `3034007D00011C4000${String(100_000 + ids)}`,
    ...change,
  })
  const handled = (eventId: string, step: AlarmStep, operatorId = 'op-gate') =>
    ({ kind: 'alarm_handled', eventId, step, operatorId }) as const
  const report = async (by: TestAgent, rows: Parameters<TestAgent['row']>[0][]) =>
    expect((await by.report(rows.map((row) => by.row(row)))).body).toMatchObject({ accepted: rows.length })
  /** Reports a new alarm of the gate, and returns its id. */
  const raised = async (change: Partial<ProtectionEvent> = {}) => {
    const event = alarm(change)
    await report(gate, [{ event }])
    return event.eventId
  }
  const dispositionOf = (eventId: string) =>
    shop.cloud.db.database.reads
      .selectFrom('alarm_disposition')
      .select(['disposition', 'operator_id', 'disposed_ms', 'recovered_cent'])
      .where('event_id', '=', eventId)
      .executeTakeFirst()
  const exceptionsOf = async (exceptionKind: string): Promise<Json[]> =>
    (await shop.ok('fetchExceptions', { storeId: shop.storeId, kind: exceptionKind, limit: 200 })).exceptions
  const exceptionOf = async (eventId: string) =>
    (await exceptionsOf('gate_alarm')).find((exception) => exception.eventId === eventId)

  it('is acknowledged, then disposed of; the disposition ends the exception, too', async () => {
    const event = alarm()
    // The alarm and its acknowledgement may arrive in one batch.
    await report(gate, [{ event }, { evidence: handled(event.eventId, 'acknowledged') }])
    expect(await exceptionOf(event.eventId)).toMatchObject({ state: 'acknowledged', acknowledgedBy: 'op-gate' })
    expect(await dispositionOf(event.eventId)).toBeUndefined()
    await report(gate, [{ evidence: handled(event.eventId, 'tag_left_on') }])
    expect(await dispositionOf(event.eventId)).toMatchObject({ disposition: 'tag_left_on', operator_id: 'op-gate' })
    const direct = await raised()
    await report(gate, [{ evidence: { ...handled(direct, 'real', 'op-2'), recoveredCent: 4_990 } }])
    expect(await dispositionOf(direct)).toMatchObject({ disposition: 'real', recovered_cent: 4_990 })
    expect(await exceptionOf(direct)).toMatchObject({ state: 'acknowledged', acknowledgedBy: 'op-2' })
  })

  it('counts by its time: the latest disposition wins, from the gate or from the cloud, in any order of arrival', async () => {
    const eventId = await raised()
    const firstMs = nowMs()
    await report(gate, [{ evidence: handled(eventId, 'real'), atMs: firstMs - 60_000 }])
    await shop.ok('disposeAlarm', { eventId, disposition: 'phantom', operatorId: 'op-office' })
    // An offline operator at the gate decided earlier than the office, and a later acknowledgement ends nothing.
    await report(gate, [
      { evidence: handled(eventId, 'staff_error'), atMs: firstMs - 30_000 },
      { evidence: handled(eventId, 'acknowledged') },
    ])
    expect(await dispositionOf(eventId)).toMatchObject({ disposition: 'phantom', operator_id: 'op-office' })
    await report(gate, [{ evidence: handled(eventId, 'unintentional', 'op-second'), atMs: nowMs() + 1 }])
    expect(await dispositionOf(eventId)).toMatchObject({ disposition: 'unintentional', operator_id: 'op-second' })
    // What arrived late is in the history, in the order of time.
    const { alarms } = await shop.ok('fetchAlarms', { storeId: shop.storeId, state: 'disposed' })
    const { earlier } = alarms.find((each: Json) => each.eventId === eventId)
    expect(earlier.map((each: Json) => each.disposition)).toEqual(['phantom', 'staff_error', 'real'])
  })

  it('never has a time in the future, so that the cloud can still replace it', async () => {
    const eventId = await raised()
    await report(gate, [{ evidence: handled(eventId, 'phantom'), atMs: nowMs() + 86_400_000 }])
    await shop.ok('disposeAlarm', { eventId, disposition: 'real', operatorId: 'op-office' })
    expect(await dispositionOf(eventId)).toMatchObject({ disposition: 'real' })
  })

  it('is rejected from every agent but that of the gate', async () => {
    const neighbour = await enrolTestAgent(shop)
    const stranger = await enrolTestAgent(shop, shop.otherStoreId)
    const real = await raised()
    // The neighbour may report an alarm of the gate, but may not handle it.
    const invented = alarm()
    await report(neighbour, [{ event: invented }])
    for (const eventId of [real, invented.eventId]) {
      for (const step of ['phantom', 'acknowledged'] as const) {
        for (const by of [neighbour, stranger]) await report(by, [{ evidence: handled(eventId, step, 'op-liar') }])
        expect(await dispositionOf(eventId)).toBeUndefined()
        expect(await exceptionOf(eventId)).toMatchObject({ state: 'open' })
      }
    }
    const subjects = (await exceptionsOf('foreign_evidence')).map(({ subject }) => subject)
    expect(subjects).toContain(`${neighbour.agentId}/alarm_handled`)
    const { exceptions } = await shop.ok('fetchExceptions', { storeId: shop.otherStoreId, kind: 'foreign_evidence' })
    expect(exceptions).toMatchObject([{ subject: `${stranger.agentId}/alarm_handled` }])
  })

  it('stays unapplied while the cloud does not know the alarm, or if the event is no alarm', async () => {
    const noAlarm = await raised({ reason: 'late_reads' })
    await report(gate, [{ evidence: handled('evt_never_seen', 'phantom') }, { evidence: handled(noAlarm, 'phantom') }])
    const subjects = (await exceptionsOf('unapplied')).map(({ subject }) => subject)
    expect(subjects).toEqual(expect.arrayContaining(['evt_never_seen', noAlarm]))
  })
})
