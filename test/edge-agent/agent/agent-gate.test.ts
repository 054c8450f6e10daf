import { afterEach, describe, expect, it } from 'vitest'
import { httpClient } from '../../../edge-agent/link/wire/http-client.ts'
import { messageSigner } from '../../../edge-agent/link/login/sign-messages.ts'
import { atLanes } from '../../support/at-lanes.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { fakeReader } from '../../support/fake-reader.ts'

describe('an agent at the exit gate', () => {
  let store: TestStore
  afterEach(() => store.stop())
  const { device, release, leave, synced, offline, events, product } = atLanes(() => store)

  it('rejects an offline exit by EPC alone, also after a restart: staff for a paid item, siren for an unpaid one', async () => {
    store = await openStore()
    const [{ epc }, { epc: unpaid }] = [
      await store.drive(store.shop.newItem(product())),
      await store.drive(store.shop.newItem(product())),
    ]
    await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    await store.until('the replica', () => store.agent.items.find('epc', epc)?.status === 'paid')
    await store.until('the disk', () => !store.agent.trust.isBehind)
    await offline()
    await store.restart()
    expect(
      await store.authorize({ deviceId: device('detacher'), protectionAction: 'verify_item_status', epc }),
    ).toMatchObject({ authorized: true, itemStatus: 'paid', offline: true })
    // The gate shows amber and calls staff. No siren sounds.
    expect(await leave({ epc })).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
      itemStatus: 'paid',
      offline: true,
      outcome: null,
      eventId: expect.any(String),
    })
    await store.until('amber', () => store.boards.gate.log.some((c) => c.coil === 2 && c.on))
    expect(store.boards.gate.log.filter((c) => c.coil !== 2)).toEqual([])
    expect(await leave({ epc: unpaid })).toMatchObject({
      authorized: false,
      reason: 'item_not_paid',
      itemStatus: 'sellable',
      offline: true,
    })
    await store.until('the siren', () => store.boards.gate.log.some((c) => c.coil === 1 && c.on))
    expect(store.pulses('gate')).toBe(0)
  })

  it('sounds the siren for an unpaid item, and reports it', async () => {
    store = await openStore()
    const { epc } = await store.drive(store.shop.newItem(product()))
    expect(await leave({ epc })).toMatchObject({ authorized: false, reason: 'item_not_paid', itemStatus: 'sellable' })
    await store.until('the siren', () => store.boards.gate.log.some((c) => c.coil === 1 && c.on))
    expect(store.pulses('gate')).toBe(0)
    const reported = await events()
    expect(reported.find((e) => e.type === 'protection.authorization.denied' && e.epc === epc)).toMatchObject({
      reason: 'item_not_paid',
    })
    expect(reported.find((e) => e.type === 'protection.exception.raised' && e.epc === epc)).toMatchObject({
      reason: 'gate_alarm',
      itemStatus: 'sellable',
    })
  })

  it('continues to alarm after the policy key was revoked, until a new policy arrives', async () => {
    const reader = fakeReader()
    store = await openStore({ reader: { device: reader.device, antennas: { inside: [1], outside: [2] } } })
    const { epc } = await store.drive(store.shop.newItem(product()))
    await store.until(
      'the replica',
      () => store.agent.items.find('epc', epc) !== undefined && store.agent.items.confirmedMs > 0,
    )
    const admin = await store.shop.cloud.key('admin', 'live')
    await offline()
    await store.shop.cloud.ok(admin, 'rotateSigningKey', { use: 'policy', revoke: true })
    // Only the key set of the cloud's answer reaches the agent.
    store.network(true)
    const { agentId, cloud } = store.identity
    const [http, messages] = [httpClient(cloud, store.fetch, store.world), messageSigner(store.identity)]
    const bodyOf = async (operation: string, body: object, token?: string) => {
      const answer = await http.post(operation, body, { timeoutMs: 3_000, ...(token !== undefined && { token }) })
      if (answer.kind !== 'answered') throw new Error(answer.kind)
      return answer.body
    }
    const { challenge } = await bodyOf('agentLogin', { agentId })
    const { accessToken } = await bodyOf('agentLogin', {
      agentId,
      assertion: messages.assertion(String(challenge), store.world.clock.wall()),
    })
    const { documents } = await bodyOf('fetchSignedDocuments', { have: {} }, String(accessToken))
    store.network(false)
    store.agent.trust.accept((documents as string[])[0] ?? '')
    expect(store.agent.trust.policy).toBeUndefined()
    const see = (antenna: number) =>
      reader.see([{ tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() }])
    for (const antenna of [1, 2, 2, 2]) {
      see(antenna)
      await store.world.advance(260)
    }
    await store.until('the siren', () => store.boards.gate.log.some((c) => c.coil === 1 && c.on))
  })

  it('lights amber for a rejected receipt, and offline for an unknown tag', async () => {
    store = await openStore()
    await leave({ receipt: 'HTTPS://SHOP.EXAMPLE/R/2KCE3IQBE4CEAAAA' })
    await store.until('amber', () => store.boards.gate.log.some((c) => c.coil === 2 && c.on))
    await offline()
    await leave({ epc: 'E280FFFFFFFFFFFFFFFFFFFF' })
    expect(store.boards.gate.log.some((c) => c.coil === 1 && c.on)).toBe(false)
  })

  it('releases a whole receipt with one actuation and one event, online and offline, and rejects it afterwards', async () => {
    store = await openStore()
    for (const isOnline of [true, false]) {
      const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 3 }])
      if (!isOnline) await offline()
      const before = store.pulses('gate')
      expect(await leave({ receipt })).toMatchObject({
        authorized: true,
        itemCount: 1,
        remaining: 0,
        offline: !isOnline,
      })
      expect(await leave({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
      expect(store.pulses('gate')).toBe(before + 1)
      store.network(true)
      await store.until('online', () => store.agent.link.isOnline)
      const reported = await events({ purchaseId: purchase.transactionId, type: 'protection.action.completed' })
      expect(reported).toHaveLength(1)
      expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
        status: 'UNLOADED',
      })
    }
  })

  it('repeats the signal for a second scan until a person passes, under the same redemption', async () => {
    store = await openStore({ passageSensor: true })
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    await leave({ receipt })
    expect(await leave({ receipt })).toMatchObject({ authorized: true })
    await store.until('the second signal', () => store.pulses('gate') === 2)
    store.boards.gate.setInput(1, true)
    await store.world.advance(500)
    expect(await leave({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(await events({ purchaseId: purchase.transactionId, type: 'protection.action.completed' })).toHaveLength(1)
  })

  it.each([
    ['failed', { kind: 'exception', code: 2, functions: [5] }, { authorized: true, outcome: 'confirmed' }, 1],
    ['is unknown', { kind: 'mute', functions: [5] }, { authorized: false, reason: 'manual_assistance_required' }, 0],
  ] as const)('does not treat a scan as the second one if the first release %s', async (_name, fault, then, pulses) => {
    store = await openStore({ passageSensor: true })
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    store.boards.gate.stick(0, false)
    const off = store.boards.gate.faults.on(fault)
    await leave({ receipt })
    off()
    store.boards.gate.stick(0, null)
    await store.until('the board', () => store.agent.status().devices.every((d) => d.state === 'ready'))
    await synced()
    const before = store.pulses('gate')
    expect(await leave({ receipt })).toMatchObject(then)
    await store.world.advance(1_500)
    store.boards.gate.setInput(1, true)
    await store.world.advance(500)
    expect(await leave({ receipt })).toMatchObject({ authorized: false })
    expect(store.pulses('gate') - before).toBe(pulses)
  })

  it('counts a status request for a receipt neither as first nor as second scan', async () => {
    store = await openStore({ passageSensor: true })
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const ask = () => leave({ receipt, protectionAction: 'verify_item_status' })
    await ask()
    expect(await leave({ receipt })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(await ask()).toMatchObject({ outcome: null })
    await store.world.advance(1_500)
    expect(store.pulses('gate')).toBe(1)
  })

  it('opens once for a receipt scanned twice before the decision, and not again after a person has passed', async () => {
    store = await openStore({ passageSensor: true })
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    const shown = [0, 1].map(() => store.agent.lanes.scan(device('gate'), receipt))
    await store.until('the opening', () => store.pulses('gate') === 1)
    store.boards.gate.setInput(1, true)
    const [first, second] = await store.drive(Promise.all(shown))
    expect([first, second]).toEqual([first, first])
    expect(first).toMatchObject({ kind: 'decision', answer: { authorized: true, outcome: 'confirmed' } })
    await store.world.advance(1_000)
    expect(store.boards.gate.log.some((c) => c.coil === 2 && c.on)).toBe(false)
    expect(await leave({ receipt })).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('gate')).toBe(1)
  })

  it.each([
    ['refuses with a Modbus exception', { kind: 'exception', code: 2, functions: [5] }, 'failed'],
    ['has a fault in the midst of it', { kind: 'exception', code: 4, functions: [5] }, 'unknown'],
    ['is mute after the command', { kind: 'mute', functions: [5] }, 'unknown'],
    ['garbles the answer', { kind: 'garble', functions: [5] }, 'unknown'],
    ['is unplugged between command and answer', { kind: 'cut-before-answer', functions: [5], times: 1 }, 'unknown'],
  ] as const)('when the board %s, the outcome is told and nothing is sent twice', async (_name, fault, outcome) => {
    store = await openStore()
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    store.boards.station.stick(0, false)
    const off = store.boards.station.faults.on(fault)
    expect(await release(receipt)).toMatchObject({ authorized: true, outcome })
    off()
    expect(store.pulses('station')).toBeLessThanOrEqual(1)
    const reported = await events({ purchaseId: purchase.transactionId, type: 'protection.action.failed' })
    expect(reported).toEqual([expect.objectContaining({ outcome })])
    store.boards.station.stick(0, null)
    await store.until('the board', () => store.agent.status().devices.every((d) => d.state === 'ready'))
    const again = await release(receipt)
    expect(again).toMatchObject(
      outcome === 'failed' ? { authorized: true } : { authorized: false, reason: 'manual_assistance_required' },
    )
  })
})
