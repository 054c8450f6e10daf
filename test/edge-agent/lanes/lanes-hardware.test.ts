import { afterEach, describe, expect, it } from 'vitest'
import type { FeedEvent } from '../../../edge-agent/feed.ts'
import type { ScanResult } from '../../../edge-agent/lanes/scan-result.ts'
import { liveEvent } from '../../../edge-agent/pages/live-event.ts'
import { gateLine, gateView } from '../../../edge-agent/pages/model/gate-view.ts'
import { de } from '../../../edge-agent/pages/texts/de.ts'
import { en } from '../../../edge-agent/pages/texts/en.ts'
import { llrpReader, type LlrpReader } from '../../../simulators/devices/llrp.ts'
import { OsdpDevice } from '../../../simulators/devices/osdp.ts'
import { RelayBoard } from '../../../simulators/devices/modbus.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { fakeDevice, type FakeDevice } from '../../support/fake-device.ts'
import { CODES } from '../../support/product-codes.ts'

let store: TestStore
let feedEvents: FeedEvent[]
afterEach(() => store.stop())

async function open(extra: NonNullable<Parameters<typeof openStore>[0]>['extra']): Promise<void> {
  store = await openStore({ ...(extra && { extra }) })
  feedEvents = []
  void (async () => {
    for await (const event of store.agent.feed.listen(new AbortController().signal)) feedEvents.push(event)
  })()
}
const results = () => feedEvents.flatMap((event): ScanResult[] => (event.type === 'result' ? [event.result] : []))
const answers = () => results().flatMap((result) => (result.kind === 'decision' ? [result.answer] : []))
const scan = (deviceId: string, text: string) => store.drive(store.agent.lanes.scan(deviceId, text))
const offline = async () => {
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
}
const exceptions = async () => {
  await store.world.advance(300)
  await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
  const { events } = await store.drive(
    store.shop.ok('fetchProtectionEvents', {
      storeId: store.shop.storeId,
      type: 'protection.exception.raised',
      limit: 500,
    }),
  )
  return (events as Json[]).map(({ reason, deviceId }) => ({ reason, deviceId }))
}

describe('a handheld reader', () => {
  let sled: FakeDevice
  let handheld: string
  const openHandheld = () =>
    open(async (shop, world) => {
      sled = fakeDevice(world.clock.elapsed)
      ;({ deviceId: handheld } = await shop.ok('registerDevice', {
        storeId: shop.storeId,
        deviceType: 'handheld_reader',
      }))
      return {
        entries: [{ deviceId: handheld, driver: 'pcsc', link: { pcsc: 'sled' } }],
        devices: { [handheld]: sled.device },
      }
    })

  it('shows the status of an item read by UHF, NFC or bar code, also offline and after a receipt', async () => {
    await openHandheld()
    const [product] = store.shop.products
    const names = { tagUid: '04A2B3C4D5E680', tagId: 'HT-000017' }
    const { epc } = await store.drive(store.shop.newItem(product, names))
    const { receipt } = await store.buy([{ ean: product.ean, quantity: 1 }])
    await store.drive(store.agent.link.poll())
    await scan(handheld, receipt)
    feedEvents = []
    for (const tag of [{ epc }, { tagUid: names.tagUid }]) sled.placeTag(tag)
    await store.until('two answers', () => answers().length === 2)
    await scan(handheld, names.tagId)
    await scan(handheld, epc)
    await offline()
    await scan(handheld, names.tagId)
    expect(answers()).toEqual([
      ...Array(4).fill(
        expect.objectContaining({
          authorized: true,
          action: 'verify_item_status',
          itemStatus: 'sellable',
          offline: false,
        }),
      ),
      expect.objectContaining({ itemStatus: 'sellable', offline: true }),
    ])
    // The cloud takes the same texts for product codes. Digits that a person wrote may be the number of a tag.
    for (const { text } of CODES.filter(({ byHand }) => byHand !== true))
      expect([text, await scan(handheld, text)]).toEqual([text, { kind: 'not_understood', why: 'product_code' }])
  })

  it('finds the order of a pick-up code in any spelling, with its reserved items and no data of the customer', async () => {
    await openHandheld()
    const [, product] = store.shop.products
    const order = await store.drive(
      store.shop.ok('submitClickCollectOrder', {
        storeId: store.shop.storeId,
        userId: 'shopper-1',
        items: [{ productId: product.productId, quantity: 2 }],
        note: 'Bitte als Geschenk',
      }),
    )
    const typed = `${order.pickupCode.slice(0, 4)}-${order.pickupCode.slice(4)}`.toLowerCase()
    const shown = (status: string) => ({
      kind: 'order',
      order: {
        orderId: order.orderId,
        status,
        items: [{ name: product.name, quantity: 2, tags: 2 }],
        note: 'Bitte als Geschenk',
      },
    })
    expect(await scan(handheld, typed)).toEqual(shown('pending'))
    for (const status of ['confirmed', 'ready'])
      await store.drive(store.shop.ok('updateClickCollectStatus', { orderId: order.orderId, status }))
    expect(await scan(handheld, order.pickupCode)).toEqual(shown('ready'))
    expect(await scan(handheld, 'ZZZZ ZZZZ')).toMatchObject({ kind: 'decision', answer: { reason: 'item_unknown' } })
    await store.drive(
      store.shop.ok('updateClickCollectStatus', { orderId: order.orderId, status: 'picked_up', pickupCode: typed }),
    )
    expect(await scan(handheld, typed)).toEqual(shown('picked_up'))
    await offline()
    expect(await scan(handheld, typed)).toEqual({ kind: 'not_understood', why: 'needs_connection' })
    // At a station the same text may be the code of a till's receipt.
    expect(await scan(store.shop.devices.pos_deactivator, typed)).toMatchObject({ why: 'needs_connection' })
  })
})

describe('a cabinet', () => {
  let board: RelayBoard
  const cabinet = () => store.shop.devices.cabinet_unlocker
  let osdp: OsdpDevice
  const openCabinet = ({ withCards = false } = {}) =>
    open(async (shop, world) => {
      // The goods in the cabinet have UHF tags.
      await shop.ok('updateDevice', { deviceId: shop.devices.cabinet_unlocker, canReadUhfRfid: true })
      board = new RelayBoard({ platform: world, locks: [{ coil: 0, input: 0, openMs: 30, closeMs: 30 }] })
      const entry = {
        deviceId: shop.devices.cabinet_unlocker,
        driver: 'modbus',
        link: { tcp: '10.0.0.7:502' },
        output: 0,
        confirmInput: 0,
        pulseMs: 5_000,
        door: { input: 2, openSeconds: 30 },
        siren: { output: 3, seconds: 10 },
      }
      osdp = new OsdpDevice({ platform: world, key: Buffer.alloc(16, 0x5a) })
      const cards = {
        deviceId: 'cabinet-cards',
        driver: 'osdp',
        link: { tcp: '10.0.0.7:4001' },
        key: '5a'.repeat(16),
        pollMs: 1_000,
        feeds: entry.deviceId,
        staffCards: true,
      }
      return {
        entries: withCards ? [entry, cards] : [entry],
        ports: { '10.0.0.7:502': board.serve, '10.0.0.7:4001': osdp.serve },
      }
    })
  const door = () => store.agent.status().devices.find(({ deviceId }) => deviceId === cabinet())?.door

  it('opens for signed-in staff, locks with the door, and reports a forced or open door until it is shut', async () => {
    await openCabinet()
    const tagId = 'HT-000018'
    await store.drive(store.shop.newItem(store.shop.products[0], { tagId }))
    const { badge } = await store.drive(
      store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen' }),
    )
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
    expect(await scan(cabinet(), tagId)).toMatchObject({
      answer: { authorized: false, action: 'unlock_fixture', reason: 'manual_assistance_required' },
    })
    expect(await scan(cabinet(), badge)).toEqual({ kind: 'operator', name: 'Frau Petersen' })
    expect(await scan(cabinet(), tagId)).toMatchObject({ answer: { authorized: true, outcome: 'confirmed' } })
    expect([board.coils[0], door()]).toEqual([true, 'shut'])
    board.setInput(2, true)
    await store.world.advance(200)
    expect([board.coils[0], door()]).toEqual([false, 'open'])
    await store.world.advance(31_000)
    expect([door(), board.coils[3]]).toEqual(['left_open', true])
    board.setInput(2, false)
    await store.world.advance(200)
    expect([door(), board.coils[3]]).toEqual(['shut', false])
    board.setInput(2, true)
    await store.world.advance(200)
    expect([door(), board.coils[3]]).toEqual(['forced', true])
    expect(results().filter(({ kind }) => kind === 'alarm')).toEqual([
      { kind: 'alarm', what: 'door_left_open' },
      { kind: 'alarm', what: 'door_forced' },
    ])
    expect((await exceptions()).toReversed().filter(({ deviceId }) => deviceId === cabinet())).toEqual(
      expect.arrayContaining([
        { reason: 'door_left_open', deviceId: cabinet() },
        { reason: 'door_forced', deviceId: cabinet() },
      ]),
    )
    const { body: page } = await store.local(`/station?device=${cabinet()}`)
    expect(page).toContain('Door forced')
    expect(page).toContain('The door was opened without a release.')
  })

  it('opens once for a token that staff approved, and only for its item', async () => {
    await openCabinet()
    const { storeId } = store.shop
    const [tagId, other] = ['HT-000020', 'HT-000021']
    for (const name of [tagId, other]) await store.drive(store.shop.newItem(store.shop.products[0], { tagId: name }))
    const { operatorId } = await store.drive(store.shop.ok('registerOperator', { storeId, name: 'Frau Petersen' }))
    const request = { deviceId: cabinet(), protectionAction: 'unlock_fixture', tagId }
    expect(await store.drive(store.shop.ok('verifyProtectedItem', request))).toMatchObject({
      authorized: false,
      reason: 'manual_assistance_required',
    })
    const { authorizationToken: token } = await store.drive(
      store.shop.ok('verifyProtectedItem', { ...request, operatorId }),
    )
    expect(await store.authorize({ ...request, tagId: other, token })).toMatchObject({
      authorized: false,
      reason: 'token_invalid',
    })
    expect(await store.authorize({ ...request, token })).toMatchObject({ authorized: true, outcome: 'confirmed' })
    expect(await store.authorize({ ...request, token })).toMatchObject({
      authorized: false,
      reason: 'already_redeemed',
    })
  })

  it('is the locker of an order, which only its pick-up code opens', async () => {
    await openCabinet()
    const { shop } = store
    const inLocker = async (fields: Json) => {
      const items = [{ productId: shop.products[1].productId, quantity: 1 }]
      const order = await store.drive(
        shop.ok('submitClickCollectOrder', { storeId: shop.storeId, userId: 'shopper-1', items, ...fields }),
      )
      for (const move of [{ status: 'confirmed' }, { status: 'ready', ...fields, lockerDeviceId: cabinet() }])
        await store.drive(shop.ok('updateClickCollectStatus', { orderId: order.orderId, ...move }))
      return order
    }
    // The token of an order that is cancelled does not open the locker for the next order's goods.
    const cancelled = await inLocker({ paid: true })
    const { authorizationToken } = await store.drive(
      shop.ok('verifyProtectedItem', {
        deviceId: cabinet(),
        protectionAction: 'unlock_fixture',
        pickupCode: cancelled.pickupCode,
      }),
    )
    await store.drive(shop.ok('updateClickCollectStatus', { orderId: cancelled.orderId, status: 'cancelled' }))
    await store.drive(store.agent.link.poll())
    const unpaid = await inLocker({})
    const byToken = { deviceId: cabinet(), protectionAction: 'unlock_fixture', token: authorizationToken }
    for (const hasNetwork of [true, false]) {
      store.network(hasNetwork)
      await store.until('the network', () => store.agent.link.isOnline === hasNetwork)
      expect(await store.authorize(byToken)).toMatchObject({ authorized: false, reason: 'token_revoked' })
    }
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    expect(board.coils[0]).toBe(false)
    const decided = (fields: Json) => ({ kind: 'decision', answer: { action: 'unlock_fixture', ...fields } })
    expect(await scan(cabinet(), unpaid.pickupCode)).toMatchObject(
      decided({ authorized: false, reason: 'item_not_paid' }),
    )
    await store.drive(shop.ok('updateClickCollectStatus', { orderId: unpaid.orderId, status: 'cancelled' }))
    const order = await inLocker({ paid: true })
    const typed = `${order.pickupCode.slice(0, 4)} ${order.pickupCode.slice(4)}`.toLowerCase()
    expect(await scan(cabinet(), typed)).toMatchObject(
      decided({ authorized: true, outcome: 'confirmed', offline: false }),
    )
    expect(board.coils[0]).toBe(true)
    expect(await scan(cabinet(), 'ZZZZ-ZZZZ')).toMatchObject(decided({ authorized: false, reason: 'item_unknown' }))
    const other = await store.drive(
      shop.ok('submitClickCollectOrder', {
        storeId: shop.storeId,
        userId: 'shopper-2',
        items: [{ productId: shop.products[1].productId, quantity: 1 }],
      }),
    )
    expect(await scan(cabinet(), other.pickupCode)).toMatchObject(
      decided({ authorized: false, reason: 'locker_mismatch' }),
    )
    await offline()
    expect(await scan(cabinet(), typed)).toEqual({ kind: 'not_understood', why: 'needs_connection' })
  })

  it('opens offline only for staff, counted per hour, and reports each event', async () => {
    await openCabinet()
    const { storeId } = store.shop
    const tagId = 'HT-000019'
    await store.drive(store.shop.newItem(store.shop.products[0], { tagId }))
    await store.until('the item', () => store.agent.items.find('tagId', tagId) !== undefined)
    const { operatorId, badge } = await store.drive(
      store.shop.ok('registerOperator', { storeId, name: 'Frau Petersen' }),
    )
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId })
    await store.drive(
      store.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, operatorOverridesPerHour: 2 } }),
    )
    await store.until(
      'the operator',
      () =>
        (store.agent.trust.policy?.operators.length ?? 0) === 1 &&
        store.agent.trust.policy?.policy.operatorOverridesPerHour === 2,
    )
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    const shut = { authorized: false, offline: true, outcome: null }
    expect(await scan(cabinet(), tagId)).toMatchObject({ answer: { ...shut, reason: 'manual_assistance_required' } })
    await scan(cabinet(), badge)
    expect(await scan(cabinet(), 'HT-999999')).toMatchObject({ answer: { ...shut, reason: 'item_unknown' } })
    for (let n = 0; n < 2; n++) {
      expect(await scan(cabinet(), tagId)).toMatchObject({
        answer: { authorized: true, offline: true, outcome: 'confirmed', itemStatus: 'sellable' },
      })
      expect(board.coils[0]).toBe(true)
      board.setInput(2, true)
      await store.world.advance(200)
      board.setInput(2, false)
      await store.world.advance(200)
      expect(board.coils[0]).toBe(false)
    }
    expect(await scan(cabinet(), tagId)).toMatchObject({ answer: { ...shut, reason: 'limit_exceeded' } })
    await store.restart()
    store.network(true)
    await store.until('an empty outbox', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
    const { events } = await store.drive(
      store.shop.ok('fetchProtectionEvents', { storeId, deviceId: cabinet(), type: 'protection.action.completed' }),
    )
    expect(events).toEqual(
      [0, 1].map(() =>
        expect.objectContaining({
          protectionAction: 'unlock_fixture',
          tagId,
          operatorId,
          offline: true,
          outcome: 'confirmed',
        }),
      ),
    )
    const { exceptions: raised } = await store.drive(store.shop.ok('fetchExceptions', { storeId }))
    expect((raised as Json[]).filter(({ kind }) => kind === 'unapplied' || kind === 'foreign_evidence')).toEqual([])
  })

  it('accepts staff cards at its OSDP reader, also offline, and locks the reader after five wrong ones', async () => {
    await openCabinet({ withCards: true })
    const { storeId } = store.shop
    const tagId = 'HT-000020'
    await store.drive(store.shop.newItem(store.shop.products[0], { tagId }))
    const { operatorId } = await store.drive(
      store.shop.ok('registerOperator', { storeId, name: 'Frau Petersen', card: '04:A2:B3:C4' }),
    )
    await store.until(
      'operator and item',
      () =>
        (store.agent.trust.policy?.operators.length ?? 0) === 1 && store.agent.items.find('tagId', tagId) !== undefined,
    )
    expect(JSON.stringify(store.agent.trust.policy?.operators)).not.toContain('04A2B3C4')
    await offline()
    const present = async (...bytes: number[]) => {
      const before = results().length
      osdp.card(Uint8Array.from(bytes), bytes.length * 8)
      await store.until('the card', () => results().length > before)
      return results().at(-1)
    }
    expect(await present(4, 0xa2, 0xb3, 0xc5)).toEqual({ kind: 'not_understood', why: 'wrong_badge' })
    expect(await present(4, 0xa2, 0xb3, 0xc4)).toEqual({ kind: 'operator', name: 'Frau Petersen' })
    expect(store.agent.lanes.operatorAt(cabinet())).toBe('Frau Petersen')
    // The reader reports the same card again, which opens no second session.
    osdp.card(Uint8Array.of(4, 0xa2, 0xb3, 0xc4), 32)
    await store.world.advance(1_200)
    expect(results().filter(({ kind }) => kind === 'operator')).toHaveLength(1)
    expect(await scan(cabinet(), tagId)).toMatchObject({
      answer: { authorized: true, offline: true, outcome: 'confirmed' },
    })
    // The operator is not signed in at other devices.
    expect(store.agent.lanes.operatorAt(store.shop.devices.pos_deactivator)).toBeUndefined()
    for (let n = 0; n < 5; n++) expect(await present(4, 0, 0, n)).toMatchObject({ why: 'wrong_badge' })
    expect(await present(4, 0xa2, 0xb3, 0xc4)).toEqual({ kind: 'not_understood', why: 'locked' })
    await store.world.advance(61_000)
    expect(await present(4, 0xa2, 0xb3, 0xc4)).toMatchObject({ kind: 'operator' })
    store.network(true)
    await store.until('an empty outbox', () => store.agent.link.isOnline && store.agent.ledger.journal.waiting === 0)
    const { events } = await store.drive(
      store.shop.ok('fetchProtectionEvents', { storeId, deviceId: cabinet(), type: 'protection.action.completed' }),
    )
    expect(events).toEqual([expect.objectContaining({ operatorId, tagId })])
  })

  it('opens without staff for paid goods if the policy allows self-service', async () => {
    await openCabinet()
    const product = store.shop.products.toSorted((a, b) => a.price - b.price)[0]
    const [{ epc }, { epc: unpaid }] = [
      await store.drive(store.shop.newItem(product)),
      await store.drive(store.shop.newItem(product)),
    ]
    await store.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
    const { storeId } = store.shop
    await store.drive(store.shop.ok('updateDevice', { deviceId: cabinet(), workflowType: 'self_service' }))
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId })
    await store.drive(
      store.shop.ok('updateProtectionPolicy', {
        storeId,
        policy: {
          ...policy,
          requiresManualOverrideAboveValue: null,
          allowedActionsByCategory: { '*': { unlock_fixture: ['self_service'] } },
        },
      }),
    )
    await store.until(
      'the policy',
      () =>
        store.agent.trust.policy?.devices.some(
          ({ deviceId, workflowType }) => deviceId === cabinet() && workflowType === 'self_service',
        ) === true,
    )
    expect(await scan(cabinet(), unpaid)).toMatchObject({ answer: { authorized: false, reason: 'item_not_paid' } })
    expect(await scan(cabinet(), epc)).toMatchObject({
      answer: { authorized: true, action: 'unlock_fixture', outcome: 'confirmed' },
    })
  })
})

describe('a gate with an LLRP reader, over its real protocol', () => {
  let reader: LlrpReader

  it('sounds the siren on its GPO for an unpaid tag, online and offline, and passes a paid one silently', async () => {
    await open(async (shop, world) => {
      reader = llrpReader({ platform: world })
      const entry = {
        deviceId: shop.devices.exit_gate,
        driver: 'llrp',
        link: { tcp: '10.0.0.8:5084' },
        antennas: { inside: [1], outside: [2] },
        session: 0,
        siren: { gpo: 1, seconds: 5 },
        amber: { gpo: 2 },
        green: { gpo: 3 },
      }
      return { entries: [entry], ports: { '10.0.0.8:5084': reader.serve } }
    })
    const [product] = store.shop.products
    const { epc: paid } = await store.drive(store.shop.newItem(product))
    const { epc: unpaid } = await store.drive(store.shop.newItem(product))
    const { epc: later } = await store.drive(store.shop.newItem(product))
    await store.buy([{ ean: product.ean, quantity: 1, epcs: [paid] }])
    await store.drive(store.agent.link.poll())
    const walkOut = async (epc: string) => {
      const at = store.world.clock.elapsed()
      for (const antenna of [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]) {
        reader.see(epc, { antenna, rssiDbm: -50 })
        await store.world.advance(150)
      }
      await store.world.advance(500)
      return reader.writes.filter((write) => write.at >= at && write.on).map(({ gpo }) => gpo)
    }
    expect(reader.isReading).toBe(true)
    expect(await walkOut(paid)).toEqual([])
    expect(await walkOut(unpaid)).toEqual([1])
    await store.world.advance(8_000)
    expect(reader.gpos[0] ?? reader.gpos[1]).toBe(false)
    await offline()
    expect(await walkOut(later)).toEqual([1])
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    expect((await exceptions()).filter(({ reason }) => reason === 'gate_alarm')).toHaveLength(2)
    expect(results().map((result) => result.kind === 'decision' && [result.item, result.answer.reason])).toEqual([
      [unpaid, 'item_not_paid'],
      [later, 'item_not_paid'],
    ])
  })

  /** Opens a store with the example configuration: a reader with siren and lamps, without a barrier. */
  const openWithoutBarrier = (more: Json = {}) =>
    open(async (shop, world) => {
      reader = llrpReader({ platform: world })
      const signals = { siren: { gpo: 1, seconds: 5 }, amber: { gpo: 2 }, green: { gpo: 3 } }
      const entry = {
        deviceId: shop.devices.exit_gate,
        driver: 'llrp',
        link: { tcp: '10.0.0.8:5084' },
        antennas: { inside: [1], outside: [2] },
        session: 0,
        ...signals,
        ...more,
      }
      return { entries: [entry], ports: { '10.0.0.8:5084': reader.serve } }
    })
  const gate = () => store.shop.devices.exit_gate
  const eventsOf = async (type: string) => {
    await store.world.advance(300)
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
    return (
      await store.drive(store.shop.ok('fetchProtectionEvents', { storeId: store.shop.storeId, type, limit: 500 }))
    ).events as Json[]
  }

  it('sounds for `siren.seconds`, for reads and for requests', async () => {
    await openWithoutBarrier({ siren: { gpo: 1, seconds: 12 } })
    const { epc } = await store.drive(store.shop.newItem(store.shop.products[0]))
    await store.drive(store.agent.link.poll())
    const siren = () => reader.writes.findLast(({ gpo }) => gpo === 1)?.on
    const expectSirenFor12s = async () => {
      expect(siren()).toBe(true)
      await store.world.advance(10_000)
      expect(siren()).toBe(true)
      await store.world.advance(3_000)
      expect(siren()).toBe(false)
    }
    for (const antenna of [1, 1, 1, 1, 2, 2, 2, 2]) {
      reader.see(epc, { antenna, rssiDbm: -50 })
      await store.world.advance(150)
    }
    await expectSirenFor12s()
    expect(await store.authorize({ deviceId: gate(), protectionAction: 'authorize_exit', epc })).toMatchObject({
      authorized: false,
    })
    await store.world.advance(100)
    await expectSirenFor12s()
  })

  it.each([
    ['online', true],
    ['offline', false],
  ] as const)(
    'accepts a receipt at a gate without a barrier: green, and its goods pass silently; %s',
    async (_name, isOnline) => {
      await openWithoutBarrier({ passageInput: 1 })
      const [product] = store.shop.products
      const { reads } = store.shop.cloud.db.database
      const rows = await reads
        .selectFrom('protected_item')
        .select('epc')
        .where('store_id', '=', store.shop.storeId)
        .where('ean', '=', product.ean)
        .where('item_status', '=', 'sellable')
        .limit(2)
        .execute()
      const [mine = '', more = ''] = rows.flatMap((row) => row.epc ?? [])
      const { purchase, receipt } = await store.buy([{ ean: product.ean, quantity: 1 }])
      if (!isOnline) await offline()
      const lights = () => reader.writes.filter(({ on }) => on).map(({ gpo }) => gpo)

      expect(await scan(gate(), receipt)).toMatchObject({
        answer: { authorized: true, outcome: 'confirmed', offline: !isOnline },
      })
      await store.world.advance(100)
      expect(lights()).toEqual([3])
      // The same receipt before a passage repeats the signal and uses up nothing.
      await store.world.advance(6_000)
      expect(await scan(gate(), receipt)).toMatchObject({ answer: { authorized: true, outcome: 'confirmed' } })
      for (const epc of [mine, more]) {
        for (const antenna of [1, 1, 1, 1, 2, 2, 2, 2, 2, 2]) {
          reader.see(epc, { antenna, rssiDbm: -50 })
          await store.world.advance(150)
        }
      }
      await store.world.advance(500)
      // The first tag takes the unit of the receipt. The second one of the same product alarms.
      expect(lights()).toEqual([3, 3, 1])
      reader.setInput(1, true)
      await store.world.advance(100)
      expect(await scan(gate(), receipt)).toMatchObject({ answer: { authorized: false, reason: 'already_redeemed' } })

      const shown = feedEvents.flatMap((event) => {
        const live = liveEvent(event, store.agent.trust.policy)
        return live.type === 'result' ? [live] : []
      })
      expect(
        [de, en].map((texts) =>
          shown
            .slice(0, 2)
            .map((event) => [
              gateView(event, texts)?.tone,
              gateView(event, texts)?.message,
              gateLine(event, texts)?.text,
            ]),
        ),
      ).toEqual([
        [
          ['green', 'Sie können gehen.', 'Ausgang frei'],
          ['green', 'Sie können gehen.', 'Ausgang frei'],
        ],
        [
          ['green', 'You may leave.', 'You may leave'],
          ['green', 'You may leave.', 'You may leave'],
        ],
      ])
      store.network(true)
      await store.until('online', () => store.agent.link.isOnline)
      expect(
        (await eventsOf('protection.action.completed')).filter((event) =>
          String(event.detail).startsWith('nothing_to_open'),
        ),
      ).toMatchObject([{ protectionAction: 'authorize_exit', outcome: 'confirmed' }])
      expect(await eventsOf('protection.action.failed')).toEqual([])
      expect(
        (await store.drive(store.shop.ok('fetchPurchase', { transactionId: purchase.transactionId }))).status,
      ).toBe('UNLOADED')
    },
  )

  it('reports a fault for a barrier or detacher without an output', async () => {
    await openWithoutBarrier({ release: { gpo: 4 } })
    const [product] = store.shop.products
    const presentReceipt = async () => scan(gate(), (await store.buy([{ ean: product.ean, quantity: 1 }])).receipt)
    expect(await presentReceipt()).toMatchObject({ answer: { authorized: true, outcome: 'confirmed' } })
    expect(reader.writes.some(({ gpo, on }) => gpo === 4 && on)).toBe(true)
    reader.reboot()
    expect(await presentReceipt()).toMatchObject({ answer: { authorized: true, outcome: 'failed' } })
    await store.stop()

    await open(async (shop, world) => {
      reader = llrpReader({ platform: world })
      return {
        entries: [{ deviceId: shop.devices.self_checkout_detacher, driver: 'llrp', link: { tcp: '10.0.0.8:5084' } }],
        ports: { '10.0.0.8:5084': reader.serve },
      }
    })
    const { epc } = await store.drive(store.shop.newItem(store.shop.products.toSorted((a, b) => a.price - b.price)[0]))
    await store.buy([{ epcs: [epc], quantity: 1 }])
    await store.drive(store.agent.link.poll())
    reader.see(epc, { antenna: 1, rssiDbm: -40 })
    await store.until('an answer', () => answers().length === 1)
    expect(answers()).toMatchObject([{ authorized: true, action: 'detach_hard_tag', outcome: 'failed' }])
    expect((await eventsOf('protection.action.failed')).map(({ reason }) => reason)).toEqual(['not_supported'])
  })
})
