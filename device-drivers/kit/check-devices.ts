import type { z } from 'zod'
import { ruleOf } from '../../policy/validation-findings.ts'
import { MqttLink, SerialLink, TcpLink, WebLink } from '../transports/link-settings.ts'
import type { DeviceSettings } from './driver.ts'
import { DeviceEntry, DRIVER_NAMES, driverOf } from '../registry.ts'

/** The checked devices, or all errors of a configuration. An error names the key and the fix. */
type CheckedDevices = { readonly devices: readonly DeviceEntry[] } | { readonly errors: readonly string[] }

/** Maximum devices of one agent. */
export const MAX_DEVICES = 64

type Issue = z.core.$ZodIssue

const pathText = (path: readonly PropertyKey[]): string =>
  path
    .map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`))
    .join('')
    .replace(/^\./, '')

/** Returns the schema whose first key occurs in this link; null if there is none. */
function linkForm(link: unknown): z.ZodType | null {
  if (typeof link !== 'object' || link === null) return null
  const web = [...WebLink.options, ...MqttLink.options].find((form) =>
    Object.keys(form.shape)
      .slice(0, 1)
      .some((key) => key in link),
  )
  if (web) return web
  return 'tcp' in link ? TcpLink : 'serial' in link ? SerialLink : null
}

function explain(at: readonly PropertyKey[], issue: Issue, entry: unknown): string[] {
  const path = [...at, ...issue.path]
  const key = issue.path.at(-1)
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((k) => `${pathText([...path, k])}: no such setting; remove it or check its spelling`)
  }
  if (issue.code === 'invalid_union' && key === 'driver') {
    return [`${pathText(path)}: give one of ${DRIVER_NAMES.map((name) => `"${name}"`).join(', ')}`]
  }
  if (issue.code === 'invalid_union' && key === 'link') {
    const link: unknown = Object(entry).link
    const meant = linkForm(link)?.safeParse(link).error?.issues ?? []
    if (meant.length > 0) return meant.flatMap((inner) => explain(path, inner, link))
  }
  return [`${pathText(path)}: ${ruleOf(issue)}`]
}

/** Finds conflicts between valid entries: equal ids, and outputs or links that cannot be shared. */
function conflicts(entries: readonly { entry: DeviceSettings; at: string }[]): string[] {
  const errors: string[] = []
  const ids = new Map<string, string>()
  const owners = new Map<string, string>()
  const links = new Map<string, { at: string; use: string | null }>()
  for (const { entry, at } of entries) {
    const firstUse = ids.get(entry.deviceId)
    if (firstUse)
      errors.push(`${at}.deviceId: "${entry.deviceId}" is used by ${firstUse} already; give every device its own`)
    ids.set(entry.deviceId, at)

    const { link, use, exclusiveResources } = driverOf(entry).use(entry)
    const other = links.get(link)
    if (!other) {
      links.set(link, { at, use })
    } else if (use === null || other.use === null) {
      errors.push(`${at}.link: ${link} belongs to ${other.at} alone; give this device its own link`)
    } else if (other.use !== use) {
      errors.push(`${at}.link: ${link} is used as ${other.use} by ${other.at}, here as ${use}; make them equal`)
    }

    for (const resource of exclusiveResources) {
      const owner = owners.get(resource.key)
      if (owner) errors.push(`${at}.${resource.setting}: ${resource.key} is taken by ${owner}; use another output`)
      else owners.set(resource.key, `${at}.${resource.setting}`)
    }
  }
  return errors
}

/** Checks the value of `devices` in the agent's configuration. Never throws; lists all errors. */
export function checkDevices(value: unknown): CheckedDevices {
  if (!Array.isArray(value)) return { errors: ['devices: give a list, [] for none'] }
  if (value.length > MAX_DEVICES) return { errors: [`devices: at most ${MAX_DEVICES} for one agent`] }
  const errors: string[] = []
  const valid: { entry: DeviceEntry; at: string }[] = []
  value.forEach((item: unknown, i) => {
    const checked = DeviceEntry.safeParse(item)
    if (checked.success) valid.push({ entry: checked.data, at: `devices[${i}]` })
    else errors.push(...checked.error.issues.flatMap((issue) => explain(['devices', i], issue, item)))
  })
  errors.push(...conflicts(valid))
  return errors.length > 0 ? { errors } : { devices: valid.map(({ entry }) => entry) }
}
