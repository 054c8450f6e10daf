import { UNTAG_VERSION } from '../../../policy/version.ts'
import { iso } from '../../platform/operations/fields.ts'
import { fetchAgentConditions } from '../../protection/agents/administration/agent-conditions.ts'
import { fetchAgents } from '../../protection/agents/administration/agent-operations.ts'
import { fetchDevices } from '../../protection/devices/device-operations.ts'
import { fetchExceptions } from '../../protection/records/exception-operations.ts'
import { fetchProtectionPolicy } from '../../protection/store-policy/policy-operations.ts'
import type { PageContext } from '../frame/page.ts'

/** Agents, devices and exceptions in a bundle, each. */
const ROWS = 500

/**
 * What support needs to find a fault in a store, as JSON: answers of operations with the rights of the user. It names no
 * shopper and no member of staff, and contains no notes. Texts of devices and agents lose what may be a secret.
 */
export async function diagnosticsOf(at: PageContext): Promise<string> {
  const about = at.store ? { storeId: at.store.storeId } : {}
  const agents = await at.runIfAllowed(fetchAgents, { ...about, limit: ROWS })
  const devices = await at.runIfAllowed(fetchDevices, { ...about, limit: ROWS })
  const exceptions = await at.runIfAllowed(fetchExceptions, { ...about, state: 'open', limit: ROWS })
  const conditions = await at.runIfAllowed(fetchAgentConditions, about)
  const rules = at.store && (await at.runIfAllowed(fetchProtectionPolicy, { storeId: at.store.storeId }))
  const bundle = {
    release: UNTAG_VERSION,
    madeAt: iso(at.nowMs),
    mode: at.mode,
    ...about,
    conditions: conditions?.conditions,
    agents: { total: agents?.total, listed: agents?.agents },
    devices: { total: devices?.total, listed: devices?.devices },
    openExceptions: {
      total: exceptions?.total,
      listed: exceptions?.exceptions.map(
        ({ exceptionId, storeId, kind, subject, detail, raisedAt, lastRaisedAt, times, deviceId, agentId }) => ({
          exceptionId,
          storeId,
          kind,
          subject,
          detail,
          raisedAt,
          lastRaisedAt,
          times,
          deviceId,
          agentId,
        }),
      ),
    },
    rules: rules && { version: rules.version, policy: rules.policy },
  }
  return `${JSON.stringify(bundle, (_, value: unknown) => (typeof value === 'string' ? withoutSecrets(value) : value), 2)}\n`
}

const REMOVED = '[removed]'

/** Parts of a text that may be secrets: passwords in addresses, keys of this cloud, and signed documents. */
const SECRETS: readonly (readonly [found: RegExp, by: string])[] = [
  [/(\/\/)[^/\s@]+@/g, `$1${REMOVED}@`],
  [
    /\b((?:authorization|bearer|basic|password|passwd|pwd|secret|token|api[_-]?key)["']?\s*[:=\s]\s*["']?)[^\s"',;&]+/gi,
    `$1${REMOVED}`,
  ],
  [/\buntag_\w+/g, REMOVED],
  [/\beyJ[\w.-]+/g, REMOVED],
]

const LONG_CODE = /[A-Za-z0-9+/_-]{40,}={0,2}/g
/** Parts of the subject of an exception: ids, numbers and words. */
const PART = /^(?:[a-z]{2,5}_[0-9A-Z]{26}|\d{1,6}|[a-z_]{1,30})$/

/** The text without what may be a secret. */
export function withoutSecrets(text: string): string {
  return SECRETS.reduce((left, [found, by]) => left.replaceAll(found, by), text).replaceAll(LONG_CODE, (code) =>
    code.split('/').every((part) => PART.test(part)) ? code : REMOVED,
  )
}
