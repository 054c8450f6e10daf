import { checkDigit } from '../../policy/gs1/gtin.ts'
import type { DatabaseKind } from './databases.ts'
import { startTestCloud, type Json, type TestCloud } from './cloud.ts'

/** The sandbox's RFID store with everything that tests use. */
export interface Shop {
  cloud: TestCloud
  key: string
  storeId: string
  /** The second store of the same account. */
  otherStoreId: string
  devices: Record<'pos_deactivator' | 'self_checkout_detacher' | 'exit_gate' | 'cabinet_unlocker', string>
  /** Tagged products below the threshold of the sandbox policy, always in the same order. */
  products: Json[]
  /** Id of the loyalty program. */
  programId: string
  ok(operation: string, body?: unknown, headers?: Record<string, string>): Promise<Json>
  call: (operation: string, body?: unknown, headers?: Record<string, string>) => ReturnType<TestCloud['call']>
  /** Checks out and pays. */
  buy(items: Json[]): Promise<Json>
  /** A new sellable item with a unique EPC. */
  newItem(product: Json, fields?: Json): Promise<{ epc: string }>
  stop(): Promise<void>
}

let serial = 0

/** A unique EPC; it is not an SGTIN, so that it does not identify a product. */
export function newEpc(): string {
  serial++
  return `E280${process.pid.toString(16).padStart(8, '0')}${serial.toString(16).padStart(12, '0')}`.toUpperCase()
}

/** A unique EAN-13 with its check digit. */
export function newEan(): string {
  serial++
  const digits = `42${String(process.pid % 100_000).padStart(5, '0')}${String(serial % 100_000).padStart(5, '0')}`
  return `${digits}${checkDigit(digits)}`
}

export async function openShop(kind: DatabaseKind, options: Parameters<typeof startTestCloud>[1] = {}): Promise<Shop> {
  const cloud = await startTestCloud(kind, options)
  const key = await cloud.key('secret')
  const ok: Shop['ok'] = (operation, body, headers) => cloud.ok(key, operation, body, headers)
  const { stores } = await ok('fetchStores')
  const storeId = stores.find((s: Json) => s.securityTagMode === 'rfid').storeId
  const otherStoreId = stores.find((s: Json) => s.securityTagMode === 'station').storeId
  const { devices } = await ok('fetchDevices', { storeId })
  const { products } = await ok('fetchProducts', { storeId, limit: 500, category: 'bekleidung' })
  const { programs } = await ok('getStoreLoyaltyPrograms', { storeId })
  return {
    cloud,
    key,
    storeId,
    otherStoreId,
    devices: Object.fromEntries(devices.map((d: Json) => [d.deviceType, d.deviceId])) as Shop['devices'],
    products: products
      .filter((p: Json) => p.price < 150 && p.price > 20)
      .sort((a: Json, b: Json) => (a.ean < b.ean ? -1 : 1)),
    ok,
    call: (operation, body, headers) => cloud.call(key, operation, body, headers),
    programId: programs[0].programId,
    async buy(items) {
      const { sessionId } = await ok('checkIn', { storeId, userId: 'shopper-1' })
      const { transactionId } = await ok('startCheckout', { sessionId, items })
      return ok('completeTestCheckout', { transactionId })
    },
    async newItem(product, fields = {}) {
      const epc = newEpc()
      const { registered, errors } = await ok('registerProtectedItems', {
        storeId,
        items: [{ epc, ean: product.ean, protectionTechnology: 'uhf_rfid', ...fields }],
      })
      if (registered !== 1) throw new Error(JSON.stringify(errors))
      return { epc }
    },
    stop: () => cloud.stop(),
  }
}
