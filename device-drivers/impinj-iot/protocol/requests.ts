import {
  objectOf,
  antennaOf,
  epcOfBase64,
  epcOfHex,
  rssiOf,
  type TagSighting,
  utcUsOf,
} from '../../kit/protocol/tag-sighting.ts'

/**
 * Requests of the Impinj IoT device interface. Source: the reader's OpenAPI document 1.7.0. That document lacks the
 * inputs (GPI), which are taken from Impinj's published programs for the R700.
 */

/** Base path. */
const IMPINJ_API = '/api/v1'

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

interface InventorySettings {
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

/** One event of the reader's stream, webhook or broker (schema `ReaderEvent` of the OpenAPI document 1.7.0). */
export type ImpinjEvent =
  | { readonly kind: 'tag'; readonly sighting: TagSighting }
  /** An input changed at `utcUs` of the reader's clock (schema of firmware 8). */
  | { readonly kind: 'input'; readonly input: number; readonly on: boolean; readonly utcUs: number | undefined }
  /** An antenna lost its connection or has it again. */
  | { readonly kind: 'antenna'; readonly antenna: number; readonly isConnected: boolean }
  /** The inventory runs, or stopped. */
  | { readonly kind: 'reading'; readonly isReading: boolean }
  /** A fault that a person must look at. */
  | { readonly kind: 'fault'; readonly detail: string }
  /** Another event, which the drivers ignore. */
  | { readonly kind: 'other' }

/** Converts an event. Null if `value` is no event, or if a tag has no EPC. */
export function impinjEvent(value: unknown): ImpinjEvent | null {
  const event = objectOf(value)
  if (!event) return null
  const tag = objectOf(event['tagInventoryEvent'])
  if (tag) return tagEvent(event, tag)
  const transition = objectOf(event['gpiTransitionEvent'])
  if (transition) return inputEvent(event, transition)
  const lost = antennaOf(objectOf(event['antennaDisconnectedEvent'])?.['antennaPort']).antenna
  if (lost !== undefined) return { kind: 'antenna', antenna: lost, isConnected: false }
  const found = antennaOf(objectOf(event['antennaConnectedEvent'])?.['antennaPort']).antenna
  if (found !== undefined) return { kind: 'antenna', antenna: found, isConnected: true }
  const inventory = objectOf(event['inventoryStatusEvent'])?.['inventoryStatus']
  if (inventory === 'running' || inventory === 'idle') return { kind: 'reading', isReading: inventory === 'running' }
  const overflow = objectOf(event['overflowEvent'])
  if (overflow)
    return {
      kind: 'fault',
      detail: `the reader has discarded ${String(overflow['eventsPurged'] ?? 'some').slice(0, 12)} events that were not fetched in time`,
    }
  return typeof event['eventType'] === 'string' || typeof event['timestamp'] === 'string' ? { kind: 'other' } : null
}

const LEVELS: Readonly<Record<string, boolean>> = { [TRANSITIONS.rise]: true, [TRANSITIONS.fall]: false }

function inputEvent(event: Record<string, unknown>, { gpi, transition }: Record<string, unknown>): ImpinjEvent | null {
  const on = typeof transition === 'string' && Object.hasOwn(LEVELS, transition) ? LEVELS[transition] : undefined
  if (on === undefined || !Number.isInteger(gpi)) return null
  return { kind: 'input', input: gpi as number, on, utcUs: utcUsOf(event['timestamp']) ?? undefined }
}

/** A text for a person about an antenna. */
export function antennaText({ antenna, isConnected }: { antenna: number; isConnected: boolean }): string {
  return isConnected ? `antenna ${antenna} is connected again` : `antenna ${antenna} is not connected`
}

function tagEvent(event: Record<string, unknown>, tag: Record<string, unknown>): ImpinjEvent | null {
  const epc = epcOfHex(tag['epcHex']) ?? epcOfBase64(tag['epc'])
  if (epc === null) return null
  const utcUs = utcUsOf(tag['lastSeenTime']) ?? utcUsOf(event['timestamp'])
  return {
    kind: 'tag',
    sighting: {
      epc,
      ...antennaOf(tag['antennaPort']),
      ...rssiOf(tag['peakRssiCdbm'], 100),
      ...(utcUs === null ? {} : { utcUs }),
    },
  }
}
