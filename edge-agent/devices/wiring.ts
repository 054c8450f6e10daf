import { TAG_ABSENT_MS, type AntennaSides, type Capabilities } from '../../device-drivers/drivers/capabilities.ts'
import { capabilitiesOf, type DeviceEntry } from '../../device-drivers/drivers/registry.ts'

/** Which piece of hardware serves which lane, as the configuration says. */
export interface Wiring {
  /** The device at which something that this one has seen or heard counts: itself, or the one that it feeds. */
  laneOf(sourceId: string): string
  /** Whether something tells when somebody goes through here: a sensor, or the beams of a people counter. */
  hasPassageSensor(deviceId: string): boolean
  /** Whether a device is built as a gate is, for when no policy says what it is: its readers look both ways, or it has a siren. */
  looksLikeGate(deviceId: string): boolean
  /** Undefined: the reader cannot tell where a tag is. */
  antennasOf(sourceId: string): AntennaSides | undefined
  /** Whether the cards that are held before this reader are those of staff. */
  readsStaffCards(sourceId: string): boolean
  /** Tags that this reader hears more weakly are not meant, dBm; undefined: all are. */
  minimumRssiOf(sourceId: string): number | undefined
  /** A tag that this reader has not told of for so long was taken away, ms; null: it says so itself. */
  absentMsOf(sourceId: string): number | null
  /**
   * Whether a release does anything at a device, by an output or to the tag that it names. A device that is not configured
   * here is taken for one with an output, for its entry is missing.
   */
  canRelease(deviceId: string, isTagNamed: boolean): boolean
  /** How long an alarm sounds at a device, s. */
  sirenSecondsOf(deviceId: string): number
  /** The input that shows a release of the device; undefined: none does. */
  confirmInputOf(deviceId: string): number | undefined
  /** The devices with an emergency input. */
  readonly emergencyInputs: ReadonlyMap<string, EmergencyInput>
  /** The devices that an emergency opens. */
  readonly openInEmergency: readonly string[]
  /** The devices with a siren. */
  readonly sirens: readonly string[]
}

/** How long an alarm sounds where the configuration says nothing of it, s. */
export const SIREN_SECONDS = 5

export type EmergencyInput = NonNullable<Capabilities['emergency']>

/** Wires the configured devices from the capabilities that their drivers declare. */
export function wiringOf(devices: readonly DeviceEntry[]): Wiring {
  const byId = new Map(devices.map((device) => [device.deviceId, capabilitiesOf(device)]))
  const laneOf = (sourceId: string) => byId.get(sourceId)?.feeds ?? sourceId
  /** The devices that serve a lane: itself, if it is configured, and all that feed it. */
  const serving = (laneId: string) =>
    [...byId].flatMap(([sourceId, can]) => (laneOf(sourceId) === laneId ? [{ ...can, sourceId }] : []))

  return {
    laneOf,
    hasPassageSensor: (deviceId) => serving(deviceId).some(({ passage }) => passage),
    looksLikeGate: (deviceId) =>
      serving(deviceId).some(({ antennas, siren }) => antennas !== undefined || siren !== undefined),
    antennasOf: (sourceId) => byId.get(sourceId)?.antennas,
    readsStaffCards: (sourceId) => byId.get(sourceId)?.staffCards ?? false,
    minimumRssiOf: (sourceId) => byId.get(sourceId)?.minimumRssiDbm,
    absentMsOf(sourceId) {
      const departures = byId.get(sourceId)?.departures
      return departures === 'reported' ? null : (departures?.afterMs ?? TAG_ABSENT_MS)
    },
    canRelease(deviceId, isTagNamed) {
      if (!byId.has(deviceId)) return true
      return serving(deviceId).some(
        ({ releases, sourceId }) =>
          releases === 'output' || (releases === 'tag' && isTagNamed && sourceId === deviceId),
      )
    },
    sirenSecondsOf: (deviceId) => byId.get(deviceId)?.siren?.seconds ?? SIREN_SECONDS,
    confirmInputOf: (deviceId) => byId.get(deviceId)?.confirmInput,
    emergencyInputs: new Map([...byId].flatMap(([id, { emergency }]) => (emergency ? [[id, emergency] as const] : []))),
    openInEmergency: [...byId].flatMap(([id, can]) => (can.opensInEmergency === true ? [id] : [])),
    sirens: [...byId].flatMap(([id, { siren }]) => (siren ? [id] : [])),
  }
}
