import { generateKeyPairSync } from 'node:crypto'
import type { AddressInfo, Server } from 'node:net'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { openDatabase } from '../../../cloud/platform/persistence/open-database.ts'
import { realPlatform } from '../../../host/platform.ts'
import { answerBench } from '../child.ts'
import { askPool, barePool, hashOf, Refused, type BareCall, type BareCaller } from './bare-context.ts'
import { fetchProducts, insertProduct } from './bare-products.ts'
import { checkIn, completeTestCheckout, startCheckout } from './bare-purchase.ts'
import { verifyProtectedItem } from './bare-verify.ts'
import type { StatementCounts } from './count-statements.ts'
import { prepareShops, type PreparedShops, type ShopsWanted } from './prepare-shops.ts'
import { CALLER, OWN_TABLES } from './statements.ts'

/**
 * The operations of the figure `postgres` as routes with the fewest statements (statements.ts), on the tables of the
 * cloud. The routes have no validation and no rate limits. They support only the cases of the figure: a fresh grant, a
 * new product, a basket of one product.
 */
export interface BareQuestion {
  kind: 'shops' | 'cpu' | 'statements'
  shops?: ShopsWanted
}

const [, url = ''] = process.argv.slice(2)
const platform = realPlatform()
const pool = barePool(url)
const counts: StatementCounts = { statements: 0, roundTrips: 0, transactions: 0, conflicts: 0 }
const { privateKey } = generateKeyPairSync('ed25519')
const askOne = askPool(pool)
const ask: BareCall['ask'] = (statement, values) => {
  counts.statements++
  counts.roundTrips++
  return askOne(statement, values)
}

type Route = (call: BareCall, body: never) => Promise<string>
const ROUTES: Readonly<Record<string, Route>> = {
  fetchProducts,
  insertProduct,
  verifyProtectedItem,
  checkIn,
  startCheckout,
  completeTestCheckout,
}

const app = new Hono()
for (const [name, route] of Object.entries(ROUTES)) {
  app.post(`/${name}`, async (c) => {
    const nowMs = platform.clock.wall()
    const key = c.req.header('authorization')?.slice('Bearer '.length) ?? ''
    const [caller] = await ask<BareCaller>(CALLER, [hashOf(key), nowMs])
    if (!caller) return c.json({ error: 'unknown key' }, 401)
    const body = await route({ caller, nowMs, platform, key: privateKey, ask }, (await c.req.json()) as never)
    return c.body(body, 200, { 'content-type': 'application/json' })
  })
}
app.onError((error, c) => c.json({ error: error.message }, error instanceof Refused ? 409 : 500))
const server = createAdaptorServer({ fetch: app.fetch }) as Server
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

async function prepare(wanted: ShopsWanted): Promise<PreparedShops> {
  const fail = (error: Error) => {
    throw error
  }
  const database = await openDatabase({ url, clock: platform.clock, timers: platform.timers }, fail)
  const shops = await prepareShops(database, wanted, platform)
  await database.close()
  await pool.query(OWN_TABLES)
  return { port: (server.address() as AddressInfo).port, base: '', shops }
}

answerBench(
  (question) => {
    const { kind, shops } = question as BareQuestion
    if (shops) return prepare(shops)
    return Promise.resolve(kind === 'cpu' ? process.cpuUsage() : { ...counts })
  },
  () => pool.end(),
)
