import { afterEach, expect, it } from 'vitest'
import { technologyOfUid } from '../../../cloud/protection/items/item-queries.ts'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'
import { fakeDevice, type FakeDevice } from '../../support/fake-device.ts'

/** Tests which fields an agent's events have with each driver (docs/reference/protection-events.md). */

let store: TestStore
let pad: FakeDevice
afterEach(() => store.stop())

/** A store whose detacher has an NFC pad and a UHF reader instead of its relay board. */
async function openWithPad(): Promise<void> {
  store = await openStore({
    extra: async (shop, world) => {
      pad = fakeDevice(world.clock.elapsed)
      const deviceId = shop.devices.self_checkout_detacher
      return {
        entries: [{ deviceId, driver: 'pcsc', link: { pcsc: 'pad' } }],
        devices: { [deviceId]: pad.device },
      }
    },
  })
}

/** Waits for `count` completed actions at the device, and returns the newest event from `fetchProtectionEvents`. */
async function completedAt(deviceId: string, count = 1): Promise<Json> {
  const list = async () =>
    (
      await store.shop.ok('fetchProtectionEvents', {
        storeId: store.shop.storeId,
        deviceId,
        type: 'protection.action.completed',
        limit: 500,
      })
    ).events as Json[]
  let events: Json[] = []
  await store.until('the event at the cloud', async () => (events = await list()).length >= count)
  return events.at(-1)
}

const paidItem = async (fields: Json): Promise<Json> => {
  const [product] = store.shop.products
  const { epc } = await store.drive(store.shop.newItem(product, { protectionTechnology: undefined, ...fields }))
  const { purchase, receipt } = await store.buy([{ ean: product.ean, quantity: 1, epcs: [epc] }])
  return { epc, purchase, receipt }
}

it.each([
  ['the reader’s, if the item names none', {}, 'MifareUltralight', 'MifareUltralight', 'hf_nfc'],
  ['that of the UID’s form, if neither item nor reader names one', {}, undefined, 'NfcA', 'hf_nfc'],
  ['the technology of protection as registered', { protectionTechnology: 'am' }, 'NfcV', 'NfcV', 'am'],
])('names the chip of an NFC tag: %s', async (_, fields, technology, tagTechnology, protectionTechnology) => {
  await openWithPad()
  const tag = { tagUid: '04A2B3C4D5E680' }
  await paidItem({ ...tag, ...fields })
  pad.emit({
    type: 'tags',
    reads: [{ tag, seenAtMs: store.world.clock.elapsed(), ...(technology && { technology: technology as 'NfcV' }) }],
  })
  expect(await completedAt(store.shop.devices.self_checkout_detacher)).toMatchObject({
    ...tag,
    protectionAction: 'detach_hard_tag',
    tagTechnology,
    protectionTechnology,
    deviceType: 'self_checkout_detacher',
    workflowType: 'self_service',
  })
})

it('names purchase, line and status of a registered item, also for a receipt and for a tag that only left', async () => {
  store = await openStore()
  const { storeId } = store.shop
  const { self_checkout_detacher: detacher, exit_gate: gate } = store.shop.devices
  const goods = [await paidItem({}), await paidItem({})]
  const [{ epc, purchase, receipt }, other] = goods
  await store.until('the replica', () =>
    goods.every((each) => store.agent.items.find('epc', each.epc)?.status === 'paid'),
  )
  store.network(false)
  await store.until('offline', () => !store.agent.link.isOnline)
  const request = { deviceId: detacher, protectionAction: 'detach_hard_tag' }
  expect(await store.authorize({ ...request, epc, receipt })).toMatchObject({ authorized: true, offline: true })
  await store.until('the outcome', () => store.agent.ledger.claims.unsettled().length === 0)
  // Staff change the status before the events arrive. The events keep the status of their time.
  store.world.sleep(2_000)
  await store.drive(store.shop.ok('updateItemStatus', { storeId, epc, itemStatus: 'exception_hold' }))
  store.network(true)
  await store.until('online', () => store.agent.link.isOnline)
  const isAbout = (each: Json) => ({
    epc: each.epc,
    purchaseId: each.purchase.transactionId,
    itemLineId: each.purchase.items[0].itemLineId,
    itemStatus: 'paid',
  })
  expect(await completedAt(detacher)).toMatchObject({ ...isAbout({ epc, purchase }), offline: true })
  const seen = { type: 'protection.action.completed' as const, protectionAction: 'authorize_exit' as const }
  await store.drive(
    store.agent.ledger.record({
      atMs: store.world.clock.wall(),
      event: {
        ...seen,
        eventId: 'evt_seen',
        occurredAt: new Date(store.world.clock.wall()).toISOString(),
        storeId,
        deviceId: gate,
        epc: other?.epc,
        outcome: 'confirmed',
        detail: 'seen leaving: paid',
      },
    }),
  )
  expect(await completedAt(gate)).toMatchObject(isAbout(other ?? {}))
})

it('names UHF for an EPC, at a detacher and at the gate, and no chip', async () => {
  store = await openStore()
  const { epc } = await paidItem({})
  const { self_checkout_detacher: detacher, exit_gate: gate } = store.shop.devices
  await store.drive(store.agent.lanes.scan(detacher, epc))
  await store.authorize({ deviceId: gate, protectionAction: 'authorize_exit', epc })
  for (const deviceId of [detacher, gate]) {
    const event = await completedAt(deviceId)
    expect(event).toMatchObject({ epc, protectionTechnology: 'uhf_rfid' })
    expect(event).not.toHaveProperty('tagTechnology')
  }
})

it('names without a tag the only technology of the device for the action, else that of the store, else none', async () => {
  store = await openStore()
  const { pos_deactivator: till } = store.shop.devices
  const [product] = store.shop.products
  const release = async (): Promise<void> => {
    const { receipt } = await store.buy([{ ean: product.ean, quantity: 1 }])
    expect((await store.authorize({ deviceId: till, protectionAction: 'deactivate_label', receipt })).outcome).toBe(
      'confirmed',
    )
  }
  await release()
  expect(await completedAt(till)).not.toHaveProperty('protectionTechnology')
  await store.drive(store.shop.ok('updateDevice', { deviceId: till, supportedTechnologies: ['rf', 'uhf_rfid'] }))
  await release()
  expect(await completedAt(till, 2)).toMatchObject({ protectionTechnology: 'rf', scanSource: 'pos' })
  await store.drive(store.shop.ok('updateDevice', { deviceId: till, supportedTechnologies: ['am', 'rf'] }))
  await store.drive(
    store.shop.cloud.db.database.write((tx) =>
      tx.updateTable('store').set({ protection_technology: 'am' }).where('store_id', '=', store.shop.storeId).execute(),
    ),
  )
  await release()
  expect(await completedAt(till, 3)).toMatchObject({ protectionTechnology: 'am' })
})

it('derives the air interface from the form of a UID', () => {
  expect(technologyOfUid('E00401500A1B2C3D')).toBe('NfcV')
  expect(technologyOfUid('04A2B3C4D5E680')).toBe('NfcA')
  expect(technologyOfUid('04A2B3C4D5E680112233')).toBe('NfcA')
  expect(technologyOfUid('04A2B3C4')).toBeUndefined()
})
