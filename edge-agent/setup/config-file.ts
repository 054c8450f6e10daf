import { capabilitiesOf, type DeviceEntry } from '../../device-drivers/registry.ts'
import { readConfig, WAY_OUT_NEEDED } from '../config.ts'

/** The agent's configuration file. The agent writes to it only on request. */
export interface ConfigFile {
  /** Name of the file, shown to users. */
  readonly name: string
  /** Returns what `add` would return, and changes nothing. */
  check(entry: Readonly<Record<string, unknown>>): AddResult
  /** Adds a device to the file. If the result would be invalid, changes nothing. Throws if the file cannot be written. */
  add(entry: Readonly<Record<string, unknown>>): AddResult
  /** The entry of a device, as the file has it. */
  entry(deviceId: string): Readonly<Record<string, unknown>> | undefined
  /** Replaces the entry of a device, or removes it. Changes nothing and throws in the same cases as `add`. */
  replace(deviceId: string, entry: Readonly<Record<string, unknown>> | undefined): AddResult
}

/** A fault of the added entry. `path`: the setting, such as `siren.output`. */
export interface EntryFault {
  path: string
  message: string
}

/**
 * `devices`: the devices of the new configuration. `faults`: all faults, also those of other devices. `ofEntry`: those of
 * the added entry.
 */
export type AddResult =
  | { ok: true; devices: readonly DeviceEntry[] }
  | { ok: false; faults: string[]; ofEntry: EntryFault[] }

/** Text of a file after a change. */
type EditedText = { ok: true; text: string; devices: readonly DeviceEntry[] } | Extract<AddResult, { ok: false }>

/** Placeholder for the id in a suggested entry. */
export const UNNAMED_DEVICE = 'dev_…'

/** Adds a device to the text of a configuration file ('' for a new file). Returns all faults of an invalid result. */
export function withDevice(text: string, entry: Readonly<Record<string, unknown>>): EditedText {
  const before = text.trim() === '' ? '{ "devices": [] }' : text
  const checked = readConfig(before)
  if (!checked.ok) return { ...checked, ofEntry: [] }
  if (entry['deviceId'] === UNNAMED_DEVICE) return invalidEntry(['deviceId: enter a set-up code, or fill in an id'], '')
  const { devices: present } = checked.config
  const result = edited(before, (devices) => [...devices, entry], present.length)
  return result.ok ? result : withMissingWayOut(result, present, entry)
}

/**
 * Adds the fault of a missing `opensInEmergency`. The configuration is checked for it only if it has no other fault, but
 * a person corrects all at once.
 */
function withMissingWayOut(
  { faults, ofEntry }: Extract<AddResult, { ok: false }>,
  present: readonly DeviceEntry[],
  entry: Readonly<Record<string, unknown>>,
): Extract<AddResult, { ok: false }> {
  const path = 'opensInEmergency'
  const hasInput =
    entry['emergency'] !== undefined || present.some((device) => capabilitiesOf(device).emergency !== undefined)
  const releases = entry['output'] !== undefined || entry['release'] !== undefined
  const isKnown = ofEntry.some((each) => each.path === path)
  if (!hasInput || !releases || entry[path] !== undefined || isKnown) return { ok: false, faults, ofEntry }
  const message = WAY_OUT_NEEDED
  return { ok: false, faults: [...faults, `${path}: ${message}`], ofEntry: [...ofEntry, { path, message }] }
}

/** Replaces the entry of a device in the text of a configuration file, or removes it. */
export function withChangedDevice(
  text: string,
  deviceId: string,
  entry: Readonly<Record<string, unknown>> | undefined,
): EditedText {
  const checked = readConfig(text)
  if (!checked.ok) return { ...checked, ofEntry: [] }
  const index = checked.config.devices.findIndex((device) => device.deviceId === deviceId)
  if (index < 0) return invalidEntry(['deviceId: the configuration file has no such device'], '')
  return edited(text, (devices) => devices.toSpliced(index, 1, ...(entry ? [entry] : [])), index)
}

/** The entry of a device in the text of a valid configuration file, as it is written there. */
export function entryIn(text: string, deviceId: string): Readonly<Record<string, unknown>> | undefined {
  if (!readConfig(text).ok) return undefined
  const { devices = [] } = JSON.parse(text) as { devices?: Record<string, unknown>[] }
  return devices.find((device) => device['deviceId'] === deviceId)
}

/** `index`: place of the changed entry. */
function edited(text: string, change: (devices: unknown[]) => unknown[], index: number): EditedText {
  const whole = JSON.parse(text) as Record<string, unknown>
  const devices = change((whole['devices'] as unknown[] | undefined) ?? [])
  const after = `${JSON.stringify({ ...whole, devices }, null, 2)}\n`
  const again = readConfig(after)
  return again.ok
    ? { ok: true, text: after, devices: again.config.devices }
    : invalidEntry(again.faults, `devices[${index}].`)
}

/** `before`: what precedes the setting in the faults of the added entry. */
function invalidEntry(faults: string[], before: string): Extract<AddResult, { ok: false }> {
  const ofEntry = faults.flatMap((fault) => {
    const end = fault.indexOf(': ')
    if (!fault.startsWith(before) || end < 0) return []
    return [{ path: fault.slice(before.length, end).replaceAll(/\[(\d+)\]/g, '.$1'), message: fault.slice(end + 2) }]
  })
  return { ok: false, faults, ofEntry }
}
