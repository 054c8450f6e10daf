import { afterEach, beforeEach, expect, it } from 'vitest'
import { atLanes } from '../../support/at-lanes.ts'
import { newEpc } from '../../support/shop.ts'
import { openStore, type TestStore } from '../../support/store.ts'

let store: TestStore
beforeEach(async () => void (store = await openStore()))
afterEach(() => store.stop())
const { detach, leave, offline, synced } = atLanes(() => store)

it('protects the goods that carry a reused tag, also offline against the receipt of the goods that carried it', async () => {
  const { shop, agent, drive } = store
  const [first, second] = shop.products
  const [epc, other] = [newEpc(), newEpc()]
  const items = [epc, other].map((each) => ({ epc: each, ean: first.ean, protectionTechnology: 'uhf_rfid' }))
  await drive(shop.ok('registerProtectedItems', { storeId: shop.storeId, items }))
  const { receipt } = await store.buy([{ ean: first.ean, quantity: 2, epcs: [epc, other] }])
  await store.until('the paid items', () => agent.items.find('epc', epc)?.status === 'paid')
  expect(await detach({ receipt, epc })).toMatchObject({ authorized: true, outcome: 'confirmed' })
  await synced()
  const gate = { deviceId: shop.devices.exit_gate, protectionAction: 'authorize_exit' }
  const { authorizationToken: token } = await drive(shop.ok('verifyProtectedItem', { ...gate, epc }))
  const { reused } = await drive(shop.ok('reuseTags', { storeId: shop.storeId, tags: [{ epc, ean: second.ean }] }))
  expect(reused).toBe(1)
  await store.until('the new goods', () => agent.items.find('epc', epc)?.status === 'sellable')
  const denied = { authorized: false, outcome: null }
  expect(await leave({ epc })).toMatchObject({ ...denied, reason: 'item_not_paid', itemStatus: 'sellable' })
  expect(await leave({ receipt, epc })).toMatchObject(denied)
  expect(await leave({ token, epc })).toMatchObject({ ...denied, reason: 'token_revoked' })
  await store.until('the denial', () => (agent.trust.heldVersions().deny?.[1] ?? 0) > 0)
  await offline()
  expect(await leave({ epc })).toMatchObject(denied)
  expect(await leave({ receipt, epc })).toMatchObject(denied)
  expect(await detach({ receipt, epc })).toMatchObject(denied)
  // The other goods of the receipt may leave.
  expect(await leave({ receipt, epc: other })).toMatchObject({ authorized: true })
  expect(store.pulses('detacher')).toBe(1)
})
