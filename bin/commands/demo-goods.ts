import type { Shopper } from '../../simulators/services/shopper.ts'

export interface DemoProduct {
  ean: string
  name: string
  price: number
  tagged: boolean
}

/** Price limit, EUR. It is below 200 EUR, the price from which the sandbox policy needs staff. */
const CHEAP_ENOUGH = 150

/** Tagged products that a shopper can release without staff. */
async function products(api: Shopper, storeId: string): Promise<DemoProduct[]> {
  const { products: all } = (await api.call('fetchProducts', { storeId, limit: 100, category: 'bekleidung' })) as {
    products: DemoProduct[]
  }
  return all.filter((p) => p.tagged && p.price < CHEAP_ENOUGH)
}

let turn = 0

/** The next product, in rotation. */
export async function nextProduct(api: Shopper, storeId: string): Promise<DemoProduct> {
  const all = await products(api, storeId)
  const product = all[turn++ % all.length]
  if (!product) throw new Error('the sandbox store has no products: delete the folder var/demo and start again')
  return product
}

/** Registers a new sellable item with an EPC. */
export async function newUnpaidItem(api: Shopper, storeId: string): Promise<DemoProduct & { epc: string }> {
  const product = await nextProduct(api, storeId)
  const epc = `E280${Math.trunc(performance.timeOrigin + performance.now())
    .toString(16)
    .toUpperCase()
    .padStart(20, '0')}`
  await api.call('registerProtectedItems', {
    storeId,
    items: [{ epc, ean: product.ean, protectionTechnology: 'uhf_rfid' }],
  })
  return { ...product, epc }
}
