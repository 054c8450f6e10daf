import { TAG_ABSENT_MS, type AntennaSides, type Capabilities } from '../../device-drivers/kit/driver.ts'
import { capabilitiesOf, type DeviceEntry } from '../../device-drivers/registry.ts'
import type { Finding } from '../../device-drivers/kit/device.ts'
import type { DeviceType } from '../../policy/vocabulary.ts'

/** Assignment of hardware to lanes, from the configuration. */
export interface Wiring {
  /** Adds a device. The functions and lists of this wiring then include it. */
  add(device: DeviceEntry): void
  /** `deviceId` of the lane that a device serves: the `feeds` of its configuration, or else the device itself. */
  laneOf(sourceId: string): string
  /** True if the lane has a passage sensor or a people counter. */
  hasPassageSensor(deviceId: string): boolean
  /** True if the lane has a siren or a reader that locates tags. Used while no policy names the device's type. */
  looksLikeGate(deviceId: string): boolean
  /**
   * Undefined if the reader cannot locate tags. Antennas on both sides of a gate show a direction, also those of two
   * readers that feed one gate.
   */
  antennasOf(sourceId: string): AntennaSides | undefined
  /** True if a device that serves the lane reads tags. */
  readsTags(deviceId: string): boolean
  /** True if only staff present cards at this reader. */
  readsStaffCards(sourceId: string): boolean
  /** Minimum signal strength at which a tag counts as presented, dBm. Undefined: all tags count. */
  minimumRssiOf(sourceId: string): number | undefined
  /** Time without a read after which a tag counts as removed, ms. Null if the reader reports removals. */
  absentMsOf(sourceId: string): number | null
  /**
   * True if a release switches an output of the device or writes to the named tag. Also true for a device without
   * configuration.
   */
  canRelease(deviceId: string, isTagNamed: boolean): boolean
  /** How long an alarm sounds at a device, s. */
  sirenSecondsOf(deviceId: string): number
  /** Number of the device's confirm input. Undefined if it has none. */
  confirmInputOf(deviceId: string): number | undefined
  /** The devices with an emergency input. */
  readonly emergencyInputs: ReadonlyMap<string, EmergencyInput>
  /** The devices that an emergency opens. */
  readonly openInEmergency: readonly string[]
  /** The devices with a siren. */
  readonly sirens: readonly string[]
}

/** Default duration of an alarm, s. */
export const SIREN_SECONDS = 5

export type EmergencyInput = NonNullable<Capabilities['emergency']>

/**
 * Finding of an exit gate for which no device reads tags. Only a warning: a barrier without a reader is a usual gate of
 * stores whose goods have no tags.
 */
export function withoutTagReader(
  { readsTags }: Pick<Wiring, 'readsTags'>,
  deviceId: string,
  deviceType: DeviceType | undefined,
): Finding | undefined {
  if (deviceType !== 'exit_gate' || readsTags(deviceId)) return undefined
  const detail = `no device reads tags at this gate, so it sees no goods: add a reader with feeds ${deviceId}, unless it is only a barrier`
  return { code: 'no_tag_reader', detail, isWarning: true }
}

/** Assigns the configured devices to lanes, by the capabilities that their drivers declare. */
export function wiringOf(devices: readonly DeviceEntry[]): Wiring {
  const byId = new Map(devices.map((device) => [device.deviceId, capabilitiesOf(device)]))
  const laneOf = (sourceId: string) => byId.get(sourceId)?.feeds ?? sourceId
  /**
   * The devices that serve a lane: the lane's own device, if it is configured, and all devices that name the lane in
   * `feeds`.
   */
  const serving = (laneId: string) =>
    [...byId].flatMap(([sourceId, can]) => (laneOf(sourceId) === laneId ? [{ sourceId, ...can }] : []))

  return {
    add: (device) => void byId.set(device.deviceId, capabilitiesOf(device)),
    laneOf,
    hasPassageSensor: (deviceId) => serving(deviceId).some(({ passage }) => passage),
    looksLikeGate: (deviceId) =>
      serving(deviceId).some(({ antennas, siren }) => antennas !== undefined || siren !== undefined),
    antennasOf(sourceId) {
      const sides = serving(laneOf(sourceId)).map(({ antennas }) => antennas)
      const isBoth =
        sides.some((each) => each && each.inside.length > 0) && sides.some((each) => each && each.outside.length > 0)
      return isBoth ? byId.get(sourceId)?.antennas : undefined
    },
    readsTags: (deviceId) => serving(deviceId).some(({ departures }) => departures !== undefined),
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
    get emergencyInputs() {
      return new Map([...byId].flatMap(([id, { emergency }]) => (emergency ? [[id, emergency] as const] : [])))
    },
    get openInEmergency() {
      return [...byId].flatMap(([id, can]) => (can.opensInEmergency === true ? [id] : []))
    },
    get sirens() {
      return [...byId].flatMap(([id, { siren }]) => (siren ? [id] : []))
    },
  }
}
