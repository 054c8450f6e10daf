import { openBenchCloud, benchAccount } from './bench-cloud.ts'
import { addStore, fillStore } from './catalogue/fill-store.ts'
import type { Tenant } from '../../cloud/platform/foundation/caller.ts'
import { answerBench } from './child.ts'
import { memoryOf } from './memory-of.ts'
import { prepareShops, type PreparedShops, type ShopsWanted } from './postgres/prepare-shops.ts'
import { sellItems } from './sold-items.ts'

/** Requests to the program that runs a cloud without a rate limit, with SQLite or PostgreSQL. */
export interface CloudQuestion {
  kind: 'prepare' | 'catalogue' | 'account' | 'accounts' | 'shops' | 'cpu' | 'memory' | 'statements'
  /** Number of paid items to create. */
  items?: number
  /** Number of products to create in the store. */
  products?: number
  /** Number of accounts to create, each with an empty store. */
  accounts?: number
  shops?: ShopsWanted
}

export interface PreparedCloud {
  port: number
  path: string
  authorization: string
  bodies: string[]
}

/** Address, key and store of a cloud with the requested number of products. */
export interface PreparedCatalogue {
  port: number
  /** Path before the name of an operation. */
  base: string
  authorization: string
  storeId: string
}

/** Address of the cloud, and an API key. */
export type PreparedAccount = Omit<PreparedCatalogue, 'storeId'>

/** Address of a cloud, with the keys and stores of its accounts. */
export interface PreparedAccounts {
  port: number
  base: string
  shops: { authorization: string; storeId: string }[]
}

const [data, databaseUrl] = process.argv.slice(2)
if (data === undefined) throw new Error('the folder for the data is missing')
// Imported only for PostgreSQL, because a figure measures the memory of a cloud with SQLite.
const counts =
  databaseUrl === undefined ? undefined : (await import('./postgres/count-statements.ts')).countStatements()
const { running, platform } = await openBenchCloud(data, databaseUrl)

async function prepare(items: number): Promise<PreparedCloud> {
  const { tenant, key } = await benchAccount(running.database, platform)
  const { deviceId, epcs } = await sellItems(running.database, tenant, items, platform)
  const url = new URL(running.baseUrl)
  return {
    port: Number(url.port),
    path: `${url.pathname}/verifyProtectedItem`,
    authorization: `Bearer ${key}`,
    bodies: epcs.map((epc) => JSON.stringify({ deviceId, protectionAction: 'detach_hard_tag', epc })),
  }
}

async function prepareCatalogue(products: number): Promise<PreparedCatalogue> {
  const { database, baseUrl } = running
  const { tenant, key } = await benchAccount(database, platform)
  const storeId = await addStore(database, tenant, platform)
  await fillStore(database, { tenant, storeId, from: 0, to: products }, platform)
  const { port, pathname } = new URL(baseUrl)
  return { port: Number(port), base: pathname, authorization: `Bearer ${key}`, storeId }
}

async function prepareAccount(name?: string): Promise<PreparedAccount & { tenant: Tenant }> {
  const { tenant, key } = await benchAccount(running.database, platform, name)
  const { port, pathname } = new URL(running.baseUrl)
  return { port: Number(port), base: pathname, authorization: `Bearer ${key}`, tenant }
}

async function prepareAccounts(count: number): Promise<PreparedAccounts> {
  const shops = []
  const { port, pathname } = new URL(running.baseUrl)
  for (let i = 0; i < count; i++) {
    const { authorization, tenant } = await prepareAccount(`bench ${i}`)
    shops.push({ authorization, storeId: await addStore(running.database, tenant, platform) })
  }
  return { port: Number(port), base: pathname, shops }
}

async function prepareAll(wanted: ShopsWanted): Promise<PreparedShops> {
  const { port, pathname } = new URL(running.baseUrl)
  return { port: Number(port), base: pathname, shops: await prepareShops(running.database, wanted, platform) }
}

answerBench((question) => {
  const { kind, items = 0, products = 0, accounts = 0, shops } = question as CloudQuestion
  if (kind === 'cpu') return Promise.resolve(process.cpuUsage())
  if (kind === 'memory') return Promise.resolve(memoryOf())
  if (kind === 'statements') return Promise.resolve(counts)
  if (shops) return prepareAll(shops)
  if (kind === 'account') return prepareAccount()
  if (kind === 'accounts') return prepareAccounts(accounts)
  return kind === 'catalogue' ? prepareCatalogue(products) : prepare(items)
}, running.stop)
