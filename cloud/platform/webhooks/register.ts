import { newId } from '../../../policy/ids.ts'
import { secretsEqual } from '../../../policy/secrets-equal.ts'
import { checkTarget, type TargetRules } from '../outgoing/outgoing-http.ts'
import type { CloudConfig } from '../foundation/config.ts'
import { knownCaller, maySee, type KnownCaller, isAtLeast, type Package } from '../foundation/caller.ts'
import { Failure, invalid, notFound, precondition } from '../foundation/failure.ts'
import { iso } from '../operations/fields.ts'
import type { Call } from '../operations/operation.ts'
import type { Row } from '../persistence/schema.ts'
import { EVENT_TYPES } from './event-types.ts'
import {
  changeWebhook,
  EVERY_EVENT,
  findByTarget,
  findWebhook,
  listWebhooks,
  readEvents,
  writeEvents,
} from './queries.ts'
import { URL_LIMIT } from './schema.ts'
import { newSecret, openSecret, sealSecret, secretWarnings } from './secret.ts'

/** Maximum number of webhooks of one account and mode. */
export const WEBHOOKS_LIMIT = 100
/** Default time for which the previous secret also signs after a new secret is set, h. */
export const DEFAULT_OVERLAP_HOURS = 24
const HOUR_MS = 3_600_000

/** What a developer does instead of registering a receiver of an own network. */
const PRIVATE_REMEDY =
  ': to receive events on your machine use untag listen --forward-to URL, or start the cloud with --allow-private-targets'

/** Rules for targets of this tenant. */
export function targetRules(tenant: string, config: CloudConfig): TargetRules {
  return { plainHttp: tenant.endsWith('.test'), privateTargets: config.allowPrivateTargets }
}

/** Normalizes a URL for comparison. Throws 400 if the cloud does not send to this URL. */
export function urlKey(call: Call, url: string): string {
  const checked = checkTarget(url, targetRules(knownCaller(call.caller).tenant, call.services.config))
  if ('refusal' in checked)
    throw invalid('url', `${checked.refusal}${checked.isPrivate ? PRIVATE_REMEDY : ''}`, 'url_refused')
  checked.url.hash = ''
  const { href } = checked.url
  if (href.length > URL_LIMIT)
    throw invalid(
      'url',
      `has ${href.length} characters after encoding (a letter beyond ASCII becomes several); at most ${URL_LIMIT}`,
      'too_big',
    )
  return href
}

interface WebhookRegistration {
  /** null: all stores of the account. */
  store: Row<'store'> | null
  url: string
  events: readonly string[]
  secret: string | undefined
}

export interface RegisteredWebhook {
  webhook: Row<'webhook'>
  events: string[]
  /** Set only if this call generated the secret. */
  secret?: string
  warnings: string[]
}

/**
 * Registers a target, or adds events to the existing webhook of the target. A different secret replaces the stored
 * secret. The old secret also signs until the default overlap ends.
 */
export async function register(call: Call, wanted: WebhookRegistration): Promise<RegisteredWebhook> {
  const { tenant } = knownCaller(call.caller)
  const key = urlKey(call, wanted.url)
  const storeId = wanted.store?.store_id ?? null
  const known = await findByTarget(call.db, tenant, storeId, key)
  const registered = known ? await merge(call, known, wanted) : await make(call, tenant, key, wanted)
  call.changed(registered.webhook.webhook_id)
  registered.warnings.push(...secretWarnings(wanted.secret), ...packageWarnings(call, wanted))
  return registered
}

async function make(
  call: Call,
  tenant: string,
  key: string,
  { store, url, events, secret }: WebhookRegistration,
): Promise<RegisteredWebhook> {
  const { db, nowMs, services } = call
  if ((await listWebhooks(db, tenant, WEBHOOKS_LIMIT)).length >= WEBHOOKS_LIMIT) {
    throw precondition('too_many_webhooks', `an account has at most ${WEBHOOKS_LIMIT} webhooks; delete one first`)
  }
  const webhookId = newId('whk', services.platform)
  const ownSecret = secret ?? newSecret(services.platform.random)
  const webhook: Row<'webhook'> = {
    webhook_id: webhookId,
    tenant,
    store_id: store?.store_id ?? null,
    url,
    url_key: key,
    enabled: 1,
    disabled_reason: null,
    disabled_ms: null,
    secret: sealSecret(services.authority.sealer, webhookId, ownSecret),
    old_secret: null,
    old_until_ms: null,
    failed_in_row: 0,
    failing_since_ms: null,
    missed_ms: null,
    created_ms: nowMs,
    updated_ms: nowMs,
  }
  await db.insertInto('webhook').values(webhook).execute()
  await writeEvents(db, webhook, events)
  return {
    webhook,
    events: [...new Set(events)].toSorted(),
    warnings: [],
    ...(secret === undefined && { secret: ownSecret }),
  }
}

async function merge(
  call: Call,
  known: Row<'webhook'>,
  { events, secret }: WebhookRegistration,
): Promise<RegisteredWebhook> {
  const { db, nowMs, services } = call
  const before = (await readEvents(db, [known.webhook_id])).get(known.webhook_id) ?? []
  const merged = [...new Set([...before, ...events])].toSorted()
  await writeEvents(db, known, merged)
  const isOther =
    secret !== undefined && !secretsEqual(openSecret(services.authority.sealer, known.webhook_id, known.secret), secret)
  const roll = isOther ? rolledSecret(call, known, secret, DEFAULT_OVERLAP_HOURS) : {}
  const webhook = await changeWebhook(db, known.webhook_id, { ...roll, updated_ms: nowMs })
  const until = webhook.old_until_ms
  const warnings =
    isOther && until !== null
      ? [`this URL was registered with another secret: X-Untag-Signature uses the old secret until ${iso(until)}`]
      : []
  return { webhook, events: merged, warnings }
}

/** Columns to write when a webhook gets a new secret. If `overlapHours` is 0, the old secret no longer signs. */
export function rolledSecret(
  { nowMs, services }: Call,
  known: Row<'webhook'>,
  secret: string,
  overlapHours: number,
): Partial<Row<'webhook'>> {
  const sealed = sealSecret(services.authority.sealer, known.webhook_id, secret)
  if (overlapHours === 0) return { secret: sealed, old_secret: null, old_until_ms: null }
  return { secret: sealed, old_secret: known.secret, old_until_ms: nowMs + overlapHours * HOUR_MS }
}

function packageWarnings(call: Call, { store, events }: WebhookRegistration): string[] {
  const caller = knownCaller(call.caller)
  const have = (store?.package ?? caller.package) as Package
  return events.flatMap((name) => {
    const type = EVENT_TYPES.get(name)
    if (!type || isAtLeast(have, type.minimumPackage) || (type.freeInSandbox && caller.mode === 'test')) return []
    return [`${name} needs the package ${type.minimumPackage}; the cloud does not send it while the package is ${have}`]
  })
}

/** True if the caller may see a webhook. Keys of single stores do not see webhooks of the whole account. */
function maySeeWebhook(caller: KnownCaller, webhook: Row<'webhook'>): boolean {
  if (webhook.tenant !== caller.tenant) return false
  if (webhook.store_id === null) return caller.kind !== 'agent' && caller.storeIds === null
  return maySee(caller, { store_id: webhook.store_id, tenant: webhook.tenant })
}

/** Finds a webhook of the caller. Throws 404. */
export async function ownWebhook(call: Call, webhookId: string): Promise<Row<'webhook'>> {
  const webhook = await findWebhook(call.db, webhookId)
  if (!webhook || !maySeeWebhook(knownCaller(call.caller), webhook)) throw notFound('webhook')
  return webhook
}

/** Webhooks of the caller: all, or those of one store. */
export async function ownWebhooks(call: Call, storeId: string | undefined): Promise<Row<'webhook'>[]> {
  const caller = knownCaller(call.caller)
  const all = (await listWebhooks(call.db, caller.tenant, WEBHOOKS_LIMIT)).filter((webhook) =>
    maySeeWebhook(caller, webhook),
  )
  return storeId === undefined ? all : all.filter((webhook) => webhook.store_id === storeId)
}

/** Throws 409 if another webhook of the same store has this URL. */
export async function assertUrlUnused(call: Call, webhook: Row<'webhook'>, key: string): Promise<void> {
  const other = await findByTarget(call.db, webhook.tenant, webhook.store_id, key)
  if (other && other.webhook_id !== webhook.webhook_id)
    throw new Failure('already-exists', `${other.webhook_id} is registered for this URL already`)
}

/** Names to filter events by; undefined for all events. */
export function eventNames(events: readonly string[]): readonly string[] | undefined {
  return events.includes(EVERY_EVENT) ? undefined : events
}
