import { newId } from '../../../policy/ids.ts'
import type { Platform } from '../../../policy/platform.ts'
import { tenantOf, type Package } from '../../platform/foundation/caller.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { seedSandbox } from '../sandbox/seed.ts'

/** Finds the id of an account by name. */
export async function findAccountId(db: Db, name: string): Promise<string | undefined> {
  const known = await db.selectFrom('account').select('account_id').where('name', '=', name).executeTakeFirst()
  return known?.account_id
}

/** Finds or creates an account with its sandbox. An existing account keeps its package. */
export async function ensureAccount(
  db: Db,
  name: string,
  wanted: Package,
  platform: Platform,
): Promise<{ accountId: string; isNew: boolean }> {
  const known = await findAccountId(db, name)
  if (known !== undefined) return { accountId: known, isNew: false }
  return { accountId: await addAccount(db, name, wanted, platform), isNew: true }
}

/** Always creates a new account with its sandbox. If the name exists, an id is added to the name. */
export async function makeAccount(db: Db, companyName: string, wanted: Package, platform: Platform): Promise<string> {
  const namesake = await findAccountId(db, companyName)
  return addAccount(
    db,
    namesake !== undefined ? `${companyName} (${newId('no', platform)})` : companyName,
    wanted,
    platform,
  )
}

async function addAccount(db: Db, name: string, wanted: Package, platform: Platform): Promise<string> {
  const accountId = newId('acc', platform)
  await db
    .insertInto('account')
    .values({ account_id: accountId, name, package: wanted, status: 'active', created_ms: platform.clock.wall() })
    .execute()
  await seedSandbox(db, tenantOf(accountId, 'test'), platform)
  return accountId
}
