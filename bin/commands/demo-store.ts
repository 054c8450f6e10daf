import type { Shopper } from '../../simulators/services/shopper.ts'

interface DemoProduct {
  ean: string
  name: string
  price: number
  tagged: boolean
}

/** Price limit, EUR. It is below 200 EUR, the price from which the sandbox policy needs staff. */
const CHEAP_ENOUGH = 150

/** Tagged products that a shopper can release without staff. */
async function products(api: Shopper, storeId: string): Promise<DemoProduct[]> {
  const { products: all } = (await api.call('fetchProducts', { storeId, limit: 100, category: 'Bekleidung' })) as {
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

/** The store and the devices of the demonstration. */
export interface DemoStore {
  storeId: string
  name: string
  devices: Record<'station' | 'detacher' | 'gate', string>
}

/** Finds the sandbox store with UHF tags, and its station, detacher and gate. */
export async function rfidStore(api: Shopper): Promise<DemoStore> {
  const { stores } = (await api.call('fetchStores', {})) as {
    stores: { storeId: string; tradingName: string; securityTagMode: string }[]
  }
  const store = stores.find((s) => s.securityTagMode === 'rfid')
  if (!store) throw new Error('the sandbox has no store with UHF tags: delete the folder var/demo and start again')
  const { devices } = (await api.call('fetchDevices', { storeId: store.storeId })) as {
    devices: { deviceId: string; deviceType: string }[]
  }
  const one = (deviceType: string) => {
    const found = devices.find((d) => d.deviceType === deviceType)
    if (!found) throw new Error(`the sandbox store has no ${deviceType}: delete the folder var/demo and start again`)
    return found.deviceId
  }
  return {
    storeId: store.storeId,
    name: store.tradingName,
    devices: { station: one('pos_deactivator'), detacher: one('self_checkout_detacher'), gate: one('exit_gate') },
  }
}
