import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Json } from '../../../support/cloud.ts'
import { countStatements } from '../../../support/count-statements.ts'
import { openShop, type Shop } from '../../../support/shop.ts'

/** Units of the smaller purchase. */
const UNITS = 100
/** Statements that 100 units more may add. Queries and inserts take 100 rows at once; background jobs run meanwhile. */
const MORE = 60

describe('the number of statements hardly grows with the units of a purchase', () => {
  let shop: Shop
  beforeAll(async () => {
    shop = await openShop('sqlite')
  })
  afterAll(() => shop.stop())

  const linesOf = (units: number): Json[] =>
    Array.from({ length: units / 4 }, (_, n) => ({ ean: shop.products[n % shop.products.length]!.ean, quantity: 4 }))
  const itemsOf = async (units: number): Promise<Json[]> => {
    const epcs: string[] = []
    for (let n = 0; n < units; n++) epcs.push((await shop.newItem(shop.products[0]!)).epc)
    return [{ ean: shop.products[0]!.ean, quantity: units, epcs }]
  }

  /** Runs the steps, the same for purchases of both sizes. Returns the statements of each. */
  async function statementsOf(items: Json[], steps: Record<string, (id: string) => Promise<unknown>>) {
    const counts: Record<string, number> = {}
    const { sessionId } = await shop.ok('checkIn', { storeId: shop.storeId })
    let id = ''
    const count = async (name: string, work: () => Promise<unknown>) => (counts[name] = await countStatements(work))
    await count('startCheckout', async () => {
      id = (await shop.ok('startCheckout', { sessionId, items })).transactionId
    })
    await count('completeTestCheckout', () => shop.ok('completeTestCheckout', { transactionId: id }))
    for (const [name, run] of Object.entries(steps)) await count(name, () => run(id))
    return counts
  }

  async function expectFlat(of: (units: number) => Promise<Record<string, number>>) {
    await of(UNITS) // compiles the statements and fills the caches
    const [once, twice] = [await of(UNITS), await of(2 * UNITS)]
    for (const [name, count] of Object.entries(twice)) expect([name, count - once[name]! < MORE]).toEqual([name, true])
  }

  const verify = (deviceId: string) => (purchaseId: string) =>
    shop.ok('verifySecurityTagDeactivation', { purchaseId, deviceId })
  const verifyItem = (protectionAction: string, deviceId: string, fields: Json) => (purchaseId: string) =>
    shop.ok('verifyProtectedItem', { protectionAction, deviceId, purchaseId, ...fields })

  it('from products', async () => {
    const { pos_deactivator, exit_gate } = shop.devices
    await expectFlat(async (units) => {
      const { epc } = await shop.newItem(shop.products[0]!)
      return statementsOf(linesOf(units), {
        'verify at the gate': verify(exit_gate),
        'bind an item': verifyItem('deactivate_label', pos_deactivator, { epc }),
        'lease all': verify(pos_deactivator),
        'lease all again': verify(pos_deactivator),
        'lease all exits': verifyItem('authorize_exit', exit_gate, {}),
        'verify at an earlier time': (purchaseId) =>
          shop.ok('verifySecurityTagDeactivation', {
            purchaseId,
            deviceId: pos_deactivator,
            occurredAt: new Date(shop.cloud.platform.clock.wall() - 1_000).toISOString(),
          }),
        markPurchaseCancelled: (purchaseId) => shop.ok('markPurchaseCancelled', { purchaseId }),
      })
    })
  })

  it('that are refunded', async () => {
    await expectFlat((units) =>
      statementsOf([{ ean: shop.products[0]!.ean, quantity: units }], {
        refundPayment: async (purchaseId) => {
          const { items } = await shop.ok('fetchPurchase', { transactionId: purchaseId })
          const lines = [{ itemLineId: items[0].itemLineId, quantity: units }]
          await shop.ok('refundPayment', { purchaseId, lines })
        },
      }),
    )
  })

  it.each([
    ['cancelled', (purchaseId: string) => shop.ok('markPurchaseCancelled', { purchaseId })],
    [
      'refunded',
      async (purchaseId: string) => {
        const { items } = await shop.ok('fetchPurchase', { transactionId: purchaseId })
        await shop.ok('refundPayment', { purchaseId, lines: [{ itemLineId: items[0].itemLineId }] })
      },
    ],
  ])('from tagged items that are %s', async (_name, end) => {
    const of = async (units: number) =>
      statementsOf(await itemsOf(units), { verify: verify(shop.devices.pos_deactivator), end })
    await of(20)
    const [once, twice] = [await of(20), await of(120)]
    for (const [name, count] of Object.entries(twice)) expect([name, count - once[name]! < MORE]).toEqual([name, true])
  })
})
