import { noteChange } from '../../cloud/platform/accounts/audit-operations.ts'
import { ensurePlatformAccount } from '../../cloud/platform/accounts/platform-account.ts'
import { PLATFORM_ACCOUNT, PLATFORM_ROLE, tenantOf } from '../../cloud/platform/foundation/caller.ts'
import type { Db } from '../../cloud/platform/persistence/database.ts'
import { iso } from '../../cloud/platform/operations/fields.ts'
import { consoleUrlAt, invitationUrl, readConsoleUrl } from '../../cloud/platform/users/console-address.ts'
import { assertRoleFits, assertStoresOf, invite } from '../../cloud/platform/users/invitations.ts'
import { Email, toUserRecord } from '../../cloud/platform/users/schema.ts'
import { deleteUser, findUserOfAccount, listUsers } from '../../cloud/platform/users/user-queries.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { printResult, printTable } from '../../host/output.ts'
import { realPlatform } from '../../host/platform.ts'
import type {
  ADMINS_INVITE_OPTIONS,
  ADMINS_LIST_OPTIONS,
  ADMINS_REMOVE_OPTIONS,
  USERS_INVITE_OPTIONS,
  USERS_LIST_OPTIONS,
  USERS_REMOVE_OPTIONS,
} from '../../host/settings/cloud-data.ts'
import { accountNamed, withKnownDatabase, type DatabaseLocation } from '../../host/known-database.ts'

/** Commands for people who use the console: users of accounts, and the people who run the cloud. They also work while the cloud runs; changes are valid at once. */

/** Actor in the audit log. */
const ACTOR = 'command line'

function accountOf({ account }: { account: string | undefined }): string {
  if (account === undefined) throw new WrongUsage(['--account NAME is needed: the account of the user'])
  return account
}

function emailOf({ email }: { email: string | undefined }): string {
  const parsed = Email.safeParse(email)
  if (email === undefined) throw new WrongUsage(['--email ADDRESS is needed: the e-mail address of the person'])
  if (!parsed.success)
    throw new WrongUsage([`--email: "${email}" is not an e-mail address: write one such as name@shop.example`])
  return parsed.data
}

/** A person on the command line, and where the cloud's data is. */
type Person = DatabaseLocation & { readonly email: string | undefined; readonly json: boolean }
type NewPerson = Pick<Parameters<typeof invite>[1], 'accountId' | 'role' | 'storeIds'>

/**
 * Invites a person and prints the link. For a user who has accepted before, the link sets a new password and removes
 * the second factors.
 */
async function inviteAs(
  settings: Person & { readonly publicUrl: string | undefined },
  wantedOf: (db: Db) => Promise<NewPerson>,
): Promise<void> {
  const { publicUrl, json } = settings
  const email = emailOf(settings)
  const platform = realPlatform()
  const made = await withKnownDatabase(settings, (database) =>
    database.write(async (db) => {
      const consoleUrl = publicUrl === undefined ? await readConsoleUrl(db) : consoleUrlAt(publicUrl)
      if (consoleUrl === undefined)
        throw new Error('no cloud has used this database, so its address is unknown: pass --public-url URL')
      const wanted = await wantedOf(db)
      const { token, userId, expiresMs } = await invite(
        db,
        { ...wanted, email, name: '', sandboxOnly: false, invitedBy: ACTOR, mayReplace: true },
        platform,
      )
      await noteChange(
        db,
        { tenant: tenantOf(wanted.accountId, 'live'), actor: ACTOR, operation: 'inviteUser', entity_id: userId },
        platform,
      )
      return { url: invitationUrl(consoleUrl, token), userId, expiresAt: iso(expiresMs) }
    }),
  )
  printResult(json, made, [made.url])
}

/** Removes a user and ends all sessions. `command` lists the users of the account. */
async function removeFrom(settings: Person, command: string, accountIn: (db: Db) => Promise<string>): Promise<void> {
  const email = emailOf(settings)
  const platform = realPlatform()
  const userId = await withKnownDatabase(settings, (database) =>
    database.write(async (db) => {
      const accountId = await accountIn(db)
      const user = await findUserOfAccount(db, accountId, email)
      if (!user) throw new Error(`there is no user ${email}: ${command} shows all users`)
      await deleteUser(db, user.user_id)
      await noteChange(
        db,
        { tenant: tenantOf(accountId, 'live'), actor: ACTOR, operation: 'removeUser', entity_id: user.user_id },
        platform,
      )
      return user.user_id
    }),
  )
  printResult(settings.json, { userId, email }, [`${email} is removed`])
}

/** Invites a user of an account. */
export async function runUsersInvite(settings: Values<typeof USERS_INVITE_OPTIONS>): Promise<void> {
  const { role, store } = settings
  const account = accountOf(settings)
  const storeIds = store === undefined ? null : store.split(',').map((id) => id.trim())
  await inviteAs(settings, async (db) => {
    const accountId = await accountNamed(db, account)
    assertRoleFits(role, storeIds)
    await assertStoresOf(db, accountId, storeIds ?? [])
    return { accountId, role, storeIds }
  })
}

/** Lists the users of an account. */
export async function runUsersList(settings: Values<typeof USERS_LIST_OPTIONS>): Promise<void> {
  const account = accountOf(settings)
  const users = await withKnownDatabase(settings, async ({ reads }) =>
    (await listUsers(reads, await accountNamed(reads, account))).map(toUserRecord),
  )
  printTable(
    settings.json,
    { users },
    {
      head: ['ID', 'ROLE', 'STATE', 'EMAIL', 'STORES'],
      rows: users.map((user) => [
        user.userId,
        user.role,
        user.status,
        user.email,
        user.storeIds?.join(',') ?? 'all stores',
      ]),
      empty: 'there are no users: invite one with untag users invite',
    },
  )
}

/** Removes a user. Also removes the last owner, because `untag users invite` can make a new one. */
export async function runUsersRemove(settings: Values<typeof USERS_REMOVE_OPTIONS>): Promise<void> {
  const account = accountOf(settings)
  await removeFrom(settings, 'untag users list', (db) => accountNamed(db, account))
}

/** Invites a person who runs the cloud. */
export async function runAdminsInvite(settings: Values<typeof ADMINS_INVITE_OPTIONS>): Promise<void> {
  await inviteAs(settings, async (db) => {
    await ensurePlatformAccount(db, realPlatform().clock.wall())
    return { accountId: PLATFORM_ACCOUNT, role: PLATFORM_ROLE, storeIds: null }
  })
}

/** Lists the people who run the cloud. */
export async function runAdminsList(settings: Values<typeof ADMINS_LIST_OPTIONS>): Promise<void> {
  const rows = await withKnownDatabase(settings, ({ reads }) => listUsers(reads, PLATFORM_ACCOUNT))
  const admins = rows.map(toUserRecord)
  printTable(
    settings.json,
    { admins },
    {
      head: ['ID', 'STATE', 'LAST SIGN-IN', 'EMAIL'],
      rows: admins.map((admin) => [admin.userId, admin.status, admin.lastSignInAt ?? 'never', admin.email]),
      empty: 'there are no administrators: invite one with untag admins invite',
    },
  )
}

/** Removes a person who runs the cloud. */
export async function runAdminsRemove(settings: Values<typeof ADMINS_REMOVE_OPTIONS>): Promise<void> {
  await removeFrom(settings, 'untag admins list', () => Promise.resolve(PLATFORM_ACCOUNT))
}
