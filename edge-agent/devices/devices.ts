import { result, type DeviceCommand, type DeviceEvent } from '../../device-drivers/kit/device.ts'
import { capabilitiesOf, type DeviceEntry } from '../../device-drivers/registry.ts'
import { type DeviceStatus, isConnected } from '../../device-drivers/device-connection.ts'
import { supervise, type Supervisor, type SupervisorOptions } from '../../device-drivers/supervisor.ts'
import { rateLimitedLog, type RateLimitedLog } from '../../policy/rate-limited-log.ts'
import type { Platform, Clock } from '../../policy/platform.ts'
import type { DeviceType } from '../../policy/vocabulary.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Log } from '../log.ts'
import { openDeviceJournal, type DeviceJournal } from './device-journal.ts'
import {
  openDoors,
  type DoorAlarm,
  type Doors,
  watchReleases,
  type Execute,
  type ReleaseAnomaly,
  type ReleaseWatch,
} from './release-watch.ts'
import { Emergency } from './emergency.ts'
import { wiringOf, withoutTagReader, type Wiring } from './wiring.ts'
import type { DeviceHealth } from '../../policy/documents/agent-messages.ts'

/** Health of a device, as the agent reports it to the cloud. */
interface KnownHealth {
  readonly deviceId: string
  readonly state: DeviceHealth
  /** Reason for the state, or the description of a device that is ready. */
  readonly detail: string
  /** Of exit gates only: whether a device reads tags there. */
  readonly readsTags?: boolean
  /** Time of the clock (`elapsed`) since which the device is ready or is not, ms. */
  readonly sinceMs: number
}

const SEVERITY: Readonly<Record<DeviceHealth, number>> = { ready: 0, degraded: 1, absent: 2 }
const FIRST_DETAIL = 'the agent has not reached it since its start'

/**
 * Health of the devices for the cloud. A driver that reconnects passes through `opening` and `identifying` again and
 * again. These states say nothing about the device, so its health stays the same until the attempt has ended.
 */
class DevicesHealth {
  readonly #clock: Pick<Clock, 'elapsed'>
  readonly #known = new Map<string, KnownHealth>()

  constructor(clock: Pick<Clock, 'elapsed'>) {
    this.#clock = clock
  }

  /** Health of the devices with these statuses. */
  of(statuses: readonly DeviceStatus[]): KnownHealth[] {
    return statuses.map((status) => this.#known.get(status.deviceId) ?? this.#next(status))
  }

  /** Returns whether this status changes the health of the device. */
  note(status: DeviceStatus): boolean {
    const before = this.#known.get(status.deviceId)
    const after = this.#next(status)
    if (before?.state === after.state && before.detail === after.detail) return false
    this.#known.set(status.deviceId, after)
    return true
  }

  #next(status: DeviceStatus): KnownHealth {
    const { deviceId, state } = status
    const before = this.#known.get(deviceId)
    const nowMs = this.#clock.elapsed()
    if (state !== 'ready' && state !== 'degraded' && state !== 'absent')
      return before ?? { deviceId, state: 'absent', detail: FIRST_DETAIL, sinceMs: nowMs }
    // A lost device is `degraded` until the agent has tried to reconnect it. For a person it is absent at once.
    const health = state === 'degraded' && !isConnected(status) ? 'absent' : state
    const isSame = before !== undefined && (before.state === 'ready') === (health === 'ready')
    return { deviceId, state: health, detail: status.detail, sinceMs: isSame ? before.sinceMs : nowMs }
  }
}

/** An unexpected movement or open door that staff must look at. */
export type DeviceAlarm = Exclude<ReleaseAnomaly, 'release_jammed'> | DoorAlarm

export interface DevicesParts {
  devices: SupervisorOptions['devices']
  /** Opens the link to a device. If absent, the supervisor opens real links. */
  openLink?: SupervisorOptions['openLink']
  /** Makes a device from its configuration entry. If absent, the driver that the entry names makes the device. */
  openDevice?: SupervisorOptions['openDevice']
  platform: Platform
  ledger: Ledger
  storeId: string
  log: Log
  /** Starts the supervisor of the devices. If absent, the imported `supervise` starts the supervisor. */
  supervise?: (options: SupervisorOptions) => Supervisor
  /** Trusted time, ms. */
  nowMs(): number
  isOnline(): boolean
  /** The device's type in the policy; undefined without a policy. */
  deviceTypeOf(deviceId: string): DeviceType | undefined
  /** True if the policy lists the device; also true without a policy. */
  isListed(deviceId: string): boolean
  /** Shows an alarm on the pages. */
  onAlarm(deviceId: string, alarm: DeviceAlarm): void
  onChange(): void
  /** Called when the health of a device changed. */
  onHealth(): void
}

/** The settings of a device that an emergency uses. */
function emergencySettings(entry: DeviceEntry): string {
  const { emergency, opensInEmergency, siren } = capabilitiesOf(entry)
  return JSON.stringify([emergency, opensInEmergency, siren !== undefined])
}

/** Sends a command to a device and returns at once. */
export type SendSignal = (deviceId: string, command: DeviceCommand) => void

const SIGNAL_TIMEOUT_MS = 2_000
/** Result of a release at a device that an emergency already holds open. */
const HELD_OPEN = result('confirmed', false, 'already_open', 'an emergency holds it open')
const STARTING = result('failed', false, 'not_ready', 'the agent is starting')

/**
 *   command ─▶ release-watch.ts ─▶ supervisor ─▶ driver ─▶ relay
 *   driver ─▶ event ─┬─ level of an emergency input ─▶ emergency.ts
 *                    └─ any other event ─▶ onEvent
 *
 * The devices that are configured at this agent. While an emergency holds a device open, the agent sends that device no
 * release.
 */
export class Devices {
  readonly wiring: Wiring
  readonly journal: DeviceJournal
  readonly emergency: Emergency
  readonly doors: Doors
  readonly #parts: DevicesParts
  readonly #releases: ReleaseWatch
  readonly #health: DevicesHealth
  // The rate of these logs is limited, because a loose plug or a wrong baud rate can cause an event every second.
  readonly #stateLog: RateLimitedLog
  readonly #faultLog: RateLimitedLog
  #entries: readonly DeviceEntry[]
  #reported = ''
  #version = 0
  #supervisor: Supervisor | undefined

  constructor(parts: DevicesParts) {
    const { platform, log, isOnline, onAlarm, onChange, deviceTypeOf, isListed } = parts
    this.#parts = parts
    this.#entries = parts.devices
    this.#health = new DevicesHealth(platform.clock)
    this.wiring = wiringOf(parts.devices)
    this.journal = openDeviceJournal({ ...parts, isEmergency: () => this.emergency.state !== null })
    this.#releases = watchReleases({
      platform,
      execute: async (deviceId, command, signal) =>
        this.#supervisor ? this.#supervisor.execute(deviceId, command, signal) : STARTING,
      confirmInputOf: this.wiring.confirmInputOf,
      onAnomaly: (deviceId, reason, detail) => this.#onAnomaly(deviceId, reason, detail),
    })
    this.emergency = new Emergency({
      platform,
      wiring: this.wiring,
      deviceTypeOf,
      // A device that serves a lane has no registration of its own.
      isListed: (deviceId) => isListed(this.wiring.laneOf(deviceId)),
      command: (deviceId, command) => void this.#supervisor?.execute(deviceId, command, new AbortController().signal),
      record: this.journal.add,
      isOnline,
      onChange(state) {
        log.warn({ emergency: state }, state ? 'an emergency input is active' : 'the emergency is over')
        onChange()
      },
    })
    this.doors = openDoors({ record: this.journal.add, isOnline, onAlarm, onChange })
    this.#stateLog = rateLimitedLog((fields, message) => log.info(fields, message), platform)
    this.#faultLog = rateLimitedLog((fields, message) => log.warn(fields, message), platform)
  }

  /** Configuration of the present devices. */
  get entries(): readonly DeviceEntry[] {
    return this.#entries
  }

  get statuses(): readonly DeviceStatus[] {
    return this.#supervisor?.statuses ?? []
  }

  /** Health of the devices for the cloud. `version` rises with each change. */
  get health(): { readonly version: number; readonly devices: readonly KnownHealth[] } {
    const devices = this.#lanesOf(this.#health.of(this.statuses))
    // A new policy or a new reader changes what a gate sees, and no state of a device.
    const text = JSON.stringify(devices)
    if (text !== this.#reported) this.#version++
    this.#reported = text
    return { version: this.#version, devices }
  }

  /** Health of the lanes: a lane is as healthy as its worst device, because a gate without its reader sees nothing. */
  #lanesOf(devices: readonly KnownHealth[]): KnownHealth[] {
    const lanes = new Map<string, KnownHealth>()
    for (const device of devices) {
      const laneId = this.wiring.laneOf(device.deviceId)
      const worst = lanes.get(laneId)
      const detail = laneId === device.deviceId ? device.detail : `${device.deviceId}: ${device.detail}`
      if (!worst || SEVERITY[device.state] > SEVERITY[worst.state])
        lanes.set(laneId, { ...device, deviceId: laneId, detail })
    }
    return [...lanes.values()].map((lane) => {
      const type = this.#parts.deviceTypeOf(lane.deviceId)
      if (type !== 'exit_gate') return lane
      return { ...lane, readsTags: withoutTagReader(this.wiring, lane.deviceId, type) === undefined }
    })
  }

  /** Undefined before `start`. */
  get supervisor(): Supervisor | undefined {
    return this.#supervisor
  }

  /** Sends a command to a device; never throws. */
  readonly execute: Execute = async (deviceId, command, signal) =>
    command.kind === 'release' && this.emergency.holdsOpen(deviceId)
      ? HELD_OPEN
      : this.#releases.execute(deviceId, command, signal)

  /** Sends a command to a device and returns at once. Aborts the command after 2 s. */
  readonly signal: SendSignal = (deviceId, command) => {
    const within = new AbortController()
    const cancel = this.#parts.platform.timers.after(SIGNAL_TIMEOUT_MS, () => within.abort())
    void this.execute(deviceId, command, within.signal).finally(cancel)
  }

  /** Connects the devices. `onEvent` receives all events except levels of emergency inputs. */
  start(onEvent: (deviceId: string, event: DeviceEvent) => void): void {
    const { platform, openLink, openDevice, log } = this.#parts
    this.#supervisor = (this.#parts.supervise ?? supervise)({
      devices: this.#entries,
      platform,
      ...(openLink && { openLink }),
      ...(openDevice && { openDevice }),
      onState: (status) => this.#onState(status),
      onEvent: (deviceId, event) => {
        if (this.#handle(deviceId, event)) onEvent(deviceId, event)
      },
      onListenerError: (error) => log.error({ err: error }, 'a listener failed'),
    })
    this.emergency.start()
  }

  /**
   * Starts the devices that a new configuration appends; the present devices stay connected. Returns false, and changes
   * nothing, if the new configuration differs in a present device.
   */
  extend(entries: readonly DeviceEntry[]): boolean {
    const count = this.#entries.length
    if (JSON.stringify(entries.slice(0, count)) !== JSON.stringify(this.#entries)) return false
    this.#entries = entries
    for (const entry of entries.slice(count)) {
      this.wiring.add(entry)
      this.#supervisor?.add(entry)
      this.emergency.add(entry.deviceId)
    }
    return true
  }

  /**
   * Applies a new configuration that differs in the settings of one device: connects it again with them; the other
   * devices stay connected. Returns false, and changes nothing, if more differs, or if the change concerns emergencies:
   * those wait for a restart, at which the agent reads each input anew.
   */
  async change(entries: readonly DeviceEntry[]): Promise<boolean> {
    const changed = entries.filter((entry, i) => JSON.stringify(entry) !== JSON.stringify(this.#entries[i]))
    const [entry] = changed
    const before = entry && this.#entries.find(({ deviceId }) => deviceId === entry.deviceId)
    if (entries.length !== this.#entries.length || changed.length > 1) return false
    if (!entry) return true
    if (!before || emergencySettings(entry) !== emergencySettings(before) || this.emergency.state !== null) return false
    this.#entries = entries
    this.wiring.add(entry)
    await this.#supervisor?.replace(entry)
    this.emergency.repeat(entry.deviceId)
    return true
  }

  /** Switches outputs off and disconnects the devices. */
  async stop(): Promise<void> {
    await this.#supervisor?.stop()
    this.#stateLog.stop()
    this.#faultLog.stop()
  }

  #onState(status: DeviceStatus): void {
    const { deviceId, state, detail } = status
    this.emergency.onState(status)
    this.#stateLog.write({ deviceId, state, detail }, 'a device changed its state', deviceId)
    this.#parts.onChange()
    if (this.#health.note(status)) this.#parts.onHealth()
  }

  /** Returns false for an event of an emergency input: `onEvent` does not receive such events. */
  #handle(deviceId: string, event: DeviceEvent): boolean {
    if (event.type === 'emergency') {
      this.emergency.onLevel(deviceId, event.on)
      return false
    }
    if (event.type === 'fault' || event.type === 'noise' || event.type === 'finding')
      this.#faultLog.write({ deviceId, ...event }, 'a device reported', deviceId)
    if (event.type === 'input' && !this.emergency.holdsOpen(deviceId))
      this.#releases.onInput(deviceId, event.input, event.on)
    if (event.type === 'door') this.doors.onDoor(this.wiring.laneOf(deviceId), event.state)
    return true
  }

  #onAnomaly(deviceId: string, reason: ReleaseAnomaly, detail: string): void {
    const { log, isOnline, onAlarm } = this.#parts
    log.warn({ deviceId, reason, detail }, 'a device did not move as commanded')
    this.journal.add({
      type: 'protection.exception.raised',
      deviceId,
      reason,
      detail: detail.slice(0, 300),
      offline: !isOnline(),
    })
    if (reason === 'unexpected_release') onAlarm(deviceId, reason)
  }
}
