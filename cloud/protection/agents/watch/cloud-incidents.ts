import { KEY_SET_LIFE } from '../../../platform/authority/key-sets.ts'
import { tenantOf, type Mode } from '../../../platform/foundation/caller.ts'
import type { Db } from '../../../platform/persistence/database.ts'
import type { Incident } from './incidents.ts'

/** Reads the free space of the disk with the data folder. */
export interface DiskSpace {
  freeBytes(): Promise<number>
  /** The cloud raises an exception if less is free. */
  readonly minFreeBytes: number
}

/** Agents warn of their key set at the same time. */
const KEY_SET_WARNING_S = 30 * 86_400
/** A key that ends within this time, ms, and is still used, needs attention. */
const API_KEY_WARNING_MS = 12 * 3_600_000
const USED_WITHIN_MS = 3_600_000
/** Accounts and modes whose stores are told about the cloud's own disk. */
const TENANTS_LIMIT = 1_000
const KEYS_LIMIT = 1_000
const SUBJECT = 'cloud'
const MIB = 1_048_576

/**
 * Everything about the cloud itself that needs attention. Each account gets the exceptions in its oldest store, because
 * an exception belongs to a store.
 */
export async function cloudIncidents(db: Db, nowMs: number, disk: DiskSpace | undefined): Promise<Incident[]> {
  const stores = await oldestStores(db)
  const freeBytes = await disk?.freeBytes().catch(() => undefined)
  const isLow = disk !== undefined && freeBytes !== undefined && freeBytes < disk.minFreeBytes
  const shown = `${Math.floor((freeBytes ?? 0) / MIB)} MiB are free on the disk of the cloud`
  const about = (tenant: string) => ({ tenant, storeId: stores.get(tenant) ?? '' })
  return [
    ...(isLow ? [...stores.keys()] : []).map((tenant) => ({
      ...about(tenant),
      kind: 'disk_low' as const,
      subject: SUBJECT,
      detail: shown,
      sinceMs: undefined,
    })),
    ...(await endingKeySets(db, nowMs)).map(({ aud, iat }) => ({
      ...about(aud),
      kind: 'key_set_not_renewed' as const,
      subject: SUBJECT,
      detail: `the key set of the agents ends at ${new Date((iat + KEY_SET_LIFE) * 1_000).toISOString()}`,
      sinceMs: (iat + KEY_SET_LIFE - KEY_SET_WARNING_S) * 1_000,
    })),
    ...(await endingApiKeys(db, nowMs)).map((key) => ({
      ...about(tenantOf(key.account_id, key.mode as Mode)),
      kind: 'api_key_ending' as const,
      subject: key.key_id,
      detail: `a program still uses the key ${key.shown} (${key.name}), which ends at ${new Date(key.expires_ms ?? 0).toISOString()}`,
      sinceMs: (key.expires_ms ?? 0) - API_KEY_WARNING_MS,
    })),
  ].filter((incident) => incident.storeId !== '')
}

async function oldestStores(db: Db): Promise<Map<string, string>> {
  const rows = await db
    .selectFrom('store')
    .select(['tenant', (eb) => eb.fn.min('store_id').as('storeId')])
    .groupBy('tenant')
    .limit(TENANTS_LIMIT)
    .execute()
  return new Map(rows.map(({ tenant, storeId }) => [tenant, storeId]))
}

function endingKeySets(db: Db, nowMs: number) {
  return db
    .selectFrom('signed_document')
    .select(['aud', 'iat'])
    .where('kind', '=', 'keys')
    .where('iat', '<', Math.floor(nowMs / 1_000) + KEY_SET_WARNING_S - KEY_SET_LIFE)
    .limit(TENANTS_LIMIT)
    .execute()
}

function endingApiKeys(db: Db, nowMs: number) {
  return db
    .selectFrom('api_key')
    .select(['key_id', 'account_id', 'mode', 'shown', 'name', 'expires_ms'])
    .where('revoked_ms', 'is', null)
    .where('expires_ms', '>', nowMs)
    .where('expires_ms', '<', nowMs + API_KEY_WARNING_MS)
    .where('last_used_ms', '>', nowMs - USED_WITHIN_MS)
    .limit(KEYS_LIMIT)
    .execute()
}
