import { driverOf, type DeviceEntry } from '../../device-drivers/drivers/registry.ts'
import type { Antennas } from './gate/gates.ts'
import { SIREN_SECONDS } from './gate-signals.ts'

/** Which piece of hardware serves which lane, as the configuration says. */
export interface Wiring {
  /** The device at which something that this one has seen or heard counts: itself, or the one that it feeds. */
  laneOf(sourceId: string): string
  /** Whether something tells when somebody goes through here: a sensor, or the beams of a people counter. */
  hasPassageSensor(deviceId: string): boolean
  /** Whether a device is built as a gate is, for when no policy says what it is: its readers look both ways, or it has a siren. */
  looksLikeGate(deviceId: string): boolean
  /** Undefined: the reader cannot tell where a tag is. */
  antennasOf(sourceId: string): Antennas | undefined
  /** Whether the cards that are held before this reader are those of staff. */
  readsStaffCards(sourceId: string): boolean
  /** Tags that this reader hears more weakly are not meant, dBm; undefined: all are. */
  nearDbmOf(sourceId: string): number | undefined
  /** A tag that this reader has not told of for so long was taken away, ms; null: it says so itself. */
  awayMsOf(sourceId: string): number | null
  /**
   * Whether a release does anything at a device, by an output or to the tag that it names. A device that is not configured
   * here is taken for one with an output, for its entry is missing.
   */
  canRelease(deviceId: string, isTagNamed: boolean): boolean
  /** How long an alarm sounds at a device, s. */
  sirenSecondsOf(deviceId: string): number
  /** The input that shows a release of the device; undefined: none does. */
  confirmInputOf(deviceId: string): number | undefined
}

/** Drivers that keep watch over tags until they are gone. */
const TELL_GONE: ReadonlySet<string> = new Set(['pcsc', 'uhf-m100', 'thingmagic'])
const AWAY_MS = 2_000
/** How long a tag that lies there keeps silent in the Gen2 sessions 0 to 3, and some more. */
const AWAY_IN_SESSION_MS = [2_000, 6_000, 60_000, 60_000]

/** Reads the entries once. */
export function wiringOf(devices: readonly DeviceEntry[]): Wiring {
  const byId = new Map(devices.map((device) => [device.deviceId, device]))
  const feedsOf = (device: DeviceEntry | undefined) => (device && 'feeds' in device ? device.feeds : undefined)
  const laneOf = (sourceId: string) => feedsOf(byId.get(sourceId)) ?? sourceId
  const seesPassages = (device: DeviceEntry) =>
    ('passageInput' in device && device.passageInput !== undefined) || ('beams' in device && device.beams !== undefined)
  const releases = devices.map((device) => ({
    laneId: laneOf(device.deviceId),
    deviceId: device.deviceId,
    does: driverOf(device).releases(device),
  }))
  const withSensor = new Set(devices.filter(seesPassages).map(({ deviceId }) => laneOf(deviceId)))

  function antennasOf(sourceId: string): Antennas | undefined {
    const { antennas } = (byId.get(sourceId) ?? {}) as { antennas?: Antennas | readonly number[] }
    // A plain list of antennas says which are used, not where they look.
    return antennas && 'inside' in antennas ? antennas : undefined
  }

  return {
    laneOf,
    hasPassageSensor: (deviceId) => withSensor.has(deviceId),
    looksLikeGate: (deviceId) =>
      devices.some(
        (device) =>
          laneOf(device.deviceId) === deviceId &&
          (antennasOf(device.deviceId) !== undefined || ('siren' in device && device.siren !== undefined)),
      ),
    antennasOf,
    readsStaffCards(sourceId) {
      const device = byId.get(sourceId)
      return device !== undefined && 'staffCards' in device && device.staffCards
    },
    nearDbmOf(sourceId) {
      const device = byId.get(sourceId)
      return device && 'nearDbm' in device ? device.nearDbm : undefined
    },
    awayMsOf(sourceId) {
      const device = byId.get(sourceId)
      if (device && TELL_GONE.has(device.driver)) return null
      return (device?.driver === 'llrp' ? AWAY_IN_SESSION_MS[device.session] : undefined) ?? AWAY_MS
    },
    canRelease(deviceId, isTagNamed) {
      if (!byId.has(deviceId)) return true
      const serving = releases.filter(({ laneId }) => laneId === deviceId)
      return serving.some(
        ({ does, ...by }) => does === 'output' || (does === 'tag' && isTagNamed && by.deviceId === deviceId),
      )
    },
    sirenSecondsOf(deviceId) {
      const { siren } = (byId.get(deviceId) ?? {}) as { siren?: { readonly seconds?: number } }
      return siren?.seconds ?? SIREN_SECONDS
    },
    confirmInputOf(deviceId) {
      const device = byId.get(deviceId)
      return device && 'confirmInput' in device ? device.confirmInput : undefined
    },
  }
}
