/** Requests of the Impinj IoT device interface (the reader's OpenAPI document 1.7.0), by what they are for. */

/** Where all of it stands. */
export const IMPINJ_API = '/api/v1'

/** What every reader has when it leaves the factory. */
export const IMPINJ_FACTORY_LOGIN = { user: 'root', password: 'impinj' }

export const IMPINJ_PATHS = {
  system: `${IMPINJ_API}/system`,
  image: `${IMPINJ_API}/system/image`,
  status: `${IMPINJ_API}/status`,
  gpos: `${IMPINJ_API}/device/gpos`,
  streamSettings: `${IMPINJ_API}/http-stream`,
  stop: `${IMPINJ_API}/profiles/stop`,
  start: `${IMPINJ_API}/profiles/inventory/start`,
  stream: `${IMPINJ_API}/data/stream`,
} as const

/** The path that starts an inventory that is kept on the reader under a name. */
export function presetPath(preset: string): string {
  return `${IMPINJ_API}/profiles/inventory/presets/${encodeURIComponent(preset)}/start`
}

export interface InventorySettings {
  readonly antennas: readonly number[]
  readonly transmitPowerDbm: number
  readonly rfMode: number
  readonly session: number
  readonly searchMode: string
  readonly tagPopulation: number
}

/** The body of `start`: every sighting at once, with what a gate needs to know of it. */
export function inventoryRequest(settings: InventorySettings): object {
  const antennaConfigs = settings.antennas.map((antennaPort) => ({
    antennaPort,
    transmitPowerCdbm: Math.round(settings.transmitPowerDbm * 100),
    rfMode: settings.rfMode,
    inventorySession: settings.session,
    inventorySearchMode: settings.searchMode,
    estimatedTagPopulation: settings.tagPopulation,
  }))
  const told = { epcHex: 'enabled', antennaPort: 'enabled', peakRssiCdbm: 'enabled', lastSeenTime: 'enabled' }
  const untold = { epc: 'disabled', tid: 'disabled', frequency: 'disabled', transmitPowerCdbm: 'disabled' }
  return { eventConfig: { common: { hostname: 'disabled' }, tagInventory: { ...told, ...untold } }, antennaConfigs }
}

/** The body of `gpos`. */
export function gpoRequest(outputs: Iterable<readonly [number, boolean]>): object {
  return { gpoConfigurations: [...outputs].map(([gpo, on]) => ({ gpo, state: on ? 'high' : 'low' })) }
}
