import { afterEach, describe, expect, it } from 'vitest'
import type { Json } from '../../support/cloud.ts'
import { openStore, type TestStore } from '../../support/store.ts'

/** The right of a receipt to open a barrier once (ADR gates, `PASS`). */
let store: TestStore
afterEach(() => store.stop())

const leave = (receipt: string) =>
  store.authorize({ deviceId: store.shop.devices.exit_gate, protectionAction: 'authorize_exit', receipt })
const USED = { authorized: false, reason: 'already_redeemed' }
const OPEN = { authorized: true, itemCount: 1, outcome: 'confirmed' }
const milk = { ean: '4044713104064' }

async function offline(isOffline = true): Promise<void> {
  store.network(!isOffline)
  await store.until('the network', () => store.agent.link.isOnline !== isOffline)
}

async function call(operation: string, body: Json): Promise<Json> {
  return store.drive(store.shop.ok(operation, { storeId: store.shop.storeId, ...body }))
}

let number = 0
/** Sells goods at a till. Returns the text of their receipt. */
async function sell(
  lines: Json[],
  fields: Json = {},
): Promise<{ receipt: string; saleId: string; purchaseId: string }> {
  const saleId = `s${++number}`
  const occurredAt = new Date(store.world.clock.wall()).toISOString()
  const { results, errors } = await call('recordSales', { sales: [{ saleId, occurredAt, lines, ...fields }] })
  expect(errors).toEqual([])
  return { receipt: results[0].receiptToken, saleId, purchaseId: results[0].purchaseId }
}
const line = (fields: Json = {}) => ({ ean: milk.ean, quantity: 1, priceUnit: 199, vat: 7, ...fields })

describe.each([false, true])('a receipt opens a barrier once, offline %s', (isOffline) => {
  it.each([
    ['with milk only', () => [line()]],
    ['with 500 lines', () => Array.from({ length: 500 }, () => line())],
    ['with 60 tagged units', () => [line({ ean: store.shop.products[0].ean, quantity: 60, priceUnit: 990, vat: 19 })]],
    ['with weighed goods', () => [{ name: 'Äpfel', quantity: 1.234, priceUnit: 297, vat: 7 }]],
  ])('%s', async (_name, lines) => {
    store = await openStore()
    const { receipt } = await sell(lines())
    if (isOffline) await offline()
    expect(await leave(receipt)).toMatchObject({ ...OPEN, offline: isOffline })
    expect(await leave(receipt)).toMatchObject({ ...USED, offline: isOffline })
    expect(store.pulses('gate')).toBe(1)
    await offline(!isOffline)
    expect(await leave(receipt)).toMatchObject({ ...USED, offline: !isOffline })
  })
})

it('opens for two receipts of one trolley', async () => {
  store = await openStore()
  const [one, two] = [await sell([line()]), await sell([line()])]
  await offline()
  expect(await leave(one.receipt)).toMatchObject(OPEN)
  expect(await leave(two.receipt)).toMatchObject(OPEN)
  expect(store.pulses('gate')).toBe(2)
})

it('makes a purchase UNLOADED, and stays apart from the rights of its goods', async () => {
  store = await openStore()
  const { epc } = await store.drive(store.shop.newItem(store.shop.products[0]))
  const { receipt, purchaseId } = await sell([line({ ean: store.shop.products[0].ean, epcs: [epc] })])
  await offline()
  expect(await leave(receipt)).toMatchObject(OPEN)
  expect(
    await store.authorize({
      deviceId: store.shop.devices.exit_gate,
      protectionAction: 'authorize_exit',
      receipt,
      epc,
    }),
  ).toMatchObject({ authorized: true })
  await offline(false)
  await store.until('the report', () => store.agent.ledger.journal.waiting === 0)
  const purchase = await store.drive(store.shop.ok('fetchPurchase', { transactionId: purchaseId }))
  expect(purchase.status).toBe('UNLOADED')
})

it('does not open after all goods came back, or the sale is void', async () => {
  store = await openStore()
  const [back, part, gone] = [
    await sell([line({ quantity: 2 })]),
    await sell([line({ quantity: 2 })]),
    await sell([line()]),
  ]
  const returns = [
    { returnId: 'r1', saleId: back.saleId },
    { returnId: 'r2', saleId: part.saleId, lines: [{ lineId: '1', quantity: 1 }] },
  ]
  expect((await call('recordReturns', { returns })).errors).toEqual([])
  await call('voidSale', { saleId: gone.saleId })
  for (const isOffline of [false, true]) {
    await store.drive(store.agent.link.refreshDocuments())
    await offline(isOffline)
    expect(await leave(back.receipt)).toMatchObject(USED)
    expect(await leave(gone.receipt)).toMatchObject({ authorized: false, reason: 'token_revoked' })
  }
  expect(await leave(part.receipt)).toMatchObject(OPEN)
})
