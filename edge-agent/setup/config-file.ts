import { readConfig } from '../config.ts'

/** The agent's configuration file, which the agent writes only when somebody asks it to. */
export interface ConfigFile {
  /** What people call it. */
  readonly name: string
  /** Writes one more device down, for the next start. Refuses, and changes nothing, when the whole would have a fault. */
  add(entry: Readonly<Record<string, unknown>>): AddResult
}

export type AddResult = { ok: true } | { ok: false; faults: string[] }

/** What a suggestion has where the id belongs. */
export const UNNAMED_DEVICE = 'dev_…'

/** The text of a configuration file ('' for none yet) with one more device in it; every fault when that would be no good. */
export function withDevice(
  text: string,
  entry: Readonly<Record<string, unknown>>,
): { ok: true; text: string } | { ok: false; faults: string[] } {
  const before = text.trim() === '' ? '{ "devices": [] }' : text
  const checked = readConfig(before)
  if (!checked.ok) return checked
  if (entry['deviceId'] === UNNAMED_DEVICE)
    return { ok: false, faults: ['deviceId: fill in the id of the device, as the cloud knows it'] }
  const whole = JSON.parse(before) as Record<string, unknown>
  const after = `${JSON.stringify({ ...whole, devices: [...((whole['devices'] as unknown[] | undefined) ?? []), entry] }, null, 2)}\n`
  const again = readConfig(after)
  return again.ok ? { ok: true, text: after } : again
}
