import { createApiKey } from '../../cloud/platform/accounts/api-keys.ts'
import { ensureAccount } from '../../cloud/sales/registrations/registrations.ts'
import { noteChange } from '../../cloud/platform/accounts/audit-operations.ts'
import { findKey, listKeysOfAll, toKeyRecord, revokeKey, rollKey } from '../../cloud/platform/accounts/keys.ts'
import { tenantOf, type Mode } from '../../cloud/platform/foundation/caller.ts'
import type { Db } from '../../cloud/platform/persistence/database.ts'
import type { Row } from '../../cloud/platform/persistence/schema.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { makeFolder } from '../../host/replace-file.ts'
import { printResult, printTable } from '../../host/output.ts'
import { realPlatform } from '../../host/platform.ts'
import type {
  KEYS_CREATE_OPTIONS,
  KEYS_LIST_OPTIONS,
  KEYS_REVOKE_OPTIONS,
  KEYS_ROLL_OPTIONS,
} from '../../host/settings/cloud-data.ts'
import {
  accountNamed,
  assertNoCloudBelow,
  isKnownDatabase,
  withDatabase,
  withKnownDatabase,
  type DatabaseLocation,
} from '../../host/known-database.ts'
import { revokeSigningKey } from './signing-keys.ts'

/** Commands for API keys. They also work while the cloud runs; changes are valid at once. */

/** Actor in the audit log. */
const ACTOR = 'command line'

/** Creates an API key and prints it. The key cannot be shown again. Admin keys are live keys. */
export async function runKeysCreate(settings: Values<typeof KEYS_CREATE_OPTIONS>): Promise<void> {
  const { data, databaseUrl, account, kind, name } = settings
  if (account === undefined) throw new WrongUsage(['--account NAME is needed: the account that the key belongs to'])
  const mode = kind === 'admin' ? 'live' : settings.mode
  const isNew = !(await isKnownDatabase(settings))
  if (isNew) assertNoCloudBelow(settings)
  if (databaseUrl === undefined) makeFolder(data)
  const platform = realPlatform()
  const made = await withDatabase(settings, (database) =>
    database.write(async (db) => {
      const { accountId } = await ensureAccount(db, account, settings.package, platform)
      const created = await createApiKey(db, { accountId, kind, mode, name }, platform)
      await noteChange(
        db,
        { tenant: tenantOf(accountId, mode), actor: ACTOR, operation: 'createApiKey', entity_id: created.keyId },
        platform,
      )
      return { accountId, ...created }
    }),
  )
  const { key, keyId, accountId } = made
  if (isNew)
    process.stderr.write(
      `created a new database${databaseUrl === undefined ? ` in ${data}` : ''}: the key is valid for a cloud that uses this database\n`,
    )
  printResult(settings.json, { key, keyId, accountId, kind, mode }, [key])
}

/** Lists the keys of one account, or of all accounts. */
export async function runKeysList(settings: Values<typeof KEYS_LIST_OPTIONS>): Promise<void> {
  const nowMs = realPlatform().clock.wall()
  const { account } = settings
  const rows = await withKnownDatabase(settings, async ({ reads }) => {
    if (account !== undefined) await accountNamed(reads, account)
    return listKeysOfAll(reads, account)
  })
  const keys = rows.map((row) => ({ account: row.account, accountId: row.account_id, ...toKeyRecord(row, nowMs) }))
  printTable(
    settings.json,
    { keys },
    {
      head: ['ID', 'STATE', 'MODE', 'KIND', 'KEY', 'LAST USED', 'ACCOUNT: NAME'],
      rows: keys.map((k) => [
        k.keyId,
        k.status,
        k.mode,
        k.kind,
        k.shown,
        k.lastUsedAt ?? 'never used',
        `${k.account}: ${k.name}`,
      ]),
      empty: 'there are no keys: create one with untag keys create',
    },
  )
}

/** Replaces a key and prints the new key. The key cannot be shown again. */
export async function runKeysRoll(settings: Values<typeof KEYS_ROLL_OPTIONS>): Promise<void> {
  const platform = realPlatform()
  const made = await changeKey(settings, 'rollApiKey', (db, row, nowMs) =>
    rollKey(db, row, settings.overlapHours, nowMs, platform),
  )
  printResult(settings.json, made, [made.key])
}

/** Revokes an API key, or with --use a signing key. */
export async function runKeysRevoke(settings: Values<typeof KEYS_REVOKE_OPTIONS>): Promise<void> {
  if (settings.use !== 'none') return revokeSigningKey(settings)
  const record = await changeKey(settings, 'revokeApiKey', async (db, row, nowMs) =>
    toKeyRecord(await revokeKey(db, row, nowMs), nowMs),
  )
  printResult(settings.json, record, [`${record.keyId} is revoked`])
}

function changeKey<T>(
  settings: DatabaseLocation & { keyId: string | undefined },
  operation: string,
  change: (db: Db, row: Row<'api_key'>, nowMs: number) => Promise<T>,
): Promise<T> {
  const { keyId } = settings
  if (keyId === undefined) throw new WrongUsage(['--key-id ID is needed: untag keys list shows the ids'])
  const platform = realPlatform()
  return withKnownDatabase(settings, (database) =>
    database.write(async (db) => {
      const row = await findKey(db, keyId)
      if (!row) throw new Error(`there is no key ${keyId}: untag keys list shows all keys`)
      const changed = await change(db, row, platform.clock.wall())
      await noteChange(
        db,
        { tenant: tenantOf(row.account_id, row.mode as Mode), actor: ACTOR, operation, entity_id: keyId },
        platform,
      )
      return changed
    }),
  )
}
