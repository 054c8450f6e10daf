import { createHash, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { createAdaptorServer } from '@hono/node-server'
import Sqlite from 'better-sqlite3'
import { Hono } from 'hono'
import type { AddressInfo, Server } from 'node:net'
import { answerBench } from '../child.ts'

/**
 * Minimal purchase: three routes, each with one look-up of the API key and one durable row. The routes have no
 * validation, tenants, prices, tags, receipts, signatures, events, audit or idempotency.
 */
const [folder = ''] = process.argv.slice(2)
const db = new Sqlite(join(folder, 'bare-journey.db'))
db.pragma('journal_mode = WAL')
db.pragma('synchronous = FULL')
db.exec(`
  CREATE TABLE api_key (hash TEXT PRIMARY KEY, account TEXT NOT NULL) STRICT;
  CREATE TABLE session (id TEXT PRIMARY KEY, store TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE purchase (id TEXT PRIMARY KEY, session TEXT NOT NULL, items TEXT NOT NULL, status TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
`)
const hashOf = (key: string) => createHash('sha256').update(key).digest('base64url')
const key = randomBytes(32).toString('base64url')
db.prepare('INSERT INTO api_key (hash, account) VALUES (?, ?)').run(hashOf(key), 'bench')
const byHash = db.prepare<[string], { account: string }>('SELECT account FROM api_key WHERE hash = ?')
const openSession = db.prepare('INSERT INTO session (id, store, at_ms) VALUES (?, ?, ?)')
const openPurchase = db.prepare(
  "INSERT INTO purchase (id, session, items, status, at_ms) VALUES (?, ?, ?, 'PENDING_PAYMENT', ?)",
)
const pay = db.prepare<[string], { id: string; status: string }>(
  "UPDATE purchase SET status = 'SUCCESS' WHERE id = ? RETURNING id, status",
)

const app = new Hono()
app.use(async (c, next) => {
  if (!byHash.get(hashOf(c.req.header('authorization')?.slice('Bearer '.length) ?? '')))
    return c.json({ error: 'unknown key' }, 401)
  return next()
})
app.post('/checkIn', async (c) => {
  const { storeId } = await c.req.json<{ storeId: string }>()
  const sessionId = randomBytes(16).toString('base64url')
  openSession.run(sessionId, storeId, Date.now())
  return c.json({ sessionId })
})
app.post('/startCheckout', async (c) => {
  const { sessionId, items } = await c.req.json<{ sessionId: string; items: unknown[] }>()
  const transactionId = randomBytes(16).toString('base64url')
  openPurchase.run(transactionId, sessionId, JSON.stringify(items), Date.now())
  return c.json({ transactionId, status: 'PENDING_PAYMENT', items })
})
app.post('/completeTestCheckout', async (c) => {
  const { transactionId } = await c.req.json<{ transactionId: string }>()
  return c.json(pay.get(transactionId) ?? {})
})

const server = createAdaptorServer({ fetch: app.fetch }) as Server
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

answerBench((question) => {
  if ((question as { kind: string }).kind === 'cpu') return Promise.resolve(process.cpuUsage())
  return Promise.resolve({ port: (server.address() as AddressInfo).port, base: '', authorization: `Bearer ${key}` })
})
