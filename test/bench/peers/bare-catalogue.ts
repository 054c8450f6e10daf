import { createHash, randomBytes } from 'node:crypto'
import type { AddressInfo, Server } from 'node:net'
import { join } from 'node:path'
import { createAdaptorServer } from '@hono/node-server'
import Sqlite from 'better-sqlite3'
import { Hono, type Context } from 'hono'
import { answerBench } from '../child.ts'
import { memoryOf } from '../memory-of.ts'
import { INSERT, rowOf, TABLES, toAnswer, type BareProduct, type BareRow } from './bare-products.ts'

/**
 * Minimal catalogue routes: one look-up of the API key, one query, and a JSON response with the same bytes as the
 * cloud. The routes have no validation, tenants, store prices, search, counts, limits, audit, idempotency or events.
 */
export interface BareCatalogueQuestion {
  kind: 'prepare' | 'cpu' | 'memory'
  /** The products in the form that the cloud returns. */
  products?: readonly BareProduct[]
}

const [folder = '', commits = 'single'] = process.argv.slice(2)
const db = new Sqlite(join(folder, `bare-catalogue-${commits}.db`))
db.pragma('journal_mode = WAL')
db.pragma('synchronous = FULL')
db.exec(TABLES)
const hashOf = (key: string) => createHash('sha256').update(key).digest('base64url')
const key = randomBytes(32).toString('base64url')
const addKey = db.prepare('INSERT INTO api_key (hash, account) VALUES (?, ?)')
addKey.run(hashOf(key), 'bench')
for (let i = 0; i < 1_000; i++) addKey.run(hashOf(String(i)), `account ${i}`)

const byHash = db.prepare<[string], { account: string }>('SELECT account FROM api_key WHERE hash = ?')
const page = db.prepare<[number], BareRow>('SELECT * FROM product ORDER BY product_id LIMIT ?')
const documents = db.prepare<[number], { product_id: string; doc: string }>(
  'SELECT product_id, doc FROM product_doc ORDER BY product_id LIMIT ?',
)
const byEan = db.prepare<[string], BareRow>('SELECT * FROM product WHERE ean = ?')
const byId = db.prepare<[string], BareRow>('SELECT * FROM product WHERE product_id = ?')
const insert = db.prepare<[BareRow]>(INSERT)
const insertDocument = db.prepare('INSERT INTO product_doc (product_id, doc) VALUES (?, ?)')
let total = 0

function fill(products: readonly BareProduct[]): void {
  db.transaction(() => {
    for (const product of products) {
      insert.run(rowOf(product))
      insertDocument.run(product.productId, JSON.stringify(product))
    }
  })()
  total = products.length
}

/** Rows that are inserted in the same turn of the event loop share a commit. Their responses wait for that commit. */
let waiting: { row: BareRow; done: () => void }[] = []
const commit = db.transaction((rows: { row: BareRow }[]) => {
  for (const { row } of rows) insert.run(row)
})
function insertTogether(row: BareRow): Promise<void> {
  return new Promise((done) => {
    waiting.push({ row, done })
    if (waiting.length > 1) return
    setImmediate(() => {
      const group = waiting
      waiting = []
      commit.immediate(group)
      for (const each of group) each.done()
    })
  })
}

const isKnown = (c: Context) =>
  byHash.get(hashOf(c.req.header('authorization')?.slice('Bearer '.length) ?? '')) !== undefined

const app = new Hono()
app.use(async (c, next) => (isKnown(c) ? next() : c.json({ error: 'unknown key' }, 401)))
app.post('/page', async (c) => {
  const { limit } = await c.req.json<{ limit: number }>()
  const products = page.all(limit).map(toAnswer)
  return c.json({ success: true, products, total, nextCursor: products.at(-1)?.productId })
})
app.post('/page-of-documents', async (c) => {
  const { limit } = await c.req.json<{ limit: number }>()
  const rows = documents.all(limit)
  const list = rows.map(({ doc }) => doc).join(',')
  const body = `{"success":true,"products":[${list}],"total":${total},"nextCursor":"${rows.at(-1)?.product_id}"}`
  return c.body(body, 200, { 'content-type': 'application/json' })
})
app.post('/product', async (c) => {
  const { barcode } = await c.req.json<{ barcode: string }>()
  const row = byEan.get(barcode)
  return row ? c.json({ success: true, ...toAnswer(row) }) : c.json({ error: 'unknown product' }, 404)
})
app.post('/insert', async (c) => {
  const stated = await c.req.json<BareProduct>()
  const at = new Date().toISOString()
  const productId = `prd_${randomBytes(13).toString('hex').toUpperCase()}`
  const row = rowOf({ ...stated, productId, createdAt: at, updatedAt: at })
  if (commits === 'grouped') await insertTogether(row)
  else insert.run(row)
  const made = byId.get(productId)
  return made ? c.json({ success: true, ...toAnswer(made) }) : c.json({ error: 'not there' }, 500)
})

const server = createAdaptorServer({ fetch: app.fetch }) as Server
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

answerBench((question) => {
  const { kind, products = [] } = question as BareCatalogueQuestion
  if (kind === 'cpu') return Promise.resolve(process.cpuUsage())
  if (kind === 'memory') return Promise.resolve(memoryOf())
  fill(products)
  return Promise.resolve({ port: (server.address() as AddressInfo).port, authorization: `Bearer ${key}` })
})
