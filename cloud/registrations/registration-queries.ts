import type { Db } from '../persistence/database.ts'
import type { RegistrationRow } from '../persistence/tables/accounts.ts'

/** The registration with this id, whoever sent it in. */
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

/** How many of a tenant wait for review; of null: how many that came in without a key. */
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
  /** Only what this tenant sent in. */
  tenant?: string | undefined
  /** Only what became one of these. */
  storeIds?: readonly string[] | undefined
  after?: string | undefined
  limit: number
}

/** Registrations in the order they came in, at most `limit`. */
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
