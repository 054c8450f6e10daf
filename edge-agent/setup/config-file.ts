import type { DeviceEntry } from '../../device-drivers/registry.ts'
import { readConfig } from '../config.ts'

/** The agent's configuration file. The agent writes to it only on request. */
export interface ConfigFile {
  /** Name of the file, shown to users. */
  readonly name: string
  /** Returns what `add` would return, and changes nothing. */
  check(entry: Readonly<Record<string, unknown>>): AddResult
  /** Adds a device to the file. If the result would be invalid, changes nothing. Throws if the file cannot be written. */
  add(entry: Readonly<Record<string, unknown>>): AddResult
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

/** Placeholder for the id in a suggested entry. */
export const UNNAMED_DEVICE = 'dev_…'

/** Adds a device to the text of a configuration file ('' for a new file). Returns all faults of an invalid result. */
export function withDevice(
  text: string,
  entry: Readonly<Record<string, unknown>>,
): { ok: true; text: string; devices: readonly DeviceEntry[] } | Extract<AddResult, { ok: false }> {
  const before = text.trim() === '' ? '{ "devices": [] }' : text
  const checked = readConfig(before)
  if (!checked.ok) return { ...checked, ofEntry: [] }
  if (entry['deviceId'] === UNNAMED_DEVICE) return invalidEntry(['deviceId: enter a set-up code, or fill in an id'], '')
  const whole = JSON.parse(before) as Record<string, unknown>
  const after = `${JSON.stringify({ ...whole, devices: [...((whole['devices'] as unknown[] | undefined) ?? []), entry] }, null, 2)}\n`
  const again = readConfig(after)
  return again.ok
    ? { ok: true, text: after, devices: again.config.devices }
    : invalidEntry(again.faults, `devices[${checked.config.devices.length}].`)
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
