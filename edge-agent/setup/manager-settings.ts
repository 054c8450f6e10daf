import type { EntryFault } from './config-file.ts'

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
export function managerFaults(
  entry: Readonly<Record<string, unknown>>,
  isNew: (deviceId: string) => boolean,
): EntryFault[] {
  const servesNew = typeof entry['feeds'] === 'string' && isNew(entry['feeds'])
  const refused = servesNew ? EMERGENCY_SETTINGS : MANAGER_SETTINGS
  return refused
    .filter((setting) => entry[setting] !== undefined && entry[setting] !== false)
    .map((path) => ({ path, message: path === 'feeds' ? FEEDS_FIX : FIX }))
}
