// @module-tag extended
import { cpSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'

/** Runs the built programs. */
describe('an agent whose folder is restored from a copy while the cloud is unreachable', () => {
  let journey: Journey
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>

  beforeAll(async () => {
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    journey = await openJourney({
      boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
    })
  })
  afterAll(async () => {
    await journey.stop()
    for (const board of Object.values(boards)) await board.close()
  })

  const data = () => join(journey.folder, 'edge')
  const backup = () => join(journey.folder, 'edge-backup')
  const buy = () => journey.buy([{ ean: String(journey.products[0]?.ean), quantity: 1 }])
  const show = (shown: Json) =>
    journey.authorize({ deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label', ...shown })
  const ready = (isOnline: boolean) =>
    eventually(isOnline ? 'online' : 'offline', async () => {
      const { devices, online } = await journey.status()
      return online === isOnline && devices.every((d: Json) => d.state === 'ready')
    })

  it('denies the receipt and the token that it released before', async () => {
    await ready(true)
    const [byReceipt, byToken] = [await buy(), await buy()]
    const { authorizationToken: token } = (await journey.api.call('verifySecurityTagDeactivation', {
      purchaseId: byToken.transactionId,
      deviceId: journey.devices.pos_deactivator,
    })) as Json
    await eventually('everything sent', async () => (await journey.status()).queueDepth === 0)
    await journey.agent.stop()
    cpSync(data(), backup(), { recursive: true })
    await journey.startAgent()
    await ready(true)
    journey.wire.cut()
    await ready(false)
    const shown = [{ receipt: byReceipt.receipt }, { token }]
    for (const each of shown) expect(await show(each)).toMatchObject({ authorized: true, offline: true })
    const pulses = boards.station.pulses()

    await journey.agent.stop()
    rmSync(data(), { recursive: true })
    cpSync(backup(), data(), { recursive: true })
    await journey.startAgent()
    await ready(false)
    expect((await journey.status()).ledgerDoubt).toBe('put_back')
    for (const each of shown)
      expect(await show(each)).toMatchObject({ authorized: false, reason: 'manual_assistance_required' })
    expect(boards.station.pulses()).toBe(pulses)
    const run = join(journey.folder, 'run')
    expect(statSync(run).mode & 0o777).toBe(0o700)
    expect(readdirSync(run).map((name) => statSync(join(run, name)).mode & 0o777)).toEqual([0o600])

    journey.wire.restore()
    await ready(true)
    const { exceptions } = (await journey.api.call('fetchExceptions', { storeId: journey.storeId })) as {
      exceptions: Json[]
    }
    expect(exceptions.map(({ kind }) => kind)).toContain('ledger_rollback')
  })
})
