import type { DeviceEntry } from '../../device-drivers/drivers/registry.ts'
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

/** `devices`: the devices of the new configuration. */
export type AddResult = { ok: true; devices: readonly DeviceEntry[] } | { ok: false; faults: string[] }

/** Placeholder for the id in a suggested entry. */
export const UNNAMED_DEVICE = 'dev_…'

/** Adds a device to the text of a configuration file ('' for a new file). Returns all faults of an invalid result. */
export function withDevice(
  text: string,
  entry: Readonly<Record<string, unknown>>,
): { ok: true; text: string; devices: readonly DeviceEntry[] } | { ok: false; faults: string[] } {
  const before = text.trim() === '' ? '{ "devices": [] }' : text
  const checked = readConfig(before)
  if (!checked.ok) return checked
  if (entry['deviceId'] === UNNAMED_DEVICE)
    return { ok: false, faults: ['deviceId: enter a set-up code, or fill in the id of a registered device'] }
  const whole = JSON.parse(before) as Record<string, unknown>
  const after = `${JSON.stringify({ ...whole, devices: [...((whole['devices'] as unknown[] | undefined) ?? []), entry] }, null, 2)}\n`
  const again = readConfig(after)
  return again.ok ? { ok: true, text: after, devices: again.config.devices } : again
}
