import { tenantOf, isAtLeast, PACKAGES, type Package } from '../../platform/foundation/caller.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { packagesOf } from '../../platform/stores/queries.ts'

/** Package of an account. The account must exist. */
export async function packageOfAccount(db: Db, accountId: string): Promise<Package> {
  const { package: have } = await db
    .selectFrom('account')
    .select('package')
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow()
  return have as Package
}

/** Raises the package of an account to the package of its new live store. Demo stores do not change the package. */
export async function raiseAccountPackage(db: Db, accountId: string, to: Package): Promise<void> {
  if (!isAtLeast(await packageOfAccount(db, accountId), to))
    await db.updateTable('account').set({ package: to }).where('account_id', '=', accountId).execute()
}

/**
 * If the package of the account is `from`, sets it to the highest package of the account's live stores. Call it after
 * the package of one of these stores was lowered from `from`.
 */
export async function lowerAccountPackage(db: Db, accountId: string, from: Package): Promise<void> {
  const stores = await packagesOf(db, tenantOf(accountId, 'live'))
  const highest = PACKAGES.findLast((name) => stores.includes(name)) ?? 'DISCOVER'
  await db
    .updateTable('account')
    .set({ package: highest })
    .where('account_id', '=', accountId)
    .where('package', '=', from)
    .execute()
}
