import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { createAdaptorServer } from '@hono/node-server'
import Sqlite from 'better-sqlite3'
import { Hono } from 'hono'
import type { AddressInfo, Server } from 'node:net'
import { answerBench } from '../child.ts'

/**
 * The least that a page of products can cost where rows are made JSON: one look-up of the key, one query of 50 rows, one
 * answer. No validation, no tenant, no store, no total, no rate limit.
 */
export interface BarePageQuestion {
  kind: 'prepare' | 'cpu'
  /** How many products there are. */
  products?: number
}

const [folder = ''] = process.argv.slice(2)
const db = new Sqlite(join(folder, 'bare-page.db'))
db.pragma('journal_mode = WAL')
db.exec(`
  CREATE TABLE api_key (hash TEXT PRIMARY KEY, account TEXT NOT NULL) STRICT;
  CREATE TABLE product (
    productId TEXT PRIMARY KEY, storeId TEXT NOT NULL, ean TEXT NOT NULL, name TEXT NOT NULL, price REAL NOT NULL, vat INTEGER NOT NULL,
    brand TEXT, category TEXT, unit TEXT, description TEXT, tagged INTEGER NOT NULL, nameLower TEXT NOT NULL, brandLower TEXT,
    createdAt TEXT NOT NULL, updatedAt TEXT NOT NULL) STRICT;
`)
const hashOf = (key: string) => createHash('sha256').update(key).digest('base64url')
const key = randomBytes(32).toString('base64url')
const addKey = db.prepare('INSERT INTO api_key (hash, account) VALUES (?, ?)')
addKey.run(hashOf(key), 'bench')
const byHash = db.prepare<[string], { account: string }>('SELECT account FROM api_key WHERE hash = ?')
const page = db.prepare('SELECT * FROM product WHERE storeId = ? AND productId > ? ORDER BY productId LIMIT ?')

function fill(count: number): void {
  const insert = db.prepare('INSERT INTO product VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
  const at = new Date(1_800_000_000_000).toISOString()
  db.transaction(() => {
    for (let i = 0; i < count; i++) {
      const name = `Vollkornbrot mit Sonnenblumenkernen ${i}`
      const id = `prd_01KANX6Y7C3V9Q2M8R5T${String(i).padStart(6, '0')}`
      insert.run(id, 'st', String(4_000_000_000_000 + i), name, i / 100, 7, 'Lindwerk', 'lebensmittel', 'Stück', 'Aus dem Steinofen, 500 g.', 1, name.toLowerCase(), 'lindwerk', at, at)
    }
  })()
}

const app = new Hono()
app.post('/products', async (c) => {
  const caller = byHash.get(hashOf(c.req.header('authorization')?.slice('Bearer '.length) ?? ''))
  if (!caller) return c.json({ error: 'unknown key' }, 401)
  const { storeId, limit, cursor = '' } = await c.req.json<{ storeId: string; limit: number; cursor?: string }>()
  return c.json({ success: true, products: page.all(storeId, cursor, limit) })
})

const server = createAdaptorServer({ fetch: app.fetch }) as Server
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

answerBench((question) => {
  const { kind, products = 0 } = question as BarePageQuestion
  if (kind === 'cpu') return Promise.resolve(process.cpuUsage())
  fill(products)
  const body = JSON.stringify({ storeId: 'st', limit: 50 })
  return Promise.resolve({ port: (server.address() as AddressInfo).port, path: '/products', authorization: `Bearer ${key}`, bodies: [body] })
})
