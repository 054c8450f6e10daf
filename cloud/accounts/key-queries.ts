import type { Mode } from '../foundation/caller.ts'
import type { Db } from '../persistence/database.ts'
import type { ApiKeyRow } from '../persistence/tables/accounts.ts'

/** The key with this id, of any account. */
export function findKey(db: Db, keyId: string): Promise<ApiKeyRow | undefined> {
  return db.selectFrom('api_key').selectAll().where('key_id', '=', keyId).executeTakeFirst()
}

/** The keys of one side of an account in the order they were made in; of both without a mode. Their number is limited where they are made. */
export function listKeys(db: Db, accountId: string, mode?: Mode): Promise<ApiKeyRow[]> {
  let query = db.selectFrom('api_key').selectAll().where('account_id', '=', accountId)
  if (mode !== undefined) query = query.where('mode', '=', mode)
  return query.orderBy('key_id').execute()
}

/** How many keys one side of an account has. */
export async function countKeys(db: Db, accountId: string, mode: Mode): Promise<number> {
  const { count } = await db
    .selectFrom('api_key')
    .select((eb) => eb.fn.countAll().as('count'))
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Forgets keys that have ended; the audit log still knows them. */
export async function deleteEndedKeys(db: Db, accountId: string, mode: Mode, nowMs: number): Promise<void> {
  await db
    .deleteFrom('api_key')
    .where('account_id', '=', accountId)
    .where('mode', '=', mode)
    .where((eb) => eb.or([eb('revoked_ms', '<=', nowMs), eb('expires_ms', '<=', nowMs)]))
    .execute()
}

/** Sets columns of a key. */
export async function updateKey(db: Db, keyId: string, set: Partial<ApiKeyRow>): Promise<void> {
  await db.updateTable('api_key').set(set).where('key_id', '=', keyId).execute()
}

/** Keys listed for an operator at most. */
const LISTED_LIMIT = 100_000

/** The keys of the account of this name, or of every account, with its name. */
export function listKeysOfAll(db: Db, accountName: string | undefined): Promise<(ApiKeyRow & { account: string })[]> {
  let query = db
    .selectFrom('api_key')
    .innerJoin('account', 'account.account_id', 'api_key.account_id')
    .selectAll('api_key')
    .select('account.name as account')
  if (accountName !== undefined) query = query.where('account.name', '=', accountName)
  return query.orderBy('key_id').limit(LISTED_LIMIT).execute()
}
