import { isRoleAtLeast, type Mode } from '../foundation/caller.ts'
import { findKeyCallerById } from '../accounts/api-keys.ts'
import type { Db } from '../persistence/database.ts'
import type { Row } from '../persistence/schema.ts'
import { coversStores, findUser, roleOf, storesOf } from './user-queries.ts'

/**
 * True if the key or user that made a code for a store may still manage this store. A code ends with the right of its
 * maker, like an invitation.
 */
export async function mayStillManage(
  db: Db,
  makerId: string,
  { tenant, store_id: storeId }: Pick<Row<'store'>, 'tenant' | 'store_id'>,
  nowMs: number,
): Promise<boolean> {
  const [accountId, mode] = tenant.split('.') as [string, Mode]
  if (makerId.startsWith('usr_')) {
    const user = await findUser(db, makerId)
    return (
      user?.account_id === accountId &&
      isRoleAtLeast(roleOf(user), 'manager') &&
      (mode === 'test' || user.sandbox_only === 0) &&
      coversStores(storesOf(user), [storeId])
    )
  }
  // The command line has all rights.
  if (!makerId.startsWith('key_')) return true
  const key = await findKeyCallerById(db, makerId, nowMs)
  return key?.kind === 'secret' && key.tenant === tenant && coversStores(key.storeIds, [storeId])
}
