import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { join } from 'node:path'
import { createAdaptorServer } from '@hono/node-server'
import Sqlite, { type Database as Connection } from 'better-sqlite3'
import { Hono } from 'hono'
import type { AddressInfo, Server } from 'node:net'
import { answerBench } from '../child.ts'

/**
 * Minimal route with a signed and stored response: one look-up of the API key, one signature, one durable row. The
 * route has no validation, tenants, items, purchases, policy, leases, events, audit or idempotency.
 */
export interface BareQuestion {
  kind: 'prepare' | 'cpu'
}

type Row = [nonce: string, account: string, device: string, epc: string, atMs: number]

const INSERT = 'INSERT INTO granted (nonce, account, device, epc, at_ms) VALUES (?, ?, ?, ?, ?)'

const [folder = '', commits = 'single'] = process.argv.slice(2)
const db = new Sqlite(join(folder, `bare-route-${commits}.db`))
db.pragma('journal_mode = WAL')
db.pragma('synchronous = FULL')
db.exec(`
  CREATE TABLE api_key (hash TEXT PRIMARY KEY, account TEXT NOT NULL) STRICT;
  CREATE TABLE granted (
    nonce TEXT PRIMARY KEY, account TEXT NOT NULL, device TEXT NOT NULL, epc TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
`)
const hashOf = (key: string) => createHash('sha256').update(key).digest('base64url')
const key = randomBytes(32).toString('base64url')
const addKey = db.prepare('INSERT INTO api_key (hash, account) VALUES (?, ?)')
addKey.run(hashOf(key), 'bench')
for (let i = 0; i < 1_000; i++) addKey.run(hashOf(String(i)), `account ${i}`)

const byHash = db.prepare<[string], { account: string }>('SELECT account FROM api_key WHERE hash = ?')
const { privateKey } = generateKeyPairSync('ed25519')
const insert = commits === 'grouped' ? groupedInsert(db) : singleInsert(db)

function singleInsert(on: Connection): (row: Row) => Promise<void> | void {
  const statement = on.prepare(INSERT)
  return (row) => void statement.run(...row)
}

/** Rows that are inserted in the same turn of the event loop share a commit. Their responses wait for that commit. */
function groupedInsert(on: Connection): (row: Row) => Promise<void> {
  const statement = on.prepare(INSERT)
  let waiting: { row: Row; done: () => void }[] = []
  const commit = on.transaction((rows: { row: Row }[]) => {
    for (const { row } of rows) statement.run(...row)
  })
  return (row) =>
    new Promise((done) => {
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

const app = new Hono()
app.post('/verify', async (c) => {
  const caller = byHash.get(hashOf(c.req.header('authorization')?.slice('Bearer '.length) ?? ''))
  if (!caller) return c.json({ error: 'unknown key' }, 401)
  const { deviceId, epc } = await c.req.json<{ deviceId: string; epc: string }>()
  const nonce = randomBytes(16).toString('base64url')
  const claims = Buffer.from(JSON.stringify({ aud: deviceId, jti: nonce, epc })).toString('base64url')
  const token = `${claims}.${sign(null, Buffer.from(claims), privateKey).toString('base64url')}`
  await insert([nonce, caller.account, deviceId, epc, Date.now()])
  return c.json({ authorized: true, token })
})

const server = createAdaptorServer({ fetch: app.fetch }) as Server
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

answerBench((question) => {
  const { kind } = question as BareQuestion
  if (kind === 'cpu') return Promise.resolve(process.cpuUsage())
  return Promise.resolve({
    port: (server.address() as AddressInfo).port,
    path: '/verify',
    authorization: `Bearer ${key}`,
  })
})
