import { hashPassword } from '../../../../cloud/platform/users/passwords.ts'
import { startSession } from '../../../../cloud/platform/users/sessions.ts'
import type { Row } from '../../../../cloud/platform/persistence/schema.ts'
import { newId } from '../../../../policy/ids.ts'
import type { ServedCloud } from './served-cloud.ts'

/** Password of every user at the start. */
export const PASSWORD = 'four words nobody guesses'

/**
 * Row of an owner of the account who uses sandbox data only, so that all data of the sessions belongs to one party. The
 * caller stores it.
 */
export async function newOwner(
  { platform }: ServedCloud,
  { accountId, canary }: { accountId: string; canary: string },
): Promise<Row<'console_user'>> {
  const nowMs = platform.clock.wall()
  return {
    user_id: newId('usr', platform),
    account_id: accountId,
    email: `owner@${canary.toLowerCase()}.example`,
    name: `Frau ${canary}`,
    role: 'owner',
    store_ids: null,
    sandbox_only: 1,
    mode: 'test',
    password_hash: await hashPassword('', PASSWORD, platform.random),
    invited_by: 'command line',
    created_ms: nowMs,
    accepted_ms: nowMs,
    last_sign_in_ms: null,
    invitation_hash: null,
    invitation_expires_ms: null,
    totp_secret: null,
    totp_step: 0,
    recovery_codes: '[]',
  }
}

/**
 * Starts a session of the owner and returns its token. First restores the owner's row, because an earlier request may
 * have changed the password or removed the owner.
 */
export function signInOwner({ database, platform }: ServedCloud, owner: Row<'console_user'>): Promise<string> {
  return database.write(async (db) => {
    const insert = db.insertInto('console_user').values(owner)
    await insert.onConflict((c) => c.column('user_id').doUpdateSet(owner)).execute()
    const session = { state: 'active' as const, hasSecondFactor: false, userAgent: 'fuzzer' }
    return (await startSession(db, owner, session, platform)).sessionToken
  })
}
