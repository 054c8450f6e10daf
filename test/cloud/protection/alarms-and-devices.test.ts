import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { inFullSizeOnEveryDatabase } from '../../support/databases.ts'
import { openShop, type Shop } from '../../support/shop.ts'
import { enrolTestAgent } from '../../support/test-agent.ts'

inFullSizeOnEveryDatabase('alarms and devices', (kind) => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop(kind)
  })
  afterAll(() => shop.stop())

  describe('disposeAlarm', () => {
    const raise = async (eventId: string, fields: Json = {}) => {
      const occurredAt = new Date(shop.cloud.platform.clock.wall()).toISOString()
      const event = {
        type: 'protection.exception.raised',
        eventId,
        occurredAt,
        storeId: shop.storeId,
        deviceId: shop.devices.exit_gate,
        reason: 'gate_alarm',
        epc: '3034007D00011C400000000B',
        itemStatus: 'sellable',
        ...fields,
      }
      expect(await shop.ok('reportProtectionEvents', { events: [event] })).toMatchObject({ accepted: 1 })
    }

    it('stores the finding of the staff; a later finding replaces it', async () => {
      await raise('alarm-1')
      const first = { eventId: 'alarm-1', disposition: 'real', operatorId: 'op-7', recoveredValue: 89.9 }
      expect(await shop.ok('disposeAlarm', first)).toMatchObject({
        ...first,
        storeId: shop.storeId,
        deviceId: shop.devices.exit_gate,
        epc: '3034007D00011C400000000B',
        itemStatus: 'sellable',
        reason: 'gate_alarm',
      })
      expect(
        await shop.ok('disposeAlarm', { eventId: 'alarm-1', disposition: 'unintentional', operatorId: 'op-8' }),
      ).toMatchObject({ disposition: 'unintentional', operatorId: 'op-8' })
      const rows = await shop.cloud.db.database.reads
        .selectFrom('alarm_disposition')
        .selectAll()
        .where('event_id', '=', 'alarm-1')
        .execute()
      expect(rows).toEqual([
        expect.objectContaining({ disposition: 'unintentional', operator_id: 'op-8', recovered_cent: null }),
      ])
    })

    it('shows the finding, the operator and the time of each alarm in fetchProtectionEvents', async () => {
      await raise('alarm-3')
      await raise('alarm-4')
      const disposed = await shop.ok('disposeAlarm', {
        eventId: 'alarm-3',
        disposition: 'real',
        operatorId: 'op-9',
        recoveredValue: 12.5,
      })
      const { events } = await shop.ok('fetchProtectionEvents', {
        storeId: shop.storeId,
        type: 'protection.exception.raised',
        deviceId: shop.devices.exit_gate,
        limit: 500,
      })
      const alarmOf = (eventId: string) => events.find((event: Json) => event.eventId === eventId).alarm
      expect(alarmOf('alarm-3')).toEqual({
        disposition: 'real',
        operatorId: 'op-9',
        recoveredValue: 12.5,
        disposedAt: disposed.disposedAt,
      })
      expect(alarmOf('alarm-4')).toBeUndefined()
    })

    it('rejects other events, alarms of other accounts, and a recovered value for a phantom', async () => {
      await raise('no-alarm', { reason: 'late_reads' })
      await raise('alarm-2')
      const dispose = (fields: Json) =>
        shop.call('disposeAlarm', { disposition: 'phantom', operatorId: 'op-7', ...fields })
      for (const eventId of ['no-alarm', 'evt_nobody']) expect((await dispose({ eventId })).status).toBe(404)
      const stranger = await shop.cloud.key('secret', 'test', { account: 'Deichgold' })
      expect(
        (await shop.cloud.call(stranger, 'disposeAlarm', { eventId: 'alarm-2', disposition: 'real', operatorId: 'x' }))
          .status,
      ).toBe(404)
      expect(await dispose({ eventId: 'alarm-2', recoveredValue: 5 })).toMatchObject({
        status: 400,
        body: { details: [{ path: 'recoveredValue' }] },
      })
      expect((await dispose({ eventId: 'alarm-2' })).status).toBe(200)
    })
  })

  it('fills settings that a policy of an older release lacks with their defaults', async () => {
    const { policy } = await shop.ok('fetchProtectionPolicy', { storeId: shop.otherStoreId })
    const { gate, ...older } = policy
    await shop.cloud.db.database.write((db) =>
      db
        .updateTable('store')
        .set({ policy: JSON.stringify(older) })
        .where('store_id', '=', shop.otherStoreId)
        .execute(),
    )
    expect((await shop.ok('fetchProtectionPolicy', { storeId: shop.otherStoreId })).policy).toEqual({ ...older, gate })
    const severity = [{ category: 'Socken', severity: 'notify' }]
    expect(
      (
        await shop.ok('updateProtectionPolicy', {
          storeId: shop.otherStoreId,
          policy: { ...older, gate: { severity } },
        })
      ).policy.gate,
    ).toEqual({ ...gate, severity })
    expect(
      (await shop.call('updateProtectionPolicy', { storeId: shop.otherStoreId, policy: { gate: { ownMasks: ['*'] } } }))
        .status,
    ).toBe(400)
  })

  describe('updateDevice', () => {
    it('changes only the fields of the request and accepts the whole record of a response', async () => {
      const device = await shop.ok('registerDevice', {
        storeId: shop.storeId,
        deviceType: 'exit_gate',
        name: 'Tor 1',
        laneId: 'lane-1',
      })
      const { success: _success, ...record } = device
      expect(await shop.ok('updateDevice', record)).toEqual(device)
      const changed = await shop.ok('updateDevice', {
        deviceId: device.deviceId,
        name: 'Ausgang Nord',
        laneId: null,
        gateId: 'gate-north',
        canReadHfNfc: true,
      })
      const { laneId: _laneId, ...rest } = device
      expect(changed).toEqual({
        ...rest,
        name: 'Ausgang Nord',
        gateId: 'gate-north',
        canReadHfNfc: true,
        supportedTechnologies: ['uhf_rfid', 'hf_nfc'],
      })
      const { devices } = await shop.ok('fetchDevices', { storeId: shop.storeId })
      const { success: _ok, ...listed } = changed
      expect(devices.find((d: Json) => d.deviceId === device.deviceId)).toEqual({
        ...listed,
        health: { state: 'unknown', unknownBecause: 'no_agent' },
      })
    })

    it('rejects system fields, devices of other accounts and decommissioned devices', async () => {
      const device = await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'exit_gate' })
      const { deviceId } = device
      expect(await shop.call('updateDevice', { deviceId, deviceType: 'handheld_reader' })).toMatchObject({
        status: 400,
        body: { details: [{ path: 'deviceType', code: 'system_field' }] },
      })
      const stranger = await shop.cloud.key('secret', 'test', { account: 'Deichgold' })
      expect((await shop.cloud.call(stranger, 'updateDevice', { deviceId, name: 'x' })).status).toBe(404)
      await shop.ok('decommissionDevice', { deviceId })
      expect(await shop.call('updateDevice', { deviceId, name: 'x' })).toMatchObject({
        status: 409,
        body: { reason: 'device_revoked' },
      })
    })

    it('assigns a device to an agent of its store; a heartbeat cannot move it', async () => {
      const [one, two, elsewhere] = [
        await enrolTestAgent(shop),
        await enrolTestAgent(shop),
        await enrolTestAgent(shop, shop.otherStoreId),
      ]
      const { deviceId } = await shop.ok('registerDevice', { storeId: shop.storeId, deviceType: 'pos_deactivator' })
      expect((await shop.call('updateDevice', { deviceId, agentId: elsewhere.agentId })).status).toBe(404)
      const version = async () =>
        (
          await shop.cloud.db.database.reads
            .selectFrom('store')
            .select('document_version')
            .where('store_id', '=', shop.storeId)
            .executeTakeFirstOrThrow()
        ).document_version
      const before = await version()
      expect(await shop.ok('updateDevice', { deviceId, agentId: one.agentId })).toMatchObject({ agentId: one.agentId })
      expect(await version()).toBeGreaterThan(before)
      expect((await two.call('reportDeviceHeartbeat', { deviceId })).body).toMatchObject({
        reason: 'device_of_another_agent',
      })
      expect((await one.call('reportDeviceHeartbeat', { deviceId, firmwareVersion: '2.1' })).status).toBe(200)
    })
  })
})
