import { z } from 'zod'
import { checkDevices, MAX_DEVICES } from '../device-drivers/kit/check-devices.ts'
import { ruleOf } from '../policy/validation-findings.ts'
import type { Language } from '../policy/page-language.ts'
import { capabilitiesOf, DeviceEntry } from '../device-drivers/registry.ts'

/**
 * The agent's configuration file (ADR staff). The agent writes this file only when a caller of the setup API adds a
 * device.
 */
export interface AgentConfig {
  readonly devices: readonly DeviceEntry[]
  /** If false, programs on this machine need no credential for requests, scans and status (`http/access.ts`). */
  readonly requirePairing: boolean
  /** Further names by which browsers may call this agent, such as `kasse1.local:8090`. */
  readonly hosts: readonly string[]
  /** Language of the pages until a user chooses another. Undefined: language of the browser. */
  readonly language?: Language
  /** False if the pages make no sounds and have no button for them. */
  readonly sounds: boolean
}

const Settings = z.strictObject({
  $schema: z.string().optional(),
  requirePairing: z.boolean().default(true),
  hosts: z
    .array(z.string().regex(/^[A-Za-z0-9.-]{1,200}(:\d{1,5})?$/, 'must be a host name, with a port if not 80'))
    .max(20)
    .default([]),
  language: z.enum(['de', 'en']).optional(),
  sounds: z.boolean().default(true),
})

export const EMPTY_CONFIG: AgentConfig = { devices: [], requirePairing: true, hosts: [], sounds: true }

type CheckedConfig = { ok: true; config: AgentConfig } | { ok: false; faults: string[] }

/** Where a text is not JSON. The message of the parser quotes what is there, which may be a secret. */
function placeOf(error: unknown, text: string): string {
  const at = /position (\d+)/.exec((error as Error).message)?.[1]
  if (at === undefined) return text.trim() === '' ? ': it is empty' : ': it ends too early, or has a wrong character'
  const lines = text.slice(0, Number(at)).split('\n')
  return `: look at line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`
}

/**
 * Returns the JSON Schema of a configuration file. The schema lacks the rules between devices, which `readConfig`
 * checks.
 */
export function configSchema(): object {
  const whole = Settings.extend({ devices: z.array(DeviceEntry).max(MAX_DEVICES).default([]) })
  return { ...z.toJSONSchema(whole, { io: 'input' }), title: 'Configuration of the untag edge agent' }
}

/**
 * Checks the text of a configuration file. Returns all faults, each with the setting and the remedy, or the
 * configuration.
 */
export function readConfig(text: string): CheckedConfig {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return { ok: false, faults: [`this is not JSON${placeOf(error, text)}`] }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { ok: false, faults: ['the file must hold one JSON object: { "devices": [ … ] }'] }
  const { devices = [], ...rest } = value as Record<string, unknown>
  const checked = checkDevices(devices)
  const settings = Settings.safeParse(rest)
  const faults = [
    ...('errors' in checked ? checked.errors : []),
    ...(settings.success ? [] : settings.error.issues.flatMap(explain)),
  ]
  if (faults.length > 0 || !settings.success || !('devices' in checked)) return { ok: false, faults }
  const { requirePairing, hosts, language, sounds } = settings.data
  const between = [...danglingFeeds(checked.devices), ...emergencyFaults(checked.devices)]
  return between.length > 0
    ? { ok: false, faults: between }
    : { ok: true, config: { devices: checked.devices, requirePairing, hosts, sounds, ...(language && { language }) } }
}

function explain(issue: z.core.$ZodIssue): string[] {
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map(
      (key) => `${key}: no such setting; the settings are devices, requirePairing, hosts, language, sounds`,
    )
  return [`${issue.path.join('.')}: ${ruleOf(issue)}`]
}

/**
 * Returns faults of `feeds` settings. The named device must be in the file and must not have the setting `feeds`
 * itself.
 */
function danglingFeeds(devices: readonly DeviceEntry[]): string[] {
  const wired = devices.map((device) => ({ deviceId: device.deviceId, feeds: capabilitiesOf(device).feeds }))
  const ids = new Set(wired.filter(({ feeds }) => feeds === undefined).map(({ deviceId }) => deviceId))
  return wired.flatMap(({ feeds }, i) => {
    if (feeds === undefined || ids.has(feeds)) return []
    return [
      `devices[${i}].feeds: "${feeds}" must name a device of this file without "feeds"; give the deviceId of the device that this scanner or reader serves`,
    ]
  })
}

/** Fault of a device that releases with an output, if `opensInEmergency` is missing beside an emergency input. */
export const WAY_OUT_NEEDED =
  'give true (a way out, or a cabinet that must open) or false (a detacher, or a cabinet that stays locked), because a device has "emergency"'

/**
 * Returns faults of `opensInEmergency`. If any device has an emergency input, each device that releases with an output
 * must have this setting: no default may decide in a fire.
 */
function emergencyFaults(devices: readonly DeviceEntry[]): string[] {
  const all = devices.map((device) => capabilitiesOf(device))
  const hasInput = all.some(({ emergency }) => emergency !== undefined)
  return all.flatMap(({ releases, opensInEmergency }, i) => {
    const setting = `devices[${i}].opensInEmergency`
    if (opensInEmergency === true && releases !== 'output')
      return [`${setting}: this device has no output that releases; use false, or leave it out`]
    if (!hasInput || releases !== 'output' || opensInEmergency !== undefined) return []
    return [`${setting}: ${WAY_OUT_NEEDED}`]
  })
}
