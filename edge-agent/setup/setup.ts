import { result, type CommandResult, type DeviceCommand } from '../../device-drivers/kit/device.ts'
import { capabilitiesOf, type DeviceEntry } from '../../device-drivers/registry.ts'
import type { DeviceStatus } from '../../device-drivers/device-connection.ts'
import { newId } from '../../policy/ids.ts'
import { deadline, type Platform, pause } from '../../policy/platform.ts'
import type { DeviceType, ExceptionKind } from '../../policy/vocabulary.ts'
import type { Devices } from '../devices/devices.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CloudConnection } from '../link/cloud-connection.ts'
import type { CloudAnswer } from '../link/wire/http-client.ts'
import type { Log } from '../log.ts'
import { UNNAMED_DEVICE, type AddResult, type ConfigFile, type EntryFault } from './config-file.ts'
import type { Supervisor } from '../../device-drivers/supervisor.ts'

/** Settings with an effect on all devices of the agent. */
const EMERGENCY_SETTINGS = ['emergency', 'opensInEmergency'] as const
/** Settings by which a device acts, or serves a device that a manager registered. */
const LANE_SETTINGS = [
  'feeds',
  'staffCards',
  'output',
  'release',
  'siren',
  'amber',
  'green',
  'kill',
  'eas',
  'deactivate',
] as const

/** Every setting that only a manager's set-up code, or the editor of the configuration file, may give a device. */
export const MANAGER_SETTINGS: readonly string[] = [...EMERGENCY_SETTINGS, ...LANE_SETTINGS]

const BY_FILE = 'let an administrator write the entry into the configuration file, and restart the agent'
const FIX = `needs a manager’s set-up code; or ${BY_FILE}`
const FEEDS_FIX = `without a code, name a device that a code registered in the last 15 minutes; or ${BY_FILE}`

/**
 * Faults of an entry that came without a set-up code. A browser or program without a manager may only add devices that
 * report their own reads. `isNew`: true for a device that a code has just registered; a scanner or reader may serve it.
 */
function managerFaults(entry: Readonly<Record<string, unknown>>, isNew: (deviceId: string) => boolean): EntryFault[] {
  const servesNew = typeof entry['feeds'] === 'string' && isNew(entry['feeds'])
  const refused = servesNew ? EMERGENCY_SETTINGS : MANAGER_SETTINGS
  return refused
    .filter((setting) => entry[setting] !== undefined && entry[setting] !== false)
    .map((path) => ({ path, message: path === 'feeds' ? FEEDS_FIX : FIX }))
}

const POLL_MS = 100
/** Time limit of a check, ms. To connect and identify a reader takes a few seconds. */
const TIMEOUT_MS = 10_000
const DONE: ReadonlySet<string> = new Set(['ready', 'absent', 'degraded'])

/** Reconnects a device and returns its status. Undefined if the device is not configured at this agent. */
async function checkDevice(
  supervisor: Supervisor,
  platform: Platform,
  deviceId: string,
): Promise<DeviceStatus | undefined> {
  if (!supervisor.restart(deviceId)) return undefined
  const endMs = platform.clock.elapsed() + TIMEOUT_MS
  for (;;) {
    await pause(platform.timers, POLL_MS)
    const status = supervisor.status(deviceId)
    const isDone = status !== null && DONE.has(status.state) && status.detail !== 'restarted by command'
    if (isDone || platform.clock.elapsed() >= endMs) return status ?? undefined
  }
}

/** Outputs that a technician can test. `release`: the lock, detacher or deactivator. */
export const TESTED_OUTPUTS = ['green', 'amber', 'siren', 'release'] as const
type TestedOutput = (typeof TESTED_OUTPUTS)[number]

/** Outputs of this entry that work without a tag. Lamps have a setting of their own in each driver. */
function outputsOf(entry: DeviceEntry): TestedOutput[] {
  const { releases, siren } = capabilitiesOf(entry)
  const settings: Readonly<Record<string, unknown>> = { ...entry }
  const has: Readonly<Record<TestedOutput, boolean>> = {
    green: settings['green'] !== undefined,
    amber: settings['amber'] !== undefined,
    siren: siren !== undefined,
    release: releases === 'output',
  }
  return TESTED_OUTPUTS.filter((output) => has[output])
}

/** Time after the registration of a device in which its outputs can be tested, ms. */
export const TEST_MS = 15 * 60_000
/** How long lamp and siren are on in a test, s. */
const SIGNAL_SECONDS = 2
/** Time limit of one test, ms. */
const TEST_LIMIT_MS = 5_000

export interface SetupParts {
  platform: Platform
  ledger: Pick<Ledger, 'commits' | 'journal'>
  storeId: string
  log: Log
  link: Pick<CloudConnection, 'call' | 'bind' | 'refreshDocuments' | 'isOnline'>
  devices: Pick<Devices, 'supervisor' | 'execute' | 'extend' | 'change' | 'entries'>
  configFile: ConfigFile | undefined
  /** Why the agent must not use a device of this id; undefined if it may, or has no policy yet. */
  refused(deviceId: string): string | undefined
  /** Trusted time, ms. */
  nowMs(): number
}

/** Registers a device in the cloud with the one-time code of a manager. */
interface Registration {
  code: string
  deviceType: DeviceType
  name?: string | undefined
}

/** Name of a device after a change, and its entry. Without `entry`, the device is removed. */
interface DeviceChange {
  entry?: Readonly<Record<string, unknown>> | undefined
  name?: string | undefined
}

interface NewDevice {
  /** Entry of the configuration. */
  entry: Readonly<Record<string, unknown>>
  /** Absent: the entry has the id of a device that is registered already. */
  registration?: Registration | undefined
}

type SetupFaultCode =
  | 'no_config_file'
  | 'invalid-argument'
  | 'setup_code_wrong'
  | 'setup_code_used'
  | 'setup_code_expired'
  | 'setup_code_needed'
  | 'registration_refused'
  | 'cloud_unreachable'
  | 'config_not_written'
  | 'test_not_allowed'
  | 'change_not_allowed'

export interface SetupFault {
  ok: false
  code: SetupFaultCode
  error: string
  /** Faults of single settings. */
  ofEntry?: readonly EntryFault[]
}

interface AddedDevice {
  ok: true
  /** Name of the configuration file. */
  file: string
  deviceId: string
  /** False if the file has other changes too. The agent must be restarted to use the device. */
  isInUse: boolean
}

const fault = (code: SetupFaultCode, error: string): SetupFault => ({ ok: false, code, error })
const invalid = ({ faults, ofEntry }: Extract<AddResult, { ok: false }>): SetupFault => ({
  ...fault('invalid-argument', faults.join('; ')),
  ofEntry,
})

function codeNeeded(ofEntry: readonly EntryFault[]): SetupFault {
  const error = ofEntry.map(({ path, message }) => `${path}: ${message}`).join('; ')
  return { ...fault('setup_code_needed', error), ofEntry }
}

function invalidSetting(path: string, message: string): SetupFault {
  return invalid({ ok: false, faults: [`${path}: ${message}`], ofEntry: [{ path, message }] })
}

/**
 *   entry + code ─▶ check the entry ─▶ register in the cloud ─▶ write the file ─▶ connect the device ─▶ test it
 *
 * The actions of the set-up page. The cloud checks the code, so the agent itself has no right to register devices. If a
 * step fails, the technician repeats all with the same code: the cloud then returns the same device.
 */
export class Setup {
  readonly #parts: SetupParts
  /** Devices that were registered with a code, with the end of their tests on the elapsed clock, ms. */
  readonly #testableUntil = new Map<string, number>()
  /** Registrations of these devices, whose code also renames them. */
  readonly #registrations = new Map<string, Registration>()
  /** Devices that the page added, with the end of their changes on the elapsed clock, ms. */
  readonly #changeableUntil = new Map<string, number>()
  /** Devices that the page took out of the file. The agent uses them until its restart. */
  readonly #removed = new Set<string>()
  #isRestartDue = false

  constructor(parts: SetupParts) {
    this.#parts = parts
  }

  get fileName(): string | undefined {
    return this.#parts.configFile?.name
  }

  /** Reconnects a device and returns its status. Undefined if the device is not configured at this agent. */
  async check(deviceId: string): Promise<DeviceStatus | undefined> {
    const { supervisor } = this.#parts.devices
    return supervisor && checkDevice(supervisor, this.#parts.platform, deviceId)
  }

  /**
   * Adds a device to the configuration file and connects it. The other devices stay connected. Without a code, the
   * entry may contain no setting that acts or serves another device: a restart must not give it such rights either.
   */
  async add({ entry, registration }: NewDevice): Promise<AddedDevice | SetupFault> {
    const { configFile, platform, link, devices } = this.#parts
    if (!configFile)
      return fault('no_config_file', 'this agent was started without a configuration file: start it with --config FILE')
    const isUnnamed = entry['deviceId'] === undefined || entry['deviceId'] === UNNAMED_DEVICE
    if (registration && !isUnnamed)
      return invalidSetting('deviceId', 'leave it empty, because the code registers a new device')
    // Such a device needs no registration, and the code would be lost.
    if (registration && entry['feeds'] !== undefined)
      return invalidSetting(
        'feeds',
        'register the device that it serves with this code first; then add this one with an id of your choice and no code',
      )
    // A faulty entry must not use up the code, so the entry is checked with any id first.
    const checked = configFile.check(registration ? { ...entry, deviceId: newId('dev', platform) } : entry)
    if (!checked.ok) return invalid(checked)
    const unauthorized = registration ? [] : managerFaults(entry, (feeds) => this.isNew(feeds))
    if (unauthorized.length > 0) return codeNeeded(unauthorized)
    // The link of an unknown device could be that of a gate in use, under another name.
    const refused = registration || entry['feeds'] !== undefined ? undefined : this.#refused(entry['deviceId'])
    if (refused !== undefined) return invalidSetting('deviceId', refused)
    const registered = registration ? await this.#register(registration) : undefined
    if (registered && !registered.ok) return registered
    const written = this.#write(configFile, registered ? { ...entry, deviceId: registered.deviceId } : entry)
    if (!written.ok) return written
    const { deviceId } = written
    const untilMs = platform.clock.elapsed() + TEST_MS
    this.#changeableUntil.set(deviceId, untilMs)
    if (registered) this.#testableUntil.set(deviceId, untilMs)
    if (registration) this.#registrations.set(deviceId, registration)
    const isInUse = devices.extend(written.devices)
    if (isInUse) await link.bind([deviceId])
    else this.#isRestartDue = true
    // Without the new policy, the agent would refuse the device until its next poll.
    await link.refreshDocuments()
    return { ok: true, file: configFile.name, deviceId, isInUse }
  }

  #refused(deviceId: unknown): string | undefined {
    return typeof deviceId === 'string' ? this.#parts.refused(deviceId) : undefined
  }

  /** The entry of a device that the page added in the last 15 minutes, and may change. Undefined for other devices. */
  changeable(deviceId: string): Readonly<Record<string, unknown>> | undefined {
    const isOpen = this.#parts.platform.clock.elapsed() < (this.#changeableUntil.get(deviceId) ?? 0)
    return isOpen ? this.#parts.configFile?.entry(deviceId) : undefined
  }

  /** Name that the page gave a device with its code; '' if none. Undefined for devices that it cannot rename. */
  nameOf(deviceId: string): string | undefined {
    const registration = this.#registrations.get(deviceId)
    return registration && this.isNew(deviceId) ? (registration.name ?? '') : undefined
  }

  /**
   * Changes the entry of a device that the page added in the last 15 minutes, and its name, or removes the device. Other
   * devices may be in use, so only an editor of the file may change them. An entry that came without a code gets no
   * setting that needs one. `isInUse`: false if the agent must be restarted.
   */
  async change(
    deviceId: string,
    { entry, name }: DeviceChange,
  ): Promise<{ ok: true; file: string; isInUse: boolean } | SetupFault> {
    const { configFile, log, devices } = this.#parts
    if (!configFile || !this.changeable(deviceId))
      return fault(
        'change_not_allowed',
        'a device can be changed or removed here only in the 15 minutes after it was added here: edit the configuration file, and restart the agent',
      )
    if (entry && entry['deviceId'] !== deviceId)
      return invalidSetting('deviceId', 'cannot be changed: add another device')
    if (entry?.['feeds'] !== undefined && this.isNew(deviceId))
      return invalidSetting('feeds', 'a device with a registration of its own serves no other one')
    const unauthorized = entry && !this.isNew(deviceId) ? managerFaults(entry, (feeds) => this.isNew(feeds)) : []
    if (unauthorized.length > 0) return codeNeeded(unauthorized)
    const renamed = entry && name !== undefined ? await this.#rename(deviceId, name) : undefined
    if (renamed) return renamed
    try {
      const changed = configFile.replace(deviceId, entry)
      if (!changed.ok) return invalid(changed)
      const isInUse = entry !== undefined && (await devices.change(changed.devices))
      this.#isRestartDue ||= !isInUse
      if (entry === undefined) {
        this.#removed.add(deviceId)
        this.#testableUntil.delete(deviceId)
      }
      return { ok: true, file: configFile.name, isInUse }
    } catch (error) {
      log.error({ err: error, file: configFile.name }, 'the configuration file cannot be written')
      return fault('config_not_written', `${configFile.name} cannot be written: ${(error as Error).message}`)
    }
  }

  /** True if the page has changed the file in a way that waits for a restart of the agent. */
  get isRestartDue(): boolean {
    return this.#isRestartDue
  }

  /** True if the page has removed the device, and only the restart of the agent is missing. */
  isRemoved(deviceId: string): boolean {
    return this.#removed.has(deviceId)
  }

  /** The outputs of this device that can be tested now. */
  testable(deviceId: string): TestedOutput[] {
    const entry = this.#parts.devices.entries.find((each) => each.deviceId === deviceId)
    return entry && this.isNew(deviceId) ? outputsOf(entry) : []
  }

  /** True for 15 minutes after a manager's code has registered the device. */
  isNew(deviceId: string): boolean {
    return this.#parts.platform.clock.elapsed() < (this.#testableUntil.get(deviceId) ?? 0)
  }

  /**
   * Switches an output of a device that was registered with a code in the last 15 minutes. The journal has each release
   * before the device moves.
   */
  async test(deviceId: string, output: TestedOutput): Promise<{ ok: true; result: CommandResult } | SetupFault> {
    const { platform, devices } = this.#parts
    if (!this.isNew(deviceId))
      return fault(
        'test_not_allowed',
        'the outputs of a device can be tested only in the 15 minutes after its registration with a set-up code',
      )
    // A test of an output that the device lacks moves nothing, so staff get no exception about it.
    if (!this.testable(deviceId).includes(output))
      return { ok: true, result: result('failed', false, 'not_supported', `this device has no output ${output}`) }
    if (output === 'release')
      await this.record(deviceId, { detail: 'a technician tested the release on the set-up page' })
    const command: DeviceCommand =
      output === 'release' ? { kind: 'release' } : { kind: 'signal', signal: output, seconds: SIGNAL_SECONDS }
    const limit = deadline(platform.timers, TEST_LIMIT_MS)
    return { ok: true, result: await devices.execute(deviceId, command, limit.signal).finally(limit.done) }
  }

  /** Renames a device with the code that registered it. Returns the fault, if any. */
  async #rename(deviceId: string, name: string): Promise<SetupFault | undefined> {
    const registration = this.#registrations.get(deviceId)
    if (!registration || !this.isNew(deviceId))
      return invalidSetting('name', 'only a device that a set-up code registered has a name: change it in the console')
    if (name === (registration.name ?? '')) return undefined
    const { link } = this.#parts
    const answer = await link.call('registerDeviceWithCode', { ...registration, name })
    if (answer.kind !== 'answered') return refusedRegistration(answer)
    this.#registrations.set(deviceId, { ...registration, name })
    await link.refreshDocuments()
    return undefined
  }

  async #register(registration: Registration): Promise<{ ok: true; deviceId: string } | SetupFault> {
    const { link, devices } = this.#parts
    const answer = await link.call('registerDeviceWithCode', registration)
    if (answer.kind === 'answered') {
      const deviceId = String(answer.body['deviceId'])
      // To a repeated call, the cloud answers the device that the code has registered.
      return devices.entries.some((entry) => entry.deviceId === deviceId)
        ? fault('setup_code_used', `this code registered ${deviceId} already: ask a manager for a new code`)
        : { ok: true, deviceId }
    }
    return refusedRegistration(answer)
  }

  #write(
    configFile: ConfigFile,
    entry: Readonly<Record<string, unknown>>,
  ): { ok: true; deviceId: string; devices: Parameters<Devices['extend']>[0] } | SetupFault {
    try {
      const added = configFile.add(entry)
      return added.ok ? { ok: true, deviceId: String(entry['deviceId']), devices: added.devices } : invalid(added)
    } catch (error) {
      this.#parts.log.error({ err: error, file: configFile.name }, 'the configuration file cannot be written')
      return fault('config_not_written', `${configFile.name} cannot be written: ${(error as Error).message}`)
    }
  }

  /** Stores that a person tests a device, before the test begins. */
  async record(deviceId: string, fields: { detail: string; operatorId?: string }): Promise<void> {
    const { platform, ledger, storeId, link, nowMs } = this.#parts
    const atMs = nowMs()
    const event = {
      type: 'protection.exception.raised' as const,
      eventId: newId('evt', platform),
      occurredAt: new Date(atMs).toISOString(),
      storeId,
      deviceId,
      reason: 'device_tested' satisfies ExceptionKind,
      ...fields,
      offline: !link.isOnline,
    }
    await ledger.commits.durably(() => ledger.journal.append({ atMs, event }))
  }
}

function refusedRegistration(answer: Exclude<CloudAnswer, { kind: 'answered' }>): SetupFault {
  if (answer.kind === 'unreachable' || answer.status >= 500 || answer.status === 429 || answer.status === 401)
    return fault('cloud_unreachable', 'the cloud did not answer: the same code works again within its 15 minutes')
  return fault(refusalOf(answer), answer.message)
}

function refusalOf({ status, code }: { status: number; code: string }): SetupFaultCode {
  if (code === 'setup_code_used' || code === 'setup_code_expired') return code
  return status === 404 ? 'setup_code_wrong' : 'registration_refused'
}
