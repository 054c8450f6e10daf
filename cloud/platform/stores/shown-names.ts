import type { Db } from '../persistence/database.ts'

type Ids = readonly (string | null | undefined)[]

/** Names that people see instead of ids, by id. */
export interface ShownNames {
  /** A device without a name has the name of its gate. */
  readonly devices: ReadonlyMap<string, string>
  /** Operators and users of the account. */
  readonly staff: ReadonlyMap<string, string>
}

/** Reads the names of these devices and members of staff. */
export async function shownNames(db: Db, tenant: string, ids: { devices: Ids; staff: Ids }): Promise<ShownNames> {
  return {
    devices: await deviceNames(db, tenant, distinct(ids.devices)),
    staff: await staffNames(db, tenant, distinct(ids.staff)),
  }
}

function distinct(ids: Ids): string[] {
  return [...new Set(ids.filter((id) => typeof id === 'string'))]
}

async function deviceNames(db: Db, tenant: string, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('device')
    .select(['device_id', 'name', 'gate_id'])
    .where('tenant', '=', tenant)
    .where('device_id', 'in', ids)
    .execute()
  return new Map(rows.flatMap(({ device_id, name, gate_id }) => named(device_id, name ?? gate_id)))
}

async function staffNames(db: Db, tenant: string, ids: readonly string[]): Promise<Map<string, string>> {
  if (ids.length === 0) return new Map()
  const operators = await db
    .selectFrom('operator')
    .select(['operator_id', 'name'])
    .where('tenant', '=', tenant)
    .where('operator_id', 'in', ids)
    .execute()
  const users = await db
    .selectFrom('console_user')
    .select(['user_id', 'name', 'email'])
    .where('account_id', '=', tenant.split('.')[0] ?? '')
    .where('user_id', 'in', ids)
    .execute()
  return new Map([
    ...operators.map(({ operator_id, name }) => [operator_id, name] as const),
    ...users.map(({ user_id, name, email }) => [user_id, name || email] as const),
  ])
}

function named(id: string, name: string | null): [string, string][] {
  return name === null ? [] : [[id, name]]
}
