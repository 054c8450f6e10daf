import type { Shopper } from '../../simulators/services/shopper.ts'

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
