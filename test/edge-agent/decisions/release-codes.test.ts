import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/** What a code that a till printed is at a deactivator or detacher, by `tillSales.codes` of the policy (ADR till-sales). */
let store: TestStore
beforeEach(async () => void (store = await openStore()))
afterEach(() => store.stop())

const RANDOM = '9f86d081884c7d65'
const COUNTED = '2026112000004711'
const OPEN = { authorized: true, outcome: 'confirmed' }
const FOR_EXIT = { kind: 'not_understood', why: 'code_for_exit' }

async function setCodes(codes: 'barrier' | 'release'): Promise<void> {
  const { storeId } = store.shop
  const { policy } = await store.drive(store.shop.ok('fetchProtectionPolicy', { storeId }))
  const tillSales = { ...policy.tillSales, codes }
  await store.drive(store.shop.ok('updateProtectionPolicy', { storeId, policy: { ...policy, tillSales } }))
  await store.until('the policy', () => store.agent.trust.policy?.policy.tillSales.codes === codes)
}

let number = 0
/** A till sold one piece of the first product, and named its tag or not. */
async function sell(code: string, named: Json = {}): Promise<void> {
  const { ean } = store.shop.products[0]
  const sale = {
    saleId: `r${++number}`,
    tillId: 'till-1',
    occurredAt: new Date(store.world.clock.wall()).toISOString(),
    receiptCodes: [code],
    lines: [{ ean, quantity: 1, priceUnit: 990, vat: 19, ...named }],
  }
  await store.drive(store.shop.ok('recordSales', { storeId: store.shop.storeId, sales: [sale] }))
}

async function scan(text: string, deviceId = store.shop.devices.pos_deactivator): Promise<Json> {
  const { body } = await store.local('/v1/scan', { method: 'POST', body: { deviceId, text } })
  return body.kind === 'decision' ? body.answer : body
}

async function newTag(): Promise<string> {
  const { epc } = await store.drive(store.shop.newItem(store.shop.products[0]))
  await store.until('the item', () => store.agent.items.find('epc', epc) !== undefined)
  return epc as string
}

const detach = (epc: string, text: string) =>
  store.authorize({
    deviceId: store.shop.devices.self_checkout_detacher,
    protectionAction: 'detach_hard_tag',
    scan: text,
    epc,
  })

it('releases no labels by default: only the tags that its sale names', async () => {
  const [named, sameProduct] = [await newTag(), await newTag()]
  await sell(RANDOM, { epcs: [named] })
  expect(await scan(RANDOM)).toMatchObject(FOR_EXIT)
  const label = { deviceId: store.shop.devices.pos_deactivator, protectionAction: 'deactivate_label' as const }
  expect((await store.authorize({ ...label, scan: RANDOM })).authorized).toBe(false)
  expect((await detach(sameProduct, RANDOM)).authorized).toBe(false)
  expect(await detach(named, RANDOM)).toMatchObject(OPEN)
  expect(await scan(RANDOM, store.shop.devices.exit_gate)).toMatchObject(OPEN)
})

it('at a gate lets no tag of the same product out by default', async () => {
  const tag = await newTag()
  await sell(RANDOM)
  const { exit_gate: gate } = store.shop.devices
  expect(await scan(RANDOM, gate)).toMatchObject(OPEN)
  expect((await scan(tag, gate)).authorized).toBe(false)
  const exit = { deviceId: gate, protectionAction: 'authorize_exit' as const, scan: RANDOM }
  expect((await store.authorize({ ...exit, epc: tag })).authorized).toBe(false)
})

it('releases labels by product, each piece once, if the policy allows it and the code is random', async () => {
  await setCodes('release')
  await sell(RANDOM)
  await sell(COUNTED)
  expect(await scan(COUNTED)).toMatchObject(FOR_EXIT)
  expect(await scan(RANDOM)).toMatchObject(OPEN)
  expect(await scan(RANDOM)).toMatchObject({ authorized: false, reason: 'already_redeemed' })
  const { exit_gate: gate } = store.shop.devices
  for (const text of [RANDOM, COUNTED]) expect(await scan(text, gate)).toMatchObject(OPEN)
  const tag = await newTag()
  const other = '8F2K4M7QB3X9PW5T'
  await sell(other)
  expect(await detach(tag, other)).toMatchObject(OPEN)
})
