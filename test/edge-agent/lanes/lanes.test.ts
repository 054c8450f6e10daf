import { afterEach, describe, expect, it } from 'vitest'
import type { FeedEvent } from '../../../edge-agent/feed.ts'
import type { ScanResult } from '../../../edge-agent/lanes/scan-result.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type ExtraHardware, type TestStore } from '../../support/store.ts'
import { fakeDevice, type FakeDevice } from '../../support/fake-device.ts'

describe('lanes with readers, through the whole agent', () => {
  let store: TestStore
  let fake: FakeDevice
  let feedEvents: FeedEvent[]
  afterEach(() => store.stop())

  async function open(
    hardware: (shop: TestStore['shop'], fake: FakeDevice) => ExtraHardware | Promise<ExtraHardware>,
  ): Promise<void> {
    store = await openStore({
      extra: async (shop, world) => {
        fake = fakeDevice(world.clock.elapsed)
        return hardware(shop, fake)
      },
    })
    feedEvents = []
    void (async () => {
      for await (const event of store.agent.feed.listen(new AbortController().signal))
        if (event.type !== 'status') feedEvents.push(event)
    })()
  }
  /** Opens a store with an NFC pad beside the detacher. */
  const withPad = () =>
    open((shop, { device }) => ({
      entries: [{ deviceId: 'pad', driver: 'pcsc', link: { pcsc: 'pad' }, feeds: shop.devices.self_checkout_detacher }],
      devices: { pad: device },
    }))
  const results = () => feedEvents.flatMap((event): ScanResult[] => (event.type === 'result' ? [event.result] : []))
  const answers = () => results().flatMap((result) => (result.kind === 'decision' ? [result.answer] : []))
  const cheap = () => store.shop.products.toSorted((a, b) => a.price - b.price)[0]
  const newItem = async (names: Json = {}) => {
    const item = await store.drive(store.shop.newItem(cheap(), names))
    await store.until('the replica', () => store.agent.items.find('epc', item.epc) !== undefined)
    return item.epc as string
  }
  const advance = (ms: number) => store.world.advance(ms)
  const exceptions = async () => {
    await advance(300)
    await store.until('an empty outbox', () => store.agent.ledger.journal.waiting === 0)
    const { events } = await store.drive(
      store.shop.ok('fetchProtectionEvents', {
        storeId: store.shop.storeId,
        type: 'protection.exception.raised',
        limit: 500,
      }),
    )
    return (events as Json[]).map((event) => event.reason)
  }
  const selfServiceForAll = () => selfServiceBelow(null)
  const selfServiceBelow = async (requiresManualOverrideAboveValue: number | null) => {
    const { policy } = await store.shop.ok('fetchProtectionPolicy', { storeId: store.shop.storeId })
    await store.drive(
      store.shop.ok('updateProtectionPolicy', {
        storeId: store.shop.storeId,
        policy: { ...policy, requiresManualOverrideAboveValue },
      }),
    )
    const known = () => store.agent.trust.policy?.policy.requiresManualOverrideAboveValue
    await store.until('the policy', () => known() === requiresManualOverrideAboveValue)
  }

  it('denies an unpaid tag once while it stays, and releases it once as soon as it is paid', async () => {
    await withPad()
    await selfServiceForAll()
    const tag = { tagUid: '04A2B3C4D5E680' }
    const epc = await newItem(tag)
    fake.placeTag(tag)
    await store.until('the refusal', () => answers().length === 1)
    expect(answers()[0]).toMatchObject({ authorized: false, reason: 'item_not_paid', action: 'detach_hard_tag' })
    for (let i = 0; i < 20; i++) {
      fake.placeTag(tag)
      await advance(250)
    }
    expect(answers()).toHaveLength(1)
    await store.buy([{ ean: cheap().ean, quantity: 1, epcs: [epc] }])
    await store.drive(store.agent.link.poll())
    await store.until('the release', () => answers().length === 2)
    expect(answers()[1]).toMatchObject({ authorized: true, outcome: 'confirmed', itemStatus: 'paid' })
    await advance(5_000)
    expect([answers().length, store.pulses('detacher')]).toEqual([2, 1])
    fake.emit({ type: 'tag_gone', tag })
    fake.placeTag(tag)
    await store.until('the next presentation', () => answers().length === 3)
    expect(answers()[2]).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(store.pulses('detacher')).toBe(1)
    expect(await exceptions()).not.toContain('unexpected_release')
  })

  it('takes texts of a scanner only as fast as people scan, whatever its line sends', async () => {
    await withPad()
    for (let n = 0; n < 5_000; n++) fake.emit({ type: 'scan', text: `text ${n}` })
    await advance(100)
    const first = results().length
    expect(first).toBeGreaterThan(10)
    expect(first).toBeLessThan(40)
    await advance(5_000)
    fake.emit({ type: 'scan', text: 'text of a person' })
    await store.until('the text', () => results().length > first)
  })

  it('finds the receipt of a typed purchase number for staff alone, while the cloud answers', async () => {
    await withPad()
    await selfServiceForAll()
    const station = store.shop.devices.pos_deactivator
    const type = (text: string) => store.drive(store.agent.lanes.scan(station, text, { byHand: true }))
    const { purchase } = await store.buy([{ ean: cheap().ean, quantity: 1 }])
    const { sessionId } = await store.shop.ok('checkIn', { storeId: store.shop.storeId, userId: 'shopper-2' })
    const unpaid = await store.shop.ok('startCheckout', { sessionId, items: [{ ean: cheap().ean, quantity: 1 }] })
    const number = purchase.transactionId as string
    const end = number.slice(-6)
    expect(await type(number)).toEqual({ kind: 'not_understood', why: 'needs_staff' })
    // For others, the end of a number is a text like any other: a till may have printed it as a code. Staff read what to do.
    expect(await type(end)).toEqual({ kind: 'not_understood', why: 'unknown_code_or_number' })
    expect(await type('no receipt')).toEqual({ kind: 'not_understood', why: 'unknown_code' })
    const scanned = await store.drive(store.agent.lanes.scan(station, end))
    expect(scanned).toEqual({ kind: 'not_understood', why: 'unknown_code' })
    const { operatorId } = await store.drive(
      store.shop.ok('registerOperator', { storeId: store.shop.storeId, name: 'Frau Petersen', pin: '471108' }),
    )
    await store.drive(store.agent.link.poll())
    await store.until('the operator', () => (store.agent.trust.policy?.operators.length ?? 0) === 1)
    store.agent.lanes.signIn(station, { operatorId, pin: '471108' }, station)
    expect(await type(unpaid.transactionId)).toEqual({ kind: 'not_understood', why: 'purchase_not_paid' })
    for (const unknown of [`pur_${'0'.repeat(26)}`, 'ZZZZZZ'])
      expect(await type(unknown)).toEqual({ kind: 'not_understood', why: 'unknown_code' })
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    expect(await type(number)).toEqual({ kind: 'not_understood', why: 'needs_connection' })
    store.network(true)
    await store.until('online', () => store.agent.link.isOnline)
    // A receipt names no product; the agent knows the only one with its facts.
    expect(await type(`…${end.toLowerCase()} `)).toMatchObject({
      kind: 'decision',
      product: cheap().name,
      answer: { authorized: true, outcome: 'confirmed' },
    })
    expect(await type(` ${number.toLowerCase()} `)).toMatchObject({
      kind: 'decision',
      answer: { reason: 'already_redeemed' },
    })
  })

  it('tells when and where the labels of a used receipt were released, online and offline', async () => {
    await withPad()
    const { pos_deactivator: station } = store.shop.devices
    const deviceName = store.agent.trust.policy?.devices.find(({ deviceId }) => deviceId === station)?.name
    expect(deviceName).toMatch(/\w/)
    const scan = (receipt: string) => store.drive(store.agent.lanes.scan(station, receipt))
    for (const isOnline of [true, false]) {
      const { receipt } = await store.buy([{ ean: cheap().ean, quantity: 1 }])
      if (!isOnline) {
        store.network(false)
        await store.until('offline', () => !store.agent.link.isOnline)
      }
      const first = await scan(receipt)
      expect(first).toMatchObject({ answer: { authorized: true } })
      expect(first).not.toHaveProperty('used')
      const at = new Date(store.world.clock.wall()).toISOString()
      await advance(60_000)
      const again = (await scan(receipt)) as ScanResult & { kind: 'decision' }
      expect(again).toMatchObject({ answer: { reason: 'already_redeemed' }, used: { deviceName } })
      expect(Math.abs(Date.parse(again.used?.at ?? '') - Date.parse(at))).toBeLessThan(10_000)
    }
  })

  it.each([true, false])('names the goods first whose label comes off next, online: %s', async (isOnline) => {
    await withPad()
    await selfServiceForAll()
    const products = store.shop.products.slice(0, 4)
    const { receipt } = await store.buy(products.map(({ ean }) => ({ ean, quantity: 1 })))
    if (!isOnline) {
      store.network(false)
      await store.until('offline', () => !store.agent.link.isOnline)
    }
    const prices = ({ next = [] }: { next?: readonly { priceCent: number }[] }) => next.map((goods) => goods.priceCent)
    let left: number[] | undefined
    for (const _ of products) {
      const result = await store.drive(store.agent.lanes.scan(store.shop.devices.pos_deactivator, receipt))
      if (result.kind !== 'decision') throw new Error(JSON.stringify(result))
      expect(result.answer.authorized).toBe(true)
      if (left) expect(prices(result)).toEqual(left.slice(1))
      left = prices(result)
    }
    expect(left).toEqual([])
  })

  it('names the goods of a receipt with many kinds, which has only their prices', async () => {
    await withPad()
    await selfServiceForAll()
    const bought = store.shop.products.slice(0, 8)
    for (const product of bought) await store.drive(store.shop.newItem(product))
    const { receipt } = await store.buy(bought.map(({ ean }) => ({ ean, quantity: 1 })))
    await store.drive(store.agent.link.poll())
    const result = await store.drive(store.agent.lanes.scan(store.shop.devices.self_checkout_detacher, receipt))
    if (result.kind !== 'receipt') throw new Error(JSON.stringify(result))
    const names = (result.next ?? []).map(({ name }) => name)
    expect(names.toSorted()).toEqual(bought.map(({ name }) => name).toSorted())
    expect((result.next ?? []).every(({ category }) => category === '')).toBe(true)
  })

  it.each([true, false])('tells how many goods of a receipt only staff release, online: %s', async (isOnline) => {
    await withPad()
    const sorted = store.shop.products.toSorted((a, b) => a.price - b.price)
    const bought = [...sorted.slice(0, 2), ...sorted.slice(-2)]
    await selfServiceBelow(bought[2]?.price ?? 0)
    const { receipt } = await store.buy(bought.map((product) => ({ ean: product?.ean, quantity: 1 })))
    if (!isOnline) {
      store.network(false)
      await store.until('offline', () => !store.agent.link.isOnline)
    }
    const scan = () => store.drive(store.agent.lanes.scan(store.shop.devices.pos_deactivator, receipt))
    expect(await scan()).toMatchObject({ answer: { authorized: true, remaining: 1 }, forStaff: 2 })
    expect(await scan()).toMatchObject({ answer: { authorized: true, remaining: 0 }, forStaff: 2 })
    expect(await scan()).toMatchObject({ answer: { authorized: false, reason: 'manual_assistance_required' } })
  })

  it('applies the last receipt, offline, only to the tags that it covers, and counts down', async () => {
    await withPad()
    await selfServiceForAll()
    const [first, second, other] = [await newItem(), await newItem(), await newItem()]
    const { purchase, receipt } = await store.buy([{ ean: cheap().ean, quantity: 2, epcs: [first, second] }])
    store.network(false)
    await store.until('offline', () => !store.agent.link.isOnline)
    await store.drive(store.agent.lanes.scan(store.shop.devices.self_checkout_detacher, receipt))
    // A receipt alone moves no device, because any tag in the detacher would come off.
    const goods = { name: cheap().name, category: 'Bekleidung', brand: 'Fadenfroh', priceCent: 2_499 }
    expect([results(), store.pulses('detacher')]).toEqual([
      [{ kind: 'receipt', left: 2, next: [{ ...goods, quantity: 2 }] }],
      0,
    ])
    expect(
      await store.authorize({
        deviceId: store.shop.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        receipt,
      }),
    ).toMatchObject({ authorized: false, reason: 'tag_not_read' })
    expect(
      await store.authorize({
        deviceId: store.shop.devices.self_checkout_detacher,
        protectionAction: 'detach_hard_tag',
        receipt,
        itemLineId: purchase.items[0].itemLineId,
      }),
    ).toMatchObject({ authorized: false, outcome: null })
    expect(store.pulses('detacher')).toBe(0)
    feedEvents = []
    for (const epc of [other, first, second]) {
      fake.placeTag({ epc })
      await store.until('an answer', () => answers().length === [other, first, second].indexOf(epc) + 1)
      fake.emit({ type: 'tag_gone', tag: { epc } })
      await advance(1_500)
    }
    expect(
      answers().map(({ authorized, itemCount, remaining, offline }) => ({ authorized, itemCount, remaining, offline })),
    ).toEqual([
      { authorized: false, itemCount: 0, remaining: 0, offline: true },
      { authorized: true, itemCount: 2, remaining: 1, offline: true },
      { authorized: true, itemCount: 2, remaining: 0, offline: true },
    ])
    // After the first item the page names the second one, and after the last one nothing.
    expect(results().map((result) => (result.kind === 'decision' ? result.next : []))).toEqual([
      undefined,
      [{ ...goods, quantity: 1 }],
      undefined,
    ])
    expect(store.pulses('detacher')).toBe(2)
  })

  it('releases a paid item after another shopper’s forged, foreign or expired receipt', async () => {
    await withPad()
    const [laid, scanned, unpaid] = [await newItem(), await newItem(), await newItem()]
    await store.buy([{ ean: cheap().ean, quantity: 2, epcs: [laid, scanned] }])
    const { receipt } = await store.buy([{ ean: cheap().ean, quantity: 1 }])
    await store.drive(store.agent.link.poll())
    const { lanes } = store.agent
    const detacher = store.shop.devices.self_checkout_detacher
    await store.drive(
      lanes.scan(
        detacher,
        receipt.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
      ),
    )
    expect(answers()[0]).toMatchObject({ authorized: false, reason: 'token_invalid' })
    fake.placeTag({ epc: laid })
    await store.until('an answer', () => answers().length === 2)
    for (const epc of [scanned, unpaid]) await store.drive(lanes.scan(detacher, epc))
    expect(answers().slice(1)).toMatchObject([
      { authorized: true, outcome: 'confirmed', itemStatus: 'paid' },
      { authorized: true, outcome: 'confirmed', itemStatus: 'paid' },
      { authorized: false, reason: 'token_invalid' },
    ])
  })

  it('handles one tag at a time, and moves no device for a removed tag', async () => {
    await withPad()
    const epcs = [await newItem(), await newItem(), await newItem()]
    await store.buy([{ ean: cheap().ean, quantity: 3, epcs }])
    await store.drive(store.agent.link.poll())
    for (const epc of epcs) fake.placeTag({ epc })
    await store.until('the first release', () => store.pulses('detacher') === 1)
    fake.emit({ type: 'tag_gone', tag: { epc: epcs[1] ?? '' } })
    await store.until('two answers', () => answers().length === 2)
    await advance(3_000)
    expect(results().map((result) => result.kind === 'decision' && result.item)).toEqual([epcs[0], epcs[2]])
    expect(store.pulses('detacher')).toBe(2)
  })

  it('reports a movement without a command, a second movement after one command, and a jam', async () => {
    await withPad()
    const { detacher } = store.boards
    detacher.setInput(0, true)
    await advance(500)
    detacher.setInput(0, false)
    await advance(500)
    expect(results()).toEqual([{ kind: 'alarm', what: 'unexpected_release' }])
    const epc = await newItem()
    await store.buy([{ ean: cheap().ean, quantity: 1, epcs: [epc] }])
    await store.drive(store.agent.link.poll())
    fake.placeTag({ epc })
    await store.until('the release', () => answers().length === 1)
    await advance(600)
    expect(results()).toHaveLength(2)
    detacher.setInput(0, true)
    await advance(300)
    expect(results()).toHaveLength(3)
    // The contact stays closed, so the device gets no further command.
    const next = await newItem()
    await store.buy([{ ean: cheap().ean, quantity: 1, epcs: [next] }])
    await store.drive(store.agent.link.poll())
    fake.placeTag({ epc: next })
    await store.until('the jam', () => answers().length === 2)
    expect(answers()[1]).toMatchObject({ authorized: true, outcome: 'failed' })
    expect(store.pulses('detacher')).toBe(1)
    expect((await exceptions()).toSorted()).toEqual(
      expect.arrayContaining(['release_jammed', 'unexpected_release', 'unexpected_release']),
    )
  })

  it('names the tag to a device that writes to it, and ignores weak reads', async () => {
    await open((shop, { device }) => ({
      entries: [
        {
          deviceId: shop.devices.self_checkout_detacher,
          driver: 'uhf-m100',
          link: { tcp: '10.0.0.9:1' },
          nearDbm: -50,
          deactivate: { method: 'eas' },
        },
      ],
      devices: { [shop.devices.self_checkout_detacher]: device },
    }))
    const epc = await newItem()
    await store.buy([{ ean: cheap().ean, quantity: 1, epcs: [epc] }])
    await store.drive(store.agent.link.poll())
    fake.placeTag({ epc }, { rssiDbm: -60 })
    fake.placeTag({ epc }, { rssiDbm: -40, seenAtMs: store.world.clock.elapsed() - 3_000 })
    await advance(1_000)
    expect([fake.commands, answers()]).toEqual([[], []])
    fake.placeTag({ epc }, { rssiDbm: -45 })
    await store.until('the release', () => answers().length === 1)
    expect(fake.commands.filter(({ kind }) => kind === 'release')).toEqual([{ kind: 'release', tag: { epc } }])
  })

  it('counts people by beams, and ends the repeated signal after a passage', async () => {
    await open((shop) => ({
      entries: [
        {
          deviceId: shop.devices.exit_gate,
          driver: 'modbus',
          link: { tcp: '10.0.0.2:502' },
          output: 0,
          confirmInput: 0,
          beams: { outside: 4, inside: 3 },
          siren: { output: 1 },
          amber: { output: 2 },
          green: { output: 3 },
        },
      ],
    }))
    const { gate } = store.boards
    const passGate = async () => {
      for (const input of [3, 4]) {
        gate.setInput(input, true)
        await advance(100)
        gate.setInput(input, false)
        await advance(100)
      }
    }
    const { receipt } = await store.buy([{ ean: cheap().ean, quantity: 1 }])
    const presentReceipt = () =>
      store.authorize({ deviceId: store.shop.devices.exit_gate, protectionAction: 'authorize_exit', receipt })
    expect([await presentReceipt(), await presentReceipt()]).toEqual([
      expect.objectContaining({ authorized: true }),
      expect.objectContaining({ authorized: true }),
    ])
    await passGate()
    expect(await presentReceipt()).toMatchObject({ authorized: false, reason: 'already_redeemed' })
    expect(feedEvents.filter((event) => event.type === 'person')).toEqual([
      { type: 'person', deviceId: store.shop.devices.exit_gate, direction: 'out', count: 1 },
    ])
    expect((await store.local('/metrics')).body).toContain(
      `untag_people_total{device="${store.shop.devices.exit_gate}",direction="out"} 1`,
    )
  })

  it('lights green at a gate that opened, and amber at a gate that stayed shut', async () => {
    await open((shop) => ({
      entries: [
        {
          deviceId: shop.devices.exit_gate,
          driver: 'modbus',
          link: { tcp: '10.0.0.2:502' },
          output: 0,
          confirmInput: 0,
          siren: { output: 1 },
          amber: { output: 2 },
          green: { output: 3 },
        },
      ],
    }))
    const { gate } = store.boards
    const lit = () => [2, 3].filter((coil) => gate.log.some((change) => change.coil === coil && change.on))
    const presentReceipt = async () => {
      const { receipt } = await store.buy([{ ean: cheap().ean, quantity: 1 }])
      return store.authorize({ deviceId: store.shop.devices.exit_gate, protectionAction: 'authorize_exit', receipt })
    }
    gate.stick(0, false)
    expect(await presentReceipt()).toMatchObject({ authorized: true, outcome: expect.stringMatching(/failed|unknown/) })
    await store.until('amber', () => lit().length > 0)
    expect(lit()).toEqual([2])
    gate.stick(0, null)
    expect(await presentReceipt()).toMatchObject({ authorized: true, outcome: 'confirmed' })
    await store.until('green', () => lit().length > 1)
  })
})
