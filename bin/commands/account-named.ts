import { findAccountId } from '../../cloud/registrations/accounts.ts'
import type { Db } from '../../cloud/persistence/database.ts'

/** The id of the account of this name; throws with a word for people when there is none. */
export async function accountNamed(db: Db, name: string): Promise<string> {
  const accountId = await findAccountId(db, name)
  if (accountId === undefined)
    throw new Error(`there is no account "${name}": untag keys list shows those that have keys`)
  return accountId
}
