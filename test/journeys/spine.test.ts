import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Json } from '../support/cloud.ts'
import { EXTENDED } from '../support/extended.ts'
import { itInFullSize } from '../support/full-size.ts'
import { readQr } from '../support/qr.ts'
import { newMigratedPostgres, onEveryDatabase } from '../support/databases.ts'
import { eventually, openJourney, type Journey } from '../support/journey.ts'
import { independentBoard, type IndependentBoard } from '../support/modbus-serial-board.ts'

onEveryDatabase('a store with real processes', (kind) => {
  let journey: Journey
  let postgres: { url: string; remove(): Promise<void> } | undefined
  let boards: Record<'station' | 'detacher' | 'gate', IndependentBoard>

  beforeAll(async () => {
    boards = { station: await independentBoard(), detacher: await independentBoard(), gate: await independentBoard() }
    postgres = kind === 'postgres' ? await newMigratedPostgres() : undefined
    journey = await openJourney({
      ...(postgres && { databaseUrl: postgres.url }),
      boards: { station: boards.station.address, detacher: boards.detacher.address, gate: boards.gate.address },
    })
    await eventually('the boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
  })
  afterAll(async () => {
    await journey.stop()
    for (const board of Object.values(boards)) await board.close()
    await postgres?.remove()
  })

  const release = (receipt: string) =>
    journey.authorize({ deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label', receipt })
  const buyOne = () => journey.buy([{ ean: journey.products[0].ean, quantity: 1 }])
  const purchase = (transactionId: string) => journey.api.call('fetchPurchase', { transactionId }) as Promise<Json>
  const synced = () => eventually('an empty outbox', async () => (await journey.status()).queueDepth === 0)
  /** Changes the policy, and waits for the agent: later offline steps must not meet the policy before. */
  const changePolicy = async (policy: Json) => {
    const { policyVersion } = await journey.status()
    await journey.api.call('updateProtectionPolicy', { storeId: journey.storeId, policy })
    await eventually('the policy', async () => (await journey.status()).policyVersion !== policyVersion)
  }
  const offline = async () => {
    journey.wire.cut()
    await eventually('offline', async () => (await journey.status()).online === false)
  }
  const online = async () => {
    journey.wire.restore()
    await eventually('online', async () => (await journey.status()).online === true)
  }

  it('1. buys: check-in, checkout with tags, payment, QR code, receipt', async () => {
    const { epc } = { epc: 'E28011700000020000000001' }
    await journey.api.call('registerProtectedItems', {
      storeId: journey.storeId,
      items: [{ epc, ean: journey.products[1].ean, tagId: 'HT-77' }],
    })
    const { sessionId } = await journey.api.call('checkIn', { storeId: journey.storeId, userId: 'u1' })
    const items = [
      { ean: journey.products[0].ean, quantity: 1 },
      { quantity: 1, epcs: [epc], tagIds: ['HT-77'] },
    ]
    const { transactionId, checkoutUrl } = (await journey.api.call('startCheckout', { sessionId, items })) as Json
    expect(await (await fetch(checkoutUrl)).text()).toContain('Pay')
    const paid = await fetch(checkoutUrl, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'result=paid',
    })
    expect(await paid.text()).toContain('Paid')
    expect(await purchase(transactionId)).toMatchObject({ status: 'SUCCESS', securityTagStatus: 'pending' })
    const qr = (await journey.api.call('generateReceiptQR', { purchaseId: transactionId })) as Json
    expect(readQr(Buffer.from(qr.imageBase64, 'base64'))).toBe(qr.url)
    const receipt = (await (await fetch(`${journey.baseUrl}/getReceiptFromToken?token=${qr.token}`)).json()) as Json
    expect(receipt).toMatchObject({
      id: transactionId,
      items: [{ name: journey.products[0].name }, { name: journey.products[1].name }],
    })
  })

  it('2. releases online: scan over the wire, pulse on a Modbus board, confirmation, report', async () => {
    const { transactionId, receipt } = await buyOne()
    const before = boards.station.pulses()
    await journey.scanners.station.garbage(100)
    await journey.scanners.station.halfLine('2KCE3IQ')
    await journey.scanners.station.scan(receipt, 'Q1')
    await eventually('deactivated', async () => (await purchase(transactionId)).securityTagStatus === 'deactivated')
    expect(boards.station.pulses()).toBe(before + 1)
    const events = await journey.events({ purchaseId: transactionId })
    expect(events.map((e) => e.type)).toEqual(
      expect.arrayContaining([
        'protection.authorization.requested',
        'protection.authorization.granted',
        'protection.action.completed',
      ]),
    )
    expect(events.find((e) => e.type === 'protection.action.completed')).toMatchObject({
      outcome: 'confirmed',
      offline: false,
      authorizationState: 'redeemed',
      laneId: 'lane_1',
    })
  })

  it('2b. accepts the input of a keyboard-wedge scanner on the page', async () => {
    const { receipt } = await buyOne()
    const { body } = await journey.local('/v1/scan', { deviceId: journey.devices.pos_deactivator, text: receipt })
    expect(body).toMatchObject({ kind: 'decision', answer: { authorized: true, outcome: 'confirmed' } })
  })

  it('2c. keeps nothing about the customer at the agent', async () => {
    const customer = 'erika.mustermann@example.org'
    const { sessionId } = await journey.api.call('checkIn', { storeId: journey.storeId, userId: customer })
    const items = [{ ean: journey.products[0].ean, quantity: 1 }]
    const { transactionId } = (await journey.api.call('startCheckout', { sessionId, items })) as Json
    await journey.api.call('completeTestCheckout', { transactionId })
    const { url } = (await journey.api.call('generateReceiptQR', { purchaseId: transactionId })) as Json
    expect(await release(url)).toMatchObject({ authorized: true })
    await synced()
    expect(JSON.stringify(await purchase(transactionId))).toContain(customer)
    const edge = join(journey.folder, 'edge')
    const files = readdirSync(edge, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const holding = (text: string) =>
      files.map(({ name, parentPath }) => join(parentPath, name)).filter((file) => readFileSync(file).includes(text))
    expect(files.map(({ name }) => name)).toEqual(expect.arrayContaining(['ledger.db']))
    // The agent stores these ids, so the search reads the right files.
    expect(holding(journey.storeId)).not.toEqual([])
    expect(holding(journey.devices.pos_deactivator)).not.toEqual([])
    for (const text of [customer, 'mustermann', String(sessionId)]) expect(holding(text)).toEqual([])
  })

  it('3. detaches hard tags by EPC, tagUid and tagId; denies unpaid ones, and lines without a tag', async () => {
    const detach = (body: Json) =>
      journey.authorize({
        deviceId: journey.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        ...body,
      })
    const product = journey.products[2]
    for (const [i, name] of (['epc', 'tagUid', 'tagId'] as const).entries()) {
      const item = { epc: `E2801170000002000000010${i}`, tagUid: `0411223344558${i}`, tagId: `HT-A${i}` }
      await journey.api.call('registerProtectedItems', {
        storeId: journey.storeId,
        items: [{ ...item, ean: product.ean }],
      })
      expect(await detach({ [name]: item[name] })).toMatchObject({
        authorized: false,
        reason: 'item_not_paid',
        itemStatus: 'sellable',
      })
      await journey.buy([{ ean: product.ean, quantity: 1, epcs: [item.epc] }])
      expect(await detach({ [name]: item[name] })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    }
    const byLine = await journey.buy([{ ean: product.ean, quantity: 1 }])
    // A self-service reader releases only the tag that it reads.
    expect(await detach({ itemLineId: byLine.items[0]?.itemLineId })).toMatchObject({
      authorized: false,
      reason: 'tag_not_read',
    })
    expect(boards.detacher.pulses()).toBe(3)

    const { policy } = (await journey.api.call('fetchProtectionPolicy', { storeId: journey.storeId })) as Json
    await changePolicy({
      ...policy,
      allowedActionsByCategory: { [product.category]: { detach_hard_tag: ['staff_assisted'] } },
    })
    const epc = 'E28011700000020000000200'
    await journey.api.call('registerProtectedItems', { storeId: journey.storeId, items: [{ epc, ean: product.ean }] })
    await journey.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    expect(await detach({ epc })).toMatchObject({ authorized: false, reason: 'workflow_not_allowed' })
    await changePolicy(policy)
  })

  it('4. offline: honours a token and a receipt once each, also after SIGKILL; reports once', async () => {
    const [withReceipt, withToken] = [await buyOne(), await buyOne()]
    const { authorizationToken: token } = await journey.api.call('verifySecurityTagDeactivation', {
      purchaseId: withToken.transactionId,
      deviceId: journey.devices.pos_deactivator,
    })
    const byToken = () =>
      journey.authorize({ deviceId: journey.devices.pos_deactivator, protectionAction: 'deactivate_label', token })
    const before = boards.station.pulses()
    await offline()
    expect(await release(withReceipt.receipt)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
    expect(await byToken()).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
    expect(await release(withReceipt.receipt)).toMatchObject({
      authorized: false,
      reason: 'already_redeemed',
      offline: true,
    })
    expect(await byToken()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    const status = await journey.status()
    expect(status).toMatchObject({ online: false, offlineSince: expect.any(String) })
    expect(status.queueDepth).toBeGreaterThanOrEqual(4)

    await journey.agent.kill()
    await journey.startAgent()
    await eventually('the boards', async () => (await journey.status()).devices.every((d: Json) => d.state === 'ready'))
    expect(await release(withReceipt.receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await byToken()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(boards.station.pulses()).toBe(before + 2)

    await online()
    await synced()
    for (const { transactionId } of [withReceipt, withToken]) {
      const events = await journey.events({ purchaseId: transactionId })
      expect(events.filter((e) => e.type === 'protection.device.offline')).toHaveLength(1)
      expect(events.filter((e) => e.type === 'protection.action.completed')).toHaveLength(1)
      expect(new Set(events.map((e) => e.eventId)).size).toBe(events.length)
      expect(await purchase(transactionId)).toMatchObject({ securityTagStatus: 'deactivated' })
    }
  })

  // Kills of a cloud with SQLite are the work of test/faults.
  const itKills = kind === 'postgres' ? it : itInFullSize
  itKills('4b. continues when the cloud’s process is killed, and reconnects later', EXTENDED, async () => {
    const { transactionId, receipt } = await buyOne()
    await journey.cloud.kill()
    expect(await release(receipt)).toMatchObject({ authorized: true, offline: true, outcome: 'confirmed' })
    await journey.startCloud()
    await eventually('online', async () => (await journey.status()).online === true)
    await synced()
    expect(await purchase(transactionId)).toMatchObject({ securityTagStatus: 'deactivated' })
    expect(await release(receipt)).toMatchObject({ authorized: false, reason: 'already_redeemed', offline: false })
  })

  it('5. unpaid: denies, sounds the siren, reports the reason', async () => {
    const epc = 'E28011700000020000000300'
    await journey.api.call('registerProtectedItems', {
      storeId: journey.storeId,
      items: [{ epc, ean: journey.products[0].ean }],
    })
    await journey.scanners.gate.scan(epc)
    await eventually('the siren', async () => boards.gate.pulses(1) === 1)
    expect(boards.gate.pulses(0)).toBe(0)
    await synced()
    const events = await journey.events()
    expect(events.find((e) => e.type === 'protection.authorization.denied' && e.epc === epc)).toMatchObject({
      reason: 'item_not_paid',
      deviceId: journey.devices.exit_gate,
    })
    expect(events.find((e) => e.type === 'protection.exception.raised' && e.epc === epc)).toMatchObject({
      reason: 'gate_alarm',
    })
  })

  it('5b. lets a receipt leave once', async () => {
    const { receipt, transactionId } = await buyOne()
    await journey.scanners.gate.scan(receipt)
    await eventually('the pulse of the gate', async () => boards.gate.pulses(0) === 1)
    await eventually('UNLOADED', async () => (await purchase(transactionId)).status === 'UNLOADED')
    await journey.scanners.gate.scan(`${receipt}\t`)
    await eventually('amber', async () => boards.gate.pulses(2) >= 1)
    expect(boards.gate.pulses(0)).toBe(1)
  })

  it('agent and cloud accepted all documents and evidence of each other', async () => {
    const refused = (await journey.events()).filter(
      (e) => e.reason === 'refused_document' || e.reason === 'unapplied' || e.reason === 'foreign_evidence',
    )
    expect(refused).toEqual([])
    expect(journey.cloud.stderr()).not.toMatch(/"level":(50|60)/)
  })

  it('writes no secret to its logs', () => {
    const logs = journey.cloud.stderr() + journey.agent.stderr()
    expect(logs).not.toContain(journey.key)
    expect(logs).not.toMatch(/2KCE3IQBE4CE[A-Z2-7]{20}|eyJhbGciOi|untag_(test|live)_|untag_agent_/)
  })
})
