import type { Mode } from '../foundation/caller.ts'
import type { Db } from '../persistence/database.ts'
import type { ApiKeyRow } from '../persistence/tables/accounts.ts'

/** The key with this id, of any account. */
export function findKey(db: Db, keyId: string): Promise<ApiKeyRow | undefined> {
  return db.selectFrom('api_key').selectAll().where('key_id', '=', keyId).executeTakeFirst()
}

/** Keys of an account in one mode, or in both modes, oldest first. `addKey` limits their number. */
export function listKeys(db: Db, accountId: string, mode?: Mode): Promise<ApiKeyRow[]> {
  let query = db.selectFrom('api_key').selectAll().where('account_id', '=', accountId)
  if (mode !== undefined) query = query.where('mode', '=', mode)
  return query.orderBy('key_id').execute()
}

/** Number of keys of an account in one mode. */
export async function countKeys(db: Db, accountId: string, mode: Mode): Promise<number> {
  const { count } = await db
    .selectFrom('api_key')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Deletes expired and revoked keys. The audit log keeps their entries. */
export async function deleteEndedKeys(db: Db, accountId: string, mode: Mode, nowMs: number): Promise<void> {
  await db
    .deleteFrom('api_key')
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .where((eb) => eb.or([eb('revoked_ms', 'is not', null), eb('expires_ms', '<=', nowMs)]))
    .execute()
}

/** Sets columns of a key. */
export async function updateKey(db: Db, keyId: string, set: Partial<ApiKeyRow>): Promise<void> {
  await db.updateTable('api_key').set(set).where('key_id', '=', keyId).execute()
}

/** Maximum number of keys that the command line lists. */
const LISTED_LIMIT = 100_000

/** Keys of one account, or of all accounts, with the name of the account. */
export function listKeysOfAll(db: Db, accountName: string | undefined): Promise<(ApiKeyRow & { account: string })[]> {
  let query = db
    .selectFrom('api_key')
    .innerJoin('account', 'account.account_id', 'api_key.account_id')
    .selectAll('api_key')
    .select('account.name as account')
  if (accountName !== undefined) query = query.where('account.name', '=', accountName)
  return query.orderBy('key_id').limit(LISTED_LIMIT).execute()
}
