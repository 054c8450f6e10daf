// @module-tag extended
import { copyFileSync, cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { authorizationIn } from '../../host/credential-file.ts'
import type { Json } from '../support/cloud.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'
import { startProcess, type RunningProcess } from '../support/processes.ts'

/** Runs real agents with a ledger restored from a backup, and with a second copy of their folder. */
describe('a restored or copied ledger of a real agent', () => {
  let journey: Journey
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>

  beforeAll(async () => {
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    journey = await openJourney({
      boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
    })
    await settled()
  })
  afterAll(async () => {
    await journey.stop()
    for (const board of Object.values(boards)) await board.close()
  })

  const data = () => join(journey.folder, 'edge')
  const settled = () =>
    eventually('ready boards and an empty outbox', async () => {
      const { devices, online, queueDepth } = await journey.status()
      return online === true && queueDepth === 0 && devices.every((d: Json) => d.state === 'ready')
    })
  const buy = (quantity = 1) => journey.buy([{ ean: String(journey.products[0]?.ean), quantity }])
  const show = (shown: Json) =>
    journey.authorize({ deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label', ...shown })
  const tokenOf = async (transactionId: string) =>
    (
      await journey.api.call('verifySecurityTagDeactivation', {
        purchaseId: transactionId,
        deviceId: journey.devices.pos_deactivator,
      })
    )['authorizationToken']
  const raised = async () =>
    (
      (await journey.api.call('fetchExceptions', { storeId: journey.storeId })) as { exceptions: Json[] }
    ).exceptions.map(({ kind }) => kind as string)
  const cable = async (isIn: boolean) => {
    if (isIn) journey.wire.restore()
    else journey.wire.cut()
    await eventually(isIn ? 'online' : 'offline', async () => (await journey.status()).online === isIn)
  }

  it('serves customers while a copy runs, and after staff have resolved the fork', async () => {
    await settled()
    await journey.agent.stop()
    const folder = join(journey.folder, 'copy')
    cpSync(data(), folder, { recursive: true })
    await journey.startAgent()
    await settled()
    expect(await show({ receipt: (await buy()).receipt })).toMatchObject({ authorized: true })
    await settled()
    const copy: RunningProcess = await startProcess([
      'edge',
      '--data',
      folder,
      '--config',
      join(journey.folder, 'edge.json'),
      '--port',
      '0',
      // A separate folder, as on another machine.
      '--runtime-dir',
      join(journey.folder, 'copy-run'),
    ])
    try {
      const askCopy = async (body: Json) =>
        (await (
          await fetch(`${copy.ready['url']}/v1/authorize`, {
            method: 'POST',
            headers: { 'content-type': 'application/json', ...authorizationIn(folder) },
            body: JSON.stringify(body),
          })
        ).json()) as Json
      const request = { deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label' }
      await askCopy({ ...request, receipt: 'nonsense' })
      await eventually('the exception agent_fork', async () => (await raised()).includes('agent_fork'))
      await eventually(
        'a detected fork on both agents',
        async () =>
          (await journey.status()).ledgerDoubt === 'forked' &&
          ((await (await fetch(`${copy.ready['url']}/v1/status`, { headers: authorizationIn(folder) })).json()) as Json)
            .ledgerDoubt === 'forked',
      )
      // They take over each other's broker connection, deny while they have none, and lose answers: a right whose answer
      // was lost stays leased until its token has expired, because a fork makes it unknown who used it.
      for (const ask of [show, (body: Json) => askCopy({ ...request, ...body })])
        await eventually('a release', async () => (await ask({ receipt: (await buy()).receipt })).authorized)
      const pulses = boards.station.pulses()
      const { transactionId, receipt } = await buy(2)
      const token = await tokenOf(transactionId)
      for (const shown of [{ token }, { receipt }, { token }, { receipt }])
        for (const ask of [show, (body: Json) => askCopy({ ...request, ...body })]) await ask(shown)
      expect(boards.station.pulses()).toBeLessThanOrEqual(pulses + 2)
    } finally {
      await copy.stop()
    }
    const { agents } = (await journey.api.call('fetchAgents', { storeId: journey.storeId })) as { agents: Json[] }
    await journey.api.call('resolveAgentFork', { agentId: agents[0].agentId, decision: 'trust' })
    // This ledger lacks the rows of the copy, so the agent treats it as restored until the copy's tokens have ended.
    // The copies have taken over each other's connection for a while, so the agent may wait 15 s before its next try.
    await eventually('trusted', async () => (await journey.status()).ledgerDoubt === 'put_back')
    await settled()
    expect(await show({ receipt: (await buy()).receipt })).toMatchObject({ authorized: true, offline: false })
    await settled()
    const kinds = await raised()
    expect(kinds).toContain('agent_fork')
    expect(kinds).not.toContain('double_redeem')
  })

  it('releases nothing twice and serves customers while the cloud is online', async () => {
    const before = await buy()
    expect(await show({ receipt: before.receipt })).toMatchObject({ authorized: true })
    await settled()
    await journey.agent.stop()
    copyFileSync(join(data(), 'ledger.db'), join(journey.folder, 'backup.db'))
    await journey.startAgent()
    await settled()
    const since = await buy()
    expect(await show({ receipt: since.receipt })).toMatchObject({ authorized: true })
    await settled()
    await journey.agent.stop()
    for (const suffix of ['-wal', '-shm']) rmSync(join(data(), `ledger.db${suffix}`), { force: true })
    copyFileSync(join(journey.folder, 'backup.db'), join(data(), 'ledger.db'))
    await journey.startAgent()
    await settled()
    await eventually('the exception ledger_rollback', async () => (await raised()).includes('ledger_rollback'))

    // The restored ledger has no row about this receipt.
    const pulses = boards.station.pulses()
    expect(await show({ receipt: since.receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    const [byReceipt, byToken, later] = [await buy(2), await buy(2), await buy()]
    const token = await tokenOf(byToken.transactionId)
    for (const shown of [{ receipt: byReceipt.receipt }, { receipt: byReceipt.receipt }, { token }, { token }])
      expect(await show(shown)).toMatchObject({ authorized: true, outcome: 'confirmed' })
    await settled()
    for (const shown of [{ receipt: byReceipt.receipt }, { token }, { receipt: byToken.receipt }])
      expect(await show(shown)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    await cable(false)
    expect(await show({ receipt: later.receipt })).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
      offline: true,
    })
    await cable(true)
    await settled()
    expect(await show({ receipt: later.receipt })).toMatchObject({ authorized: true })
    expect(boards.station.pulses()).toBe(pulses + 5)
    expect(await raised()).not.toContain('double_redeem')
  })
})
