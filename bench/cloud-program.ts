import { ensureAccount } from '../cloud/accounts/accounts.ts'
import { createApiKey } from '../cloud/accounts/api-keys.ts'
import { startCloud } from '../bin/commands/cloud.ts'
import { newLog } from '../bin/log.ts'
import { readOptions } from '../bin/options.ts'
import { realPlatform } from '../bin/platform.ts'
import { CLOUD_OPTIONS } from '../bin/settings.ts'
import { answerBench } from './child.ts'
import { sellItems } from './sold-items.ts'

/** The cloud as `untag cloud` runs it, with its SQLite file, without a rate limit. */
export interface CloudQuestion {
  kind: 'prepare' | 'cpu'
  /** How many paid items. */
  items?: number
}

export interface PreparedCloud {
  port: number
  path: string
  authorization: string
  bodies: string[]
}

const data = process.argv[2]
if (data === undefined) throw new Error('the folder for the data is missing')
const platform = realPlatform()
const settings = { ...readOptions(CLOUD_OPTIONS, [], {}), data, port: 0, mqttPort: 0, rateLimit: 0 }
const running = await startCloud(settings, platform, newLog('bench', 'error'))

async function prepare(items: number): Promise<PreparedCloud> {
  const { database } = running
  const { key, tenant } = await database.write(async (db) => {
    const { accountId } = await ensureAccount(db, 'bench', 'PRIME', platform)
    const made = await createApiKey(db, { accountId, kind: 'secret', mode: 'test', name: 'bench' }, platform)
    return { key: made.key, tenant: `${accountId}.test` as const }
  })
  const { deviceId, epcs } = await sellItems(database, tenant, items, platform)
  const url = new URL(running.baseUrl)
  return {
    port: Number(url.port),
    path: `${url.pathname}/verifyProtectedItem`,
    authorization: `Bearer ${key}`,
    bodies: epcs.map((epc) => JSON.stringify({ deviceId, protectionAction: 'detach_hard_tag', epc })),
  }
}

answerBench((question) => {
  const { kind, items = 0 } = question as CloudQuestion
  return kind === 'cpu' ? Promise.resolve(process.cpuUsage()) : prepare(items)
}, running.stop)
