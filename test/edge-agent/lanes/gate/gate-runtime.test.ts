import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, describe, expect, it } from 'vitest'
import { encodeSgtin, splitGtin14 } from '../../../../policy/gs1/sgtin.ts'
import { rowHash } from '../../../../policy/journal.ts'
import { openReceipt } from '../../../../policy/receipts/receipt-token.ts'
import type { Json } from '../../../support/cloud.ts'
import { openStore, type TestStore } from '../../../support/store.ts'
import { fakeReader } from '../../../support/fake-reader.ts'

/** A tag of this product whose item is not registered. */
function sgtin(ean: string): string {
  const parts = splitGtin14(`0${ean}`, 7)
  const encoded = parts && encodeSgtin({ scheme: 'sgtin-96', filter: 1, ...parts, serial: '4711' })
  if (!encoded?.ok) throw new Error(`no SGTIN for ${ean}`)
  return encoded.hex
}

describe('a gate with a reader, through the whole agent', () => {
  let store: TestStore
  let reader: ReturnType<typeof fakeReader>
  afterEach(() => store.stop())

  async function open(options: { broker?: boolean } = {}): Promise<void> {
    reader = fakeReader()
    store = await openStore({
      ...options,
      reader: { device: reader.device, antennas: { inside: [1, 2], outside: [3] } },
    })
  }
  const product = () => store.shop.products[0]
  const newItem = async () => {
    const { epc } = await store.drive(store.shop.newItem(product()))
    await store.until(
      'the replica',
      () => store.agent.items.find('epc', epc) !== undefined && store.agent.items.confirmedMs > 0,
    )
    return epc
  }
  const see = (epc: string, antenna: number, agoMs = 0) =>
    reader.see([{ tag: { epc }, antenna, rssiDbm: -50, seenAtMs: store.world.clock.elapsed() - agoMs }])
  /** Carries a tag out, slowly enough for a new gate that still learns the stationary tags around it. */
  const carryOut = async (epc: string) => {
    see(epc, 1)
    for (let i = 0; i < 3; i++) {
      await store.world.advance(260)
      see(epc, 3)
    }
    await store.world.advance(60)
  }
  const isOn = (coil: number) => store.boards.gate.log.findLast((change) => change.coil === coil)?.on === true
  const storedEvents = async (): Promise<Json[]> => {
    await store.world.advance(300)
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
    return (await store.drive(store.shop.ok('fetchProtectionEvents', { storeId: store.shop.storeId, limit: 500 })))
      .events
  }

  it('sounds the siren for an item on hold, and the cloud opens an assistance request', async () => {
    await open()
    const epc = await newItem()
    const { storeId } = store.shop
    await store.drive(store.shop.ok('updateItemStatus', { storeId, epc, itemStatus: 'exception_hold' }))
    await store.until('the hold', () => store.agent.items.find('epc', epc)?.status === 'exception_hold')
    await carryOut(epc)
    expect(isOn(1)).toBe(true)
    expect(await storedEvents()).toContainEqual(
      expect.objectContaining({ reason: 'gate_alarm', epc, itemStatus: 'exception_hold' }),
    )
    const { requests } = await store.drive(store.shop.ok('fetchAssistanceRequests', { storeId }))
    expect(requests).toMatchObject([{ reason: 'exception_hold', deviceId: store.shop.devices.exit_gate }])
  })

  it('sounds the siren of its board for an unpaid tag, reports it to the cloud, and passes a paid one', async () => {
    await open()
    const [unpaid, paid] = [await newItem(), await newItem()]
    await store.buy([{ ean: product().ean, quantity: 1, epcs: [paid] }])
    await store.until('the payment', () => store.agent.items.find('epc', paid)?.status === 'paid')
    await carryOut(paid)
    await carryOut('E280FFFFFFFFFFFFFFFFFFFF')
    expect([isOn(1), isOn(2)]).toEqual([false, true])
    await carryOut(unpaid)
    expect(isOn(1)).toBe(true)
    await store.world.advance(1_000)
    const events = await storedEvents()
    expect(
      events.filter((e) => e.reason === 'gate_alarm').map((e) => [e.epc, e.itemStatus, e.gateId !== undefined]),
    ).toEqual([
      ['E280FFFFFFFFFFFFFFFFFFFF', undefined, true],
      [unpaid, 'sellable', true],
    ])
    expect(events.find((e) => e.epc === paid && e.type === 'protection.action.completed')).toMatchObject({
      protectionAction: 'authorize_exit',
      itemStatus: 'paid',
    })
  })

  it('sounds the siren offline, too; with items older than 90 s it lights only amber', async () => {
    await open()
    const [first, second] = [await newItem(), await newItem()]
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    await carryOut(first)
    expect(isOn(1)).toBe(true)
    await store.world.advance(100_000)
    await carryOut(second)
    expect([isOn(1), isOn(2)]).toEqual([false, true])
    await store.world.advance(10_000)
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    const details = (await storedEvents()).filter((e) => e.reason === 'gate_alarm').map((e) => e.detail)
    expect(details).toEqual([
      expect.stringContaining('siren: not_paid'),
      expect.stringMatching(/^notify: status_stale;.*items are 1\d\d s old$/),
    ])
  })

  it('lets a signed-in operator handle its alarms, also offline, and the cloud stores the disposition', async () => {
    await open()
    const operator = { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }
    const { operatorId } = await store.drive(store.shop.ok('registerOperator', operator))
    await store.until('the operator', () => store.agent.trust.policy?.operators?.[0]?.operatorId === operatorId)
    const deviceId = store.shop.devices.exit_gate
    const shown: string[] = []
    const stop = new AbortController()
    void (async () => {
      for await (const event of store.agent.feed.listen(stop.signal))
        if (event.type === 'result' && event.result.kind === 'decision')
          shown.push(event.result.alarmId ?? '', event.result.product ?? '')
    })()
    const epc = await newItem()
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    await carryOut(epc)
    await store.until('the alarm', () => shown.length > 0)
    stop.abort()
    const [alarmId = '', name] = shown
    expect(name).toBe(product().name)
    const handle = (body: Json) =>
      store.local('/v1/alarms', { method: 'POST', body: { deviceId, alarmId, step: 'staff_error', ...body } })
    expect(await handle({})).toMatchObject({ status: 403, body: { code: 'operator_required' } })
    await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: operator.pin, deviceId } })
    expect((await handle({ alarmId: 'evt_of_nobody' })).status).toBe(404)
    expect((await handle({ deviceId: store.shop.devices.pos_deactivator })).status).toBe(403)
    const handled = { alarmId, step: 'staff_error', by: 'Frau Petersen' }
    expect((await handle({})).body).toEqual(handled)
    expect(store.agent.gates.alarms.stateOf(alarmId)).toMatchObject({ step: 'staff_error' })
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    expect((await storedEvents()).find((e) => e.eventId === alarmId)?.alarm).toMatchObject({
      disposition: 'staff_error',
      operatorId,
    })
    // A cause from the console reaches the gate, and is replaced only by an operator who has seen it.
    await store.drive(
      store.shop.ok('disposeAlarm', { eventId: alarmId, disposition: 'phantom', operatorId: 'Gustav of the office' }),
    )
    const known = { step: 'phantom', by: 'Gustav of the office' }
    await store.until('the cause', () => store.agent.gates.alarms.stateOf(alarmId)?.step === 'phantom')
    expect(store.agent.gates.alarms.stateOf(alarmId)).toEqual(known)
    expect(await handle({ step: 'real', seen: 'staff_error' })).toMatchObject({
      status: 409,
      body: { code: 'alarm_disposed', error: 'Gustav of the office recorded phantom meanwhile' },
    })
    expect((await handle({ step: 'real', seen: 'phantom' })).status).toBe(200)
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
    const { alarms } = await store.drive(
      store.shop.ok('fetchAlarms', { storeId: store.shop.storeId, state: 'disposed' }),
    )
    expect(alarms).toMatchObject([
      { disposition: 'real', earlier: [{ disposition: 'phantom' }, { disposition: 'staff_error' }] },
    ])
  })

  it('lets an operator handle an alarm that a request of a program raised, without a reader', async () => {
    await open()
    const operator = { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }
    const { operatorId } = await store.drive(store.shop.ok('registerOperator', operator))
    await store.until('the operator', () => store.agent.trust.policy?.operators?.[0]?.operatorId === operatorId)
    const deviceId = store.shop.devices.exit_gate
    const shown: string[] = []
    const stop = new AbortController()
    void (async () => {
      for await (const event of store.agent.feed.listen(stop.signal))
        if (event.type === 'result' && event.result.kind === 'decision') shown.push(event.result.alarmId ?? 'none')
    })()
    const epc = await newItem()
    await store.local('/v1/operator', { method: 'POST', body: { operatorId, pin: operator.pin, deviceId } })
    await store.authorize({ deviceId, protectionAction: 'authorize_exit', epc })
    await store.until('the alarm', () => shown.length > 0)
    stop.abort()
    const body = { deviceId, alarmId: shown[0], step: 'real' }
    expect((await store.local('/v1/alarms', { method: 'POST', body })).body).toMatchObject({ step: 'real' })
    expect((await storedEvents()).filter((e) => e.reason === 'gate_alarm')).toMatchObject([
      { eventId: shown[0], epc, alarm: { disposition: 'real' } },
    ])
  })

  it('shows without a broker within four seconds what people in the console did, some minutes after the alarm', async () => {
    await open()
    const causeAfter = async (waitMs: number, limitMs: number) => {
      await carryOut(await newItem())
      const { eventId } = (await storedEvents()).findLast((e) => e.reason === 'gate_alarm') ?? {}
      await store.world.advance(waitMs)
      await store.drive(store.shop.ok('disposeAlarm', { eventId, disposition: 'phantom', operatorId: 'office' }))
      const state = () => store.agent.gates.alarms.stateOf(eventId)?.step
      await store.until('the cause', () => state() === 'phantom', limitMs)
    }
    await causeAfter(0, 4_000)
    expect(store.agent.gates.alarms.isAwaited()).toBe(false)
    for (const waitMs of [20_000, 26_000, 33_000]) await causeAfter(waitMs, 4_000)
    await causeAfter(11 * 60_000, 16_000)
  })

  it('shows within two seconds what people in the console did about its alarm', async () => {
    await open({ broker: true })
    await carryOut(await newItem())
    const { eventId } = (await storedEvents()).find((e) => e.reason === 'gate_alarm') ?? {}
    const { storeId } = store.shop
    const { exceptions } = await store.drive(store.shop.ok('fetchExceptions', { storeId, kind: 'gate_alarm' }))
    const { exceptionId } = exceptions.find((each: Json) => each.eventId === eventId)
    const steps = [
      ['acknowledged', 'acknowledgeException', { exceptionId }],
      ['phantom', 'disposeAlarm', { eventId, disposition: 'phantom', operatorId: 'office' }],
    ] as const
    for (const [step, operation, request] of steps) {
      await store.drive(store.shop.ok(operation, request))
      await store.until(step, () => store.agent.gates.alarms.stateOf(eventId)?.step === step, 2_000)
    }
    await carryOut(await newItem())
    const { eventId: other } =
      (await storedEvents()).find((e) => e.reason === 'gate_alarm' && e.eventId !== eventId) ?? {}
    const all = { storeId, until: new Date(store.world.clock.wall()).toISOString(), disposition: 'staff_error' }
    await store.drive(store.shop.ok('disposeAlarms', { ...all, operatorId: 'office' }))
    await store.until('the cause', () => store.agent.gates.alarms.stateOf(other)?.step === 'staff_error', 2_000)
  })

  it('alarms for a tag with an overlong name, and reports it and all later events', async () => {
    await open()
    await carryOut('AB'.repeat(75))
    expect(isOn(2)).toBe(true)
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    await store.authorize({
      deviceId: store.shop.devices.pos_deactivator,
      protectionAction: 'deactivate_label',
      receipt,
    })
    const events = await storedEvents()
    expect(events.find((e) => e.reason === 'gate_alarm')).not.toHaveProperty('epc')
    expect(events.find((e) => e.reason === 'event_incomplete')).toMatchObject({
      deviceId: store.shop.devices.exit_gate,
      detail: expect.stringContaining('epc (150 characters: ABAB'),
    })
    expect(await store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId })).toMatchObject({
      securityTagStatus: 'deactivated',
    })
  })

  it('shows its open alarms after a restart, also offline, and lets an operator handle them', async () => {
    await open()
    const operator = { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }
    const { operatorId } = await store.drive(store.shop.ok('registerOperator', operator))
    await store.until('the operator', () => store.agent.trust.policy?.operators?.[0]?.operatorId === operatorId)
    const deviceId = store.shop.devices.exit_gate
    const linesNow = async () => {
      const { body } = await store.local(`/gate?device=${deviceId}&lang=en`)
      return [...(body as unknown as string).matchAll(/<li [^>]*data-alarm="([^"]+)"[^]*?<\/li>/g)].map(
        ([line, id]) => [id, line.replaceAll(/<[^>]*>/g, '')] as const,
      )
    }
    const [first, second] = [await newItem(), await newItem()]
    for (const epc of [first, 'E280FFFFFFFFFFFFFFFFFFFF', second]) await carryOut(epc)
    const alarms = (await storedEvents()).filter(({ reason }) => reason === 'gate_alarm')
    const [ofFirst, ofUnknown, ofSecond] = [first, 'E280FFFFFFFFFFFFFFFFFFFF', second].map(
      (tag) => alarms.find(({ epc }) => epc === tag)?.eventId,
    )
    const proof = { deviceId, operatorId, pin: '471108' }
    const handle = async (alarmId: string) => {
      await store.local('/v1/operator', { method: 'POST', body: proof })
      const body = { deviceId, alarmId, step: 'staff_error', seen: 'none' }
      return store.local('/v1/alarms', { method: 'POST', body })
    }
    expect(await handle(ofSecond)).toMatchObject({ status: 200 })
    store.network(false)
    await store.restart()
    const lines = await linesNow()
    expect(lines.map(([id]) => id)).toEqual([ofUnknown, ofFirst, ofSecond])
    expect(lines.map(([, text]) => text)).toEqual([
      expect.stringContaining('E280FFFFFFFFFFFFFFFFFFFF'),
      expect.stringMatching(`We have no payment.*${product().name}`),
      expect.stringContaining('Staff carried goods · Frau Petersen'),
    ])
    expect(await handle(ofFirst)).toMatchObject({ status: 200 })
    // Alarms of the day before yesterday are left to the console.
    await store.restart(() => store.world.advance(25 * 3_600_000))
    expect(await linesNow()).toEqual([])
    store.network(true)
  })

  it('reports all events after an unreadable row of an earlier release', async () => {
    await open()
    await carryOut('E280FFFFFFFFFFFFFFFFFFFF')
    await storedEvents()
    await store.restart(() => {
      const db = new Sqlite(join(store.dataDir, 'ledger.db'))
      const { seq, hash } = db.prepare('SELECT seq, hash FROM journal ORDER BY seq DESC LIMIT 1').get() as {
        seq: number
        hash: string
      }
      const event = {
        type: 'protection.exception.raised',
        eventId: 'evt_bad',
        occurredAt: new Date(store.world.clock.wall()).toISOString(),
        storeId: store.shop.storeId,
        reason: 'gate_alarm',
        epc: 'AB'.repeat(75),
      }
      const body = JSON.stringify({ atMs: store.world.clock.wall(), event })
      db.prepare('INSERT INTO journal (seq, hash, body, at_ms) VALUES (?, ?, ?, ?)').run(
        seq + 1,
        rowHash(hash, seq + 1, body),
        body,
        store.world.clock.wall(),
      )
      db.close()
    })
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    await store.authorize({
      deviceId: store.shop.devices.pos_deactivator,
      protectionAction: 'deactivate_label',
      receipt,
    })
    await storedEvents()
    expect(
      (await store.shop.ok('fetchExceptions', { storeId: store.shop.storeId, kind: 'unapplied' })).exceptions,
    ).toEqual([expect.objectContaining({ detail: expect.stringContaining('event.epc') })])
  })

  it('ends an alarm when the shopper pays at the gate', async () => {
    await open()
    const epc = await newItem()
    await carryOut(epc)
    expect(isOn(1)).toBe(true)
    await store.drive(store.shop.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }]))
    // Without a broker, the test triggers the sync.
    await store.drive(store.agent.link.poll())
    await store.world.advance(60)
    expect([isOn(1), isOn(3)]).toEqual([false, true])
    expect(
      (await storedEvents()).some((e) => e.reason === 'late_status' && e.epc === epc && e.itemStatus === 'paid'),
    ).toBe(true)
  })

  it('passes the goods of a presented receipt, but none that a recall stops, and alarms for these', async () => {
    await open()
    const [bad, good] = store.shop.products as [Json, Json]
    const { receipt } = await store.buy([bad, good].map(({ ean }) => ({ ean, quantity: 1 })))
    await store.drive(store.shop.ok('recallProducts', { ean: bad.ean, reason: 'Splitter' }))
    await store.until('the recall', () => store.agent.trust.policy?.recalledGtins?.length === 1)
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    const leaving = { deviceId: store.shop.devices.exit_gate, protectionAction: 'authorize_exit', receipt }
    expect(await store.authorize(leaving)).toMatchObject({ authorized: true, offline: true })
    await carryOut(sgtin(good.ean))
    expect([isOn(1), isOn(2)]).toEqual([false, false])
    await carryOut(sgtin(bad.ean))
    expect([isOn(1), isOn(2)]).toContain(true)
  })

  it('passes the goods of a presented receipt, and alarms for one more of the same product', async () => {
    await open()
    const { reads } = store.shop.cloud.db.database
    const rows = await reads
      .selectFrom('protected_item')
      .select('epc')
      .where('store_id', '=', store.shop.storeId)
      .where('ean', '=', product().ean)
      .limit(2)
      .execute()
    const [mine = '', more = ''] = rows.flatMap((row) => row.epc ?? [])
    // Bought by bar code, so the purchase names no tag and the item stays sellable.
    const { receipt } = await store.buy([{ ean: product().ean, quantity: 1 }])
    expect(
      await store.authorize({ deviceId: store.shop.devices.exit_gate, protectionAction: 'authorize_exit', receipt }),
    ).toMatchObject({ authorized: true })
    await carryOut(mine)
    expect(isOn(1)).toBe(false)
    await carryOut(more)
    expect(isOn(1)).toBe(true)
    expect((await storedEvents()).filter((e) => e.reason === 'gate_alarm').map((e) => e.epc)).toEqual([more])
  })

  it.each([
    ['online', true],
    ['offline', false],
  ] as const)('opens once with the receipt, and claims each unit with a nearby tag: %s', async (_name, isOnline) => {
    await open()
    const { reads } = store.shop.cloud.db.database
    const rows = await reads
      .selectFrom('protected_item')
      .select('epc')
      .where('store_id', '=', store.shop.storeId)
      .where('ean', '=', product().ean)
      .where('item_status', '=', 'sellable')
      .limit(3)
      .execute()
    const [mine = '', late = '', more = ''] = rows.flatMap((row) => row.epc ?? [])
    const named = await newItem()
    // Offline, the prices of single units are unknown, so the test removes the price limit.
    const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId }))
    await store.drive(
      store.shop.ok('updateProtectionPolicy', {
        storeId: store.shop.storeId,
        policy: { ...policy, requiresManualOverrideAboveValue: null },
      }),
    )
    await store.until('the policy', () => store.agent.trust.policy?.policy.requiresManualOverrideAboveValue === null)
    const { purchase, receipt } = await store.buy([
      { ean: product().ean, quantity: 1, epcs: [named] },
      { ean: product().ean, quantity: 2 },
    ])
    await store.until('the payment', () => store.agent.items.find('epc', named)?.status === 'paid')
    if (!isOnline) {
      store.network(false)
      await store.until('offline', () => !store.agent.link.isOnline)
    }
    for (const epc of [named, mine]) see(epc, 1)
    await store.world.advance(100)
    const leave = () =>
      store.authorize({ deviceId: store.shop.devices.exit_gate, protectionAction: 'authorize_exit', receipt })
    expect(await leave()).toMatchObject({
      authorized: true,
      itemCount: 1,
      remaining: 0,
      outcome: 'confirmed',
      offline: !isOnline,
    })
    for (const epc of [named, mine, late]) await carryOut(epc)
    expect([store.pulses('gate'), isOn(1)]).toEqual([1, false])
    await carryOut(more)
    expect(isOn(1)).toBe(true)
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    expect(await leave()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    await store.world.advance(40_000)
    const events = await storedEvents()
    const exits = events.filter((e) => e.type === 'protection.action.completed' && e.replayProtectedNonce !== undefined)
    expect(exits.map((e) => String(e.epc)).toSorted()).toEqual([named, mine, 'undefined'].toSorted())
    expect(events.filter((e) => e.reason === 'gate_alarm').map((e) => e.epc)).toEqual([more])
    expect((await store.drive(store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId }))).status).toBe(
      'UNLOADED',
    )
    const { exceptions } = await store.drive(store.shop.ok('fetchExceptions', { storeId: store.shop.storeId }))
    expect((exceptions as Json[]).map((e) => e.reason ?? e.kind).filter((kind) => kind !== 'gate_alarm')).toEqual([])
  })

  it('makes a purchase UNLOADED after its last tag is gone, with one claim and one event for each unit', async () => {
    await open()
    const [first, second] = [await newItem(), await newItem()]
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 2, epcs: [first, second] }])
    await store.until('the payment', () => store.agent.items.find('epc', second)?.status === 'paid')
    const status = async () =>
      (await store.drive(store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId }))).status
    await carryOut(first)
    await store.world.advance(36_000)
    await storedEvents()
    expect(await status()).toBe('SUCCESS')
    // The second tag leaves while the agent is offline. The agent claims its right when it is online again.
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    await carryOut(second)
    await store.world.advance(60_000)
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    await store.until('the claim', async () => (await status()) === 'UNLOADED')
    const events = await storedEvents()
    expect(events.filter((e) => e.type === 'protection.action.completed').map((e) => e.epc)).toEqual([first, second])
    expect(events.filter((e) => e.type === 'protection.authorization.denied')).toEqual([])
    expect(
      await store.authorize({ deviceId: store.shop.devices.exit_gate, protectionAction: 'authorize_exit', receipt }),
    ).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    // The tag leaves a second time, which causes no second claim.
    await carryOut(first)
    await store.world.advance(40_000)
    expect((await storedEvents()).filter((e) => e.type === 'protection.authorization.granted')).toHaveLength(2)
    expect(store.pulses('gate')).toBe(0)
  })

  it('voids the token for an exit right that its ledger has already used', async () => {
    await open()
    const epc = await newItem()
    const { purchase, receipt } = await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    await store.until('the payment', () => store.agent.items.find('epc', epc)?.status === 'paid')
    const { ledger, trust } = store.agent
    const opened = openReceipt(receipt, { keys: trust.keys, storeId: store.shop.storeId })
    if (!opened.ok) throw new Error(opened.fault)
    // The agent has used the exit right and has not reported it yet.
    const nonce = Buffer.from(opened.claims.cti).toString('hex')
    const { exp } = opened.claims
    const used = {
      redemptionId: 'rdm_unheard',
      source: 'receipt' as const,
      nonce,
      rightClass: 'exit' as const,
      candidates: [0],
      all: false,
      exp,
      deviceId: store.shop.devices.exit_gate,
      nowMs: store.world.clock.wall(),
    }
    expect(ledger.commits.now(() => ledger.claims.claim(used))).toMatchObject({ ok: true })
    await carryOut(epc)
    await store.world.advance(40_000)
    await storedEvents()
    const { reads } = store.shop.cloud.db.database
    const authorizations = await reads
      .selectFrom('protection_authorization')
      .select('voided_ms')
      .where('purchase_id', '=', purchase.transactionId)
      .execute()
    expect(authorizations.length).toBeGreaterThan(0)
    expect(authorizations.filter((row) => row.voided_ms === null)).toEqual([])
  })

  it('receives a payment over the broker and acknowledges it before it answers the shopper’s app', async () => {
    await open({ broker: true })
    const epc = await newItem()
    const purchase = await store.drive(store.shop.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }]))
    expect(store.agent.items.find('epc', epc)?.status).toBe('paid')
    await carryOut(epc)
    expect(isOn(1)).toBe(false)
    const { reads } = store.shop.cloud.db.database
    const { checkout_session_id: id } = await reads
      .selectFrom('purchase')
      .select('checkout_session_id')
      .where('purchase_id', '=', purchase.transactionId)
      .executeTakeFirstOrThrow()
    const before = store.world.clock.elapsed()
    expect((await store.drive(store.shop.cloud.get(`/checkout/${id}`))).text).toContain('You may leave.')
    expect(store.world.clock.elapsed() - before).toBeLessThan(2_000)
  })

  it('lets the app say "leave" once the gate has the payment, and "present the receipt" until then', async () => {
    await open()
    const page = async (transactionId: string) => {
      const { reads } = store.shop.cloud.db.database
      const { checkout_session_id: id } = await reads
        .selectFrom('purchase')
        .select('checkout_session_id')
        .where('purchase_id', '=', transactionId)
        .executeTakeFirstOrThrow()
      return (await store.drive(store.shop.cloud.get(`/checkout/${id}`))).text
    }
    const epc = await newItem()
    const { purchase } = await store.buy([{ ean: product().ean, quantity: 1, epcs: [epc] }])
    store.network(false)
    const before = store.world.clock.elapsed()
    expect(await page(purchase.transactionId)).toContain('Please show your receipt at the exit.')
    expect(store.world.clock.elapsed() - before).toBeGreaterThanOrEqual(2_000)
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    await store.world.advance(31_000)
    expect(await page(purchase.transactionId)).toContain('You may leave.')
    // This purchase names no tag, so only the receipt proves it.
    const { purchase: unnamed } = await store.buy([{ ean: product().ean, quantity: 1 }])
    expect(await page(unnamed.transactionId)).toContain('Please show your receipt at the exit.')
  })

  it('reads and alarms through an LLRP reader, and ignores reads that it buffered while offline', async () => {
    reader = fakeReader()
    store = await openStore({ llrpGate: true })
    const { gateReader, world } = store
    const [first, second] = [await newItem(), await newItem()]
    const walkOut = async (epc: string) => {
      for (let ms = 0; ms < 2_000; ms += 50) {
        gateReader.see(epc, { antenna: ms < 800 ? 1 : 2, rssiDbm: -50 })
        await world.advance(50)
      }
    }
    await walkOut(first)
    expect(gateReader.gpos[1]).toBe(true)
    await world.advance(12_000)
    expect(gateReader.gpos[1]).toBe(false)
    // The reader buffers reads while it is offline, and sends them afterwards.
    store.gatePort.unplug()
    await world.advance(500)
    await walkOut(second)
    await world.advance(5_000)
    expect(gateReader.buffered).toBeGreaterThan(10)
    store.gatePort.plug()
    await store.until('the reader', () => store.agent.status().devices.every((device) => device.state === 'ready'))
    await world.advance(6_000)
    expect(gateReader.writes.filter((write) => write.gpo === 1 && write.on)).toHaveLength(1)
    expect((await storedEvents()).filter((e) => e.reason === 'gate_alarm').map((e) => [e.epc, e.itemStatus])).toEqual([
      [first, 'sellable'],
    ])
  })

  it('does not alarm for reads that the reader buffered', async () => {
    await open()
    const epc = await newItem()
    see(epc, 1, 2_500)
    see(epc, 3, 2_100)
    await store.world.advance(6_000)
    expect(isOn(1)).toBe(false)
    expect((await storedEvents()).filter((e) => e.type === 'protection.exception.raised').map((e) => e.reason)).toEqual(
      ['late_reads'],
    )
  })
})
