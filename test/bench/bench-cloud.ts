import type { Platform } from '../../policy/platform.ts'
import { ensureAccount } from '../../cloud/sales/registrations/registrations.ts'
import { createApiKey } from '../../cloud/platform/accounts/api-keys.ts'
import { tenantOf, type Tenant } from '../../cloud/platform/foundation/caller.ts'
import type { Database } from '../../cloud/platform/persistence/database.ts'
import { startCloud, type RunningCloud } from '../../bin/commands/cloud.ts'
import { newLog } from '../../host/log.ts'
import { readOptions } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import { CLOUD_OPTIONS } from '../../host/settings/cloud.ts'

/**
 * Starts a cloud like `untag cloud`, but without a rate limit. The cloud uses SQLite in the folder `data`, or the
 * PostgreSQL database.
 */
export async function openBenchCloud(
  data: string,
  databaseUrl?: string,
): Promise<{ running: RunningCloud; platform: Platform }> {
  const platform = realPlatform()
  const settings = {
    ...readOptions(CLOUD_OPTIONS, [], {}),
    data,
    databaseUrl,
    port: 0,
    mqttPort: 0,
    rateLimit: 0,
    allowPrivateTargets: true,
  }
  return { running: await startCloud(settings, platform, newLog('bench', 'error')), platform }
}

/** Creates an account with a sandbox, and a secret key for the sandbox. */
export async function benchAccount(
  database: Database,
  platform: Platform,
  name = 'bench',
): Promise<{ tenant: Tenant; key: string }> {
  return database.write(async (db) => {
    const { accountId } = await ensureAccount(db, name, 'PRIME', platform)
    const { key } = await createApiKey(db, { accountId, kind: 'secret', mode: 'test', name: 'bench' }, platform)
    return { key, tenant: tenantOf(accountId, 'test') }
  })
}
