import { PLATFORM_ACCOUNT } from '../foundation/caller.ts'
import type { Db } from '../persistence/database.ts'

/** Name of the account of the people who run the cloud. The sign-in page shows it to who also has another account. */
export const PLATFORM_NAME = 'untag platform'

/** Adds the account of the people who run the cloud, if it is missing. */
export async function ensurePlatformAccount(db: Db, nowMs: number): Promise<void> {
  await db
    .insertInto('account')
    .values({
      account_id: PLATFORM_ACCOUNT,
      name: PLATFORM_NAME,
      package: 'DISCOVER',
      status: 'active',
      created_ms: nowMs,
    })
    .onConflict((c) => c.column('account_id').doNothing())
    .execute()
}
