import { sql } from 'kysely'
import { accountOf, PLATFORM_ACCOUNT, tenantOf } from '../../platform/foundation/caller.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'

interface AccountFilter {
  /** Part of the name, or the id. */
  readonly search?: string | undefined
  readonly package?: string | undefined
  readonly after?: string | undefined
  readonly limit: number
}

/** Accounts of merchants, oldest first, at most `limit`. */
export function listAccounts(
  db: Db,
  { search, package: wanted, after, limit }: AccountFilter,
): Promise<Row<'account'>[]> {
  let query = db.selectFrom('account').selectAll().where('account_id', '!=', PLATFORM_ACCOUNT)
  if (search !== undefined) {
    const pattern = `%${search.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`
    query = query.where((eb) =>
      eb.or([eb('account_id', '=', search), sql<boolean>`lower(name) like lower(${pattern}) escape ${'\\'}`]),
    )
  }
  if (wanted !== undefined) query = query.where('package', '=', wanted)
  if (after !== undefined) query = query.where('account_id', '>', after)
  return query.orderBy('account_id').limit(limit).execute()
}

/** An account of a merchant; undefined also for that of the people who run the cloud. */
export function findAccount(db: Db, accountId: string): Promise<Row<'account'> | undefined> {
  return db
    .selectFrom('account')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('account_id', '!=', PLATFORM_ACCOUNT)
    .executeTakeFirst()
}

/** How large an account is, and when it was last used. Agents and devices count without those that were removed. */
export interface AccountFigures {
  stores: number
  agents: number
  devices: number
  users: number
  /** Last use of a key, session or agent, ms; 0: none. */
  lastActiveMs: number
}

/** Figures of these accounts, with the live data of each. One query for each table, however many accounts there are. */
export async function figuresOfAccounts(
  db: Db,
  accountIds: readonly string[],
): Promise<ReadonlyMap<string, AccountFigures>> {
  const figures = new Map<string, AccountFigures>(
    accountIds.map((id) => [id, { stores: 0, agents: 0, devices: 0, users: 0, lastActiveMs: 0 }]),
  )
  if (accountIds.length === 0) return figures
  const live = accountIds.map((id) => tenantOf(id, 'live'))
  const add = (accountId: string, found: Partial<Record<keyof AccountFigures, unknown>>) => {
    const own = figures.get(accountId)
    if (!own) return
    const { lastActiveMs, ...counts } = found
    for (const [name, count] of Object.entries(counts)) own[name as keyof typeof counts] += Number(count)
    own.lastActiveMs = Math.max(own.lastActiveMs, Number(lastActiveMs ?? 0))
  }
  for (const { tenant, ...found } of await storesAndDevices(db, live)) add(accountOf(tenant), found)
  for (const { tenant, ...found } of await agentsOf(db, live)) add(accountOf(tenant), found)
  for (const { account_id: id, ...found } of await usersOf(db, accountIds)) add(id, found)
  for (const { account_id: id, ...found } of await lastKeys(db, accountIds)) add(id, found)
  return figures
}

function storesAndDevices(db: Db, tenants: readonly string[]) {
  return db
    .selectFrom('store')
    .leftJoin('device', (join) =>
      join.onRef('device.store_id', '=', 'store.store_id').on('device.revoked_ms', 'is', null),
    )
    .select((eb) => [
      'store.tenant',
      eb.fn.count('store.store_id').distinct().as('stores'),
      eb.fn.count('device.device_id').as('devices'),
    ])
    .where('store.tenant', 'in', tenants)
    .groupBy('store.tenant')
    .execute()
}

function agentsOf(db: Db, tenants: readonly string[]) {
  return db
    .selectFrom('agent')
    .select((eb) => ['tenant', eb.fn.countAll().as('agents'), eb.fn.max('last_seen_ms').as('lastActiveMs')])
    .where('tenant', 'in', tenants)
    .where('revoked_ms', 'is', null)
    .groupBy('tenant')
    .execute()
}

function usersOf(db: Db, accountIds: readonly string[]) {
  return db
    .selectFrom('console_user')
    .leftJoin('user_session', 'user_session.user_id', 'console_user.user_id')
    .select((eb) => [
      'account_id',
      eb.fn.count('console_user.user_id').distinct().as('users'),
      eb.fn.max(eb.fn.coalesce('seen_ms', 'last_sign_in_ms')).as('lastActiveMs'),
    ])
    .where('account_id', 'in', accountIds)
    .groupBy('account_id')
    .execute()
}

function lastKeys(db: Db, accountIds: readonly string[]) {
  return db
    .selectFrom('api_key')
    .select((eb) => ['account_id', eb.fn.max('last_used_ms').as('lastActiveMs')])
    .where('account_id', 'in', accountIds)
    .groupBy('account_id')
    .execute()
}

/** Stores of an account in both modes, oldest first, at most `limit`. */
export function listStoresOfAccount(
  db: Db,
  { accountId, after, limit }: { accountId: string; after?: string | undefined; limit: number },
): Promise<Row<'store'>[]> {
  let query = db
    .selectFrom('store')
    .selectAll()
    .where('tenant', 'in', [tenantOf(accountId, 'live'), tenantOf(accountId, 'test')])
  if (after !== undefined) query = query.where('store_id', '>', after)
  return query.orderBy('store_id').limit(limit).execute()
}

/** Agents and devices of these stores, without those that were removed. */
export async function figuresOfStores(
  db: Db,
  storeIds: readonly string[],
): Promise<ReadonlyMap<string, { agents: number; devices: number; lastSeenMs: number }>> {
  const figures = new Map(storeIds.map((id) => [id, { agents: 0, devices: 0, lastSeenMs: 0 }] as const))
  if (storeIds.length === 0) return figures
  const devices = await db
    .selectFrom('device')
    .select((eb) => ['store_id', eb.fn.countAll().as('count')])
    .where('store_id', 'in', storeIds)
    .where('revoked_ms', 'is', null)
    .groupBy('store_id')
    .execute()
  const agents = await db
    .selectFrom('agent')
    .select((eb) => ['store_id', eb.fn.countAll().as('count'), eb.fn.max('last_seen_ms').as('seen')])
    .where('store_id', 'in', storeIds)
    .where('revoked_ms', 'is', null)
    .groupBy('store_id')
    .execute()
  for (const { store_id: id, count } of devices) Object.assign(figures.get(id) ?? {}, { devices: Number(count) })
  for (const { store_id: id, count, seen } of agents)
    Object.assign(figures.get(id) ?? {}, { agents: Number(count), lastSeenMs: Number(seen) })
  return figures
}
