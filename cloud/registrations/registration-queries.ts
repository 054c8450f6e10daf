import type { Db } from '../persistence/database.ts'
import type { RegistrationRow } from '../persistence/tables/accounts.ts'

/** Finds a registration of any submitter. */
export function findRegistration(db: Db, registrationId: string): Promise<RegistrationRow | undefined> {
  return db.selectFrom('registration').selectAll().where('registration_id', '=', registrationId).executeTakeFirst()
}

/** Adds a registration. */
export async function insertRegistration(db: Db, row: RegistrationRow): Promise<void> {
  await db.insertInto('registration').values(row).execute()
}

/** Sets columns of a registration. */
export async function updateRegistration(db: Db, registrationId: string, set: Partial<RegistrationRow>): Promise<void> {
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

export interface RegistrationFilter {
  status?: RegistrationRow['status'] | undefined
  /** Limits the list to this submitter. */
  tenant?: string | undefined
  /** Limits the list to registrations of these stores. */
  storeIds?: readonly string[] | undefined
  after?: string | undefined
  limit: number
}

/** Registrations, oldest first, at most `limit`. */
export function listRegistrations(
  db: Db,
  { status, tenant, storeIds, after, limit }: RegistrationFilter,
): Promise<RegistrationRow[]> {
  let query = db.selectFrom('registration').selectAll()
  if (status !== undefined) query = query.where('status', '=', status)
  if (tenant !== undefined) query = query.where('tenant', '=', tenant)
  if (storeIds !== undefined) query = query.where('store_id', 'in', [...storeIds])
  if (after !== undefined) query = query.where('registration_id', '>', after)
  return query.orderBy('registration_id').limit(limit).execute()
}
