import { objectOf } from '../../kit/protocol/tag-sighting.ts'

/**
 * Requests of the Impinj IoT device interface. Source: the reader's OpenAPI document 1.7.0. That document lacks the
 * inputs (GPI), which are taken from Impinj's published programs for the R700.
 */

/** Base path. */
export const IMPINJ_API = '/api/v1'

/** Login of a reader in factory state. */
export const IMPINJ_FACTORY_LOGIN = { user: 'root', password: 'impinj' }

export const IMPINJ_PATHS = {
  system: `${IMPINJ_API}/system`,
  image: `${IMPINJ_API}/system/image`,
  status: `${IMPINJ_API}/status`,
  gpos: `${IMPINJ_API}/device/gpos`,
  gpis: `${IMPINJ_API}/device/gpis`,
  streamSettings: `${IMPINJ_API}/http-stream`,
  stop: `${IMPINJ_API}/profiles/stop`,
  start: `${IMPINJ_API}/profiles/inventory/start`,
  stream: `${IMPINJ_API}/data/stream`,
} as const

/** The path that reads a named preset of the reader. */
export function presetSettingsPath(preset: string): string {
  return `${IMPINJ_API}/profiles/inventory/presets/${encodeURIComponent(preset)}`
}

/** The path that starts a named preset of the reader. */
export function presetPath(preset: string): string {
  return `${presetSettingsPath(preset)}/start`
}

export interface InventorySettings {
  readonly antennas: readonly number[]
  readonly transmitPowerDbm: number
  readonly rfMode: number
  readonly session: number
  readonly searchMode: string
  readonly tagPopulation: number
  /** The reader reads only while this input is high. */
  readonly readWhile?: number | undefined
}

/** Names of the two changes of an input. */
export const TRANSITIONS = { rise: 'low-to-high', fall: 'high-to-low' } as const

/** The body of `start`. The reader then reports every read at once, with the fields that a gate needs. */
export function inventoryRequest(settings: InventorySettings): object {
  const antennaConfigs = settings.antennas.map((antennaPort) => ({
    antennaPort,
    transmitPowerCdbm: Math.round(settings.transmitPowerDbm * 100),
    rfMode: settings.rfMode,
    inventorySession: settings.session,
    inventorySearchMode: settings.searchMode,
    estimatedTagPopulation: settings.tagPopulation,
  }))
  const reported = { epcHex: 'enabled', antennaPort: 'enabled', peakRssiCdbm: 'enabled', lastSeenTime: 'enabled' }
  const omitted = { epc: 'disabled', tid: 'disabled', frequency: 'disabled', transmitPowerCdbm: 'disabled' }
  const on = (transition: string) => [{ gpiTransitionEvent: { gpi: settings.readWhile, transition } }]
  const triggers =
    settings.readWhile === undefined ? {} : { startTriggers: on(TRANSITIONS.rise), stopTriggers: on(TRANSITIONS.fall) }
  return {
    eventConfig: { common: { hostname: 'disabled' }, tagInventory: { ...reported, ...omitted } },
    antennaConfigs,
    ...triggers,
  }
}

/** The body of `gpos`. */
export function gpoRequest(outputs: Iterable<readonly [number, boolean]>): object {
  return { gpoConfigurations: [...outputs].map(([gpo, on]) => ({ gpo, state: on ? 'high' : 'low' })) }
}

/**
 * The body of `gpis` that enables events of these inputs. `now` is the present configuration. If the reader lacks an
 * input, that input is returned as `missing`.
 */
export function gpiRequest(
  now: Record<string, unknown>,
  inputs: readonly number[],
): { readonly body: object } | { readonly missing: number } {
  const known = Array.isArray(now['gpiConfigurations'])
    ? now['gpiConfigurations'].map((each) => objectOf(each) ?? {})
    : []
  const missing = inputs.find((gpi) => !known.some((each) => each['gpi'] === gpi))
  if (missing !== undefined) return { missing }
  const gpiConfigurations = known.map((each) =>
    inputs.includes(each['gpi'] as number) ? { ...each, enabled: true } : each,
  )
  return { body: { ...now, gpiConfigurations, gpiTransitionEvents: 'enabled' } }
}

/** The level of one input in the answer of `gpis`; null if the answer lacks the level. */
export function levelOf(now: Record<string, unknown>, gpi: number): boolean | null {
  const known = Array.isArray(now['gpiConfigurations']) ? now['gpiConfigurations'].map((each) => objectOf(each)) : []
  const state = known.find((each) => each?.['gpi'] === gpi)?.['state']
  return state === 'high' ? true : state === 'low' ? false : null
}
