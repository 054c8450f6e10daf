import type { Db } from '../persistence/database.ts'

/** Names that people see instead of ids. */

/** Names of devices by id. A device without a name has the name of its gate. */
export async function deviceNamesOf(
  db: Db,
  tenant: string,
  deviceIds: readonly (string | null | undefined)[],
): Promise<Map<string, string>> {
  const ids = distinct(deviceIds)
  if (ids.length === 0) return new Map()
  const rows = await db
    .selectFrom('device')
    .select(['device_id', 'name', 'gate_id'])
    .where('tenant', '=', tenant)
    .where('device_id', 'in', ids)
    .execute()
  return new Map(
    rows.flatMap(({ device_id, name, gate_id }) => {
      const shown = name ?? gate_id
      return shown === null ? [] : [[device_id, shown] as const]
    }),
  )
}

/** Names of operators and users of the account, by id. */
export async function staffNamesOf(
  db: Db,
  tenant: string,
  staffIds: readonly (string | null | undefined)[],
): Promise<Map<string, string>> {
  const ids = distinct(staffIds)
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

function distinct(ids: readonly (string | null | undefined)[]): string[] {
  return [...new Set(ids.filter((id) => typeof id === 'string'))]
}
