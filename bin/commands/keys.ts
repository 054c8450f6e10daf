import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { createApiKey } from '../../cloud/accounts/api-keys.ts'
import { ensureAccount } from '../../cloud/accounts/accounts.ts'
import { openDatabase } from '../../cloud/persistence/open-database.ts'
import { WrongUsage, type Values } from '../options.ts'
import { realPlatform } from '../platform.ts'
import type { KEYS_CREATE_OPTIONS } from '../settings.ts'

/** Makes a key, beside a running cloud or before there is one; the key is shown once and counts at once. */
export async function runKeysCreate(settings: Values<typeof KEYS_CREATE_OPTIONS>): Promise<void> {
  const { data, databaseUrl, account, mode, kind, name } = settings
  if (account === undefined) throw new WrongUsage(['--account NAME is needed: the account that the key belongs to'])
  if (databaseUrl === undefined) mkdirSync(data, { recursive: true, mode: 0o700 })
  const platform = realPlatform()
  const database = await openDatabase(databaseUrl === undefined ? { file: join(data, 'cloud.db') } : { url: databaseUrl }, (failure) => {
    throw failure
  })
  try {
    const made = await database.write(async (db) => {
      const { accountId } = await ensureAccount(db, account, settings.package, platform)
      return { accountId, ...(await createApiKey(db, { accountId, kind, mode, name }, platform)) }
    })
    const { key, keyId, accountId } = made
    process.stdout.write(settings.json ? `${JSON.stringify({ key, keyId, accountId, kind, mode })}\n` : `${key}\n`)
  } finally {
    await database.close()
  }
}
