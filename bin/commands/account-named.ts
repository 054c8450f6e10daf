import { findAccountId } from '../../cloud/sales/registrations/accounts.ts'
import type { Db } from '../../cloud/platform/persistence/database.ts'

/** Finds the id of an account by its name. Throws if there is none. */
export async function accountNamed(db: Db, name: string): Promise<string> {
  const accountId = await findAccountId(db, name)
  if (accountId === undefined)
    throw new Error(`there is no account "${name}": untag keys list shows the accounts that have keys`)
  return accountId
}
