import type { Json } from './cloud.ts'
import { LANES, type LaneName, type TestStore } from './store.ts'

/** Actions of people at the lanes of a store, and the events in the cloud. */
export interface AtLanes {
  device(lane: LaneName): string
  /** Shows a receipt at the staff station. */
  release(receipt: string, fields?: Json): Promise<Json>
  /** Sends an exit request at the gate. */
  leave(fields: Json): Promise<Json>
  /** Sends a request at the self-checkout detacher. */
  detach(fields: Json): Promise<Json>
  /** Waits until the agent has sent all rows to the cloud. */
  synced(): Promise<void>
  offline(): Promise<void>
  events(filter?: Json): Promise<Json[]>
  /** A product so cheap that several of them stay below every threshold. */
  product(): Json
}

/** Actions at the lanes of the currently open store. */
export function atLanes(store: () => TestStore): AtLanes {
  const device = (lane: LaneName): string => store().shop.devices[LANES[lane]]
  const synced = () => store().until('an empty outbox', () => store().agent.ledger.journal.waiting === 0)
  return {
    device,
    release: (receipt, fields = {}) =>
      store().authorize({ deviceId: device('station'), protectionAction: 'deactivate_label', receipt, ...fields }),
    leave: (fields) => store().authorize({ deviceId: device('gate'), protectionAction: 'authorize_exit', ...fields }),
    detach: (fields) =>
      store().authorize({ deviceId: device('detacher'), protectionAction: 'detach_hard_tag', ...fields }),
    synced,
    async offline() {
      store().network(false)
      await store().until('offline', () => !store().agent.link.isOnline)
    },
    async events(filter = {}) {
      await synced()
      const { shop, drive } = store()
      return (await drive(shop.ok('fetchProtectionEvents', { storeId: shop.storeId, limit: 500, ...filter }))).events
    },
    product: () => store().shop.products.toSorted((a, b) => a.price - b.price)[0],
  }
}
