import { sql } from 'kysely'
import type { Db } from '../../platform/persistence/database.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { deleteSome } from '../../platform/persistence/delete-some.ts'

/** Period in which requests of one network are counted, ms. */
export const NETWORK_MS = 24 * 3_600_000
/** Time after which a request without a key expires if no operator decides it, ms. */
const PENDING_MS = 30 * 24 * 3_600_000

/** Finds a registration of any submitter. */
export function findRegistration(db: Db, registrationId: string): Promise<Row<'registration'> | undefined> {
  return db.selectFrom('registration').selectAll().where('registration_id', '=', registrationId).executeTakeFirst()
}

/** Adds a registration. */
export async function insertRegistration(db: Db, row: Row<'registration'>): Promise<void> {
  await db.insertInto('registration').values(row).execute()
}

/** Sets columns of a registration. */
export async function updateRegistration(
  db: Db,
  registrationId: string,
  set: Partial<Row<'registration'>>,
): Promise<void> {
  await db.updateTable('registration').set(set).where('registration_id', '=', registrationId).execute()
}

/** Number of pending registrations of a tenant. With null, counts requests that were sent without a key. */
export async function countPending(db: Db, tenant: string | null): Promise<number> {
  const { count } = await db
    .selectFrom('registration')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('status', '=', 'pending')
    .where('tenant', tenant === null ? 'is' : '=', tenant)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Number of requests of a network in the last day. */
export async function countOfNetwork(db: Db, network: string, nowMs: number): Promise<number> {
  const { count } = await db
    .selectFrom('registration')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('network', '=', network)
    .where('submitted_ms', '>', nowMs - NETWORK_MS)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Deletes the oldest pending request of the network that has the most, so that no network displaces others. */
export async function deleteOldestOfLargestNetwork(db: Db): Promise<void> {
  const largest = await db
    .selectFrom('registration')
    .select((eb) => eb.fn.min('registration_id').as('oldest'))
    .where('status', '=', 'pending')
    .where('tenant', 'is', null)
    .groupBy('network')
    .orderBy((eb) => eb.fn.countAll(), 'desc')
    .orderBy((eb) => eb.fn.min('registration_id'))
    .limit(1)
    .executeTakeFirst()
  if (largest) await db.deleteFrom('registration').where('registration_id', '=', largest.oldest).execute()
}

/** Deletes requests without a key that waited for too long, and networks of requests that were decided. */
export async function pruneRegistrations(db: Db, nowMs: number): Promise<number> {
  const deleted = await deleteSome(
    db,
    'registration',
    ['registration_id'],
    sql`status = 'pending' AND tenant IS NULL AND submitted_ms <= ${nowMs - PENDING_MS}`,
  )
  await db
    .updateTable('registration')
    .set({ network: null })
    .where('network', 'is not', null)
    .where('status', '!=', 'pending')
    .where('submitted_ms', '<=', nowMs - NETWORK_MS)
    .execute()
  return deleted
}

interface RegistrationFilter {
  status?: Row<'registration'>['status'] | undefined
  /** Limits the list to this submitter. */
  tenant?: string | undefined
  /** Limits the list to registrations of these stores. */
  storeIds?: readonly string[] | undefined
  isLatest: boolean
  after?: string | undefined
  limit: number
}

/** Registrations, oldest or newest first, at most `limit`. */
export function listRegistrations(
  db: Db,
  { status, tenant, storeIds, isLatest, after, limit }: RegistrationFilter,
): Promise<Row<'registration'>[]> {
  let query = db.selectFrom('registration').selectAll()
  if (status !== undefined) query = query.where('status', '=', status)
  if (tenant !== undefined) query = query.where('tenant', '=', tenant)
  if (storeIds !== undefined) query = query.where('store_id', 'in', [...storeIds])
  if (after !== undefined) query = query.where('registration_id', isLatest ? '<' : '>', after)
  return query
    .orderBy('registration_id', isLatest ? 'desc' : 'asc')
    .limit(limit)
    .execute()
}
