import { ensureAccount } from '../cloud/accounts/accounts.ts'
import { createApiKey } from '../cloud/accounts/api-keys.ts'
import { upsertProducts } from '../cloud/catalogue/upsert-products.ts'
import { startCloud } from '../bin/commands/cloud.ts'
import { newLog } from '../bin/log.ts'
import { readOptions } from '../bin/options.ts'
import { realPlatform } from '../bin/platform.ts'
import { CLOUD_OPTIONS } from '../bin/settings.ts'
import { answerBench } from './child.ts'
import { sellItems } from './sold-items.ts'

/** The cloud as `untag cloud` runs it, with its SQLite file, without a rate limit. */
export interface CloudQuestion {
  kind: 'prepare' | 'catalogue' | 'cpu'
  /** How many paid items. */
  items?: number
  /** How many products in one store. */
  products?: number
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

/** A store with this many products, and the request for a page of them. */
async function prepareCatalogue(products: number): Promise<PreparedCloud> {
  const { database } = running
  const { key, store } = await database.write(async (db) => {
    const { accountId } = await ensureAccount(db, 'bench', 'PRIME', platform)
    const made = await createApiKey(db, { accountId, kind: 'secret', mode: 'test', name: 'bench' }, platform)
    const stores = db.selectFrom('store').selectAll().where('tenant', '=', `${accountId}.test`)
    return { key: made.key, store: await stores.orderBy('store_id').executeTakeFirstOrThrow() }
  })
  for (let at = 0; at < products; at += 500) {
    const upserts = Array.from({ length: Math.min(500, products - at) }, (_, i) => ({ product: productOf(at + i) }))
    await database.write((db) => upsertProducts({ db, nowMs: platform.clock.wall(), services: { platform } }, store, upserts))
  }
  const url = new URL(running.baseUrl)
  const bodies = [JSON.stringify({ storeId: store.store_id, limit: 50 })]
  return { port: Number(url.port), path: `${url.pathname}/fetchProducts`, authorization: `Bearer ${key}`, bodies }
}

function productOf(n: number) {
  const name = `Vollkornbrot mit Sonnenblumenkernen ${n}`
  const details = { brand: 'Lindwerk', category: 'lebensmittel', unit: 'Stück', description: 'Aus dem Steinofen, 500 g.' }
  return { ean: String(4_000_000_000_000 + n), name, price: n / 100, vat: 7 as const, ...details }
}

answerBench((question) => {
  const { kind, items = 0, products = 0 } = question as CloudQuestion
  if (kind === 'cpu') return Promise.resolve(process.cpuUsage())
  return kind === 'catalogue' ? prepareCatalogue(products) : prepare(items)
}, running.stop)
