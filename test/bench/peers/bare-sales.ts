import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { join } from 'node:path'
import { createAdaptorServer } from '@hono/node-server'
import Sqlite from 'better-sqlite3'
import { Hono } from 'hono'
import type { AddressInfo, Server } from 'node:net'
import { z } from 'zod'
import { answerBench } from '../child.ts'
import { epcOfPiece, PRODUCTS, productOfPiece } from '../retail/till-batches.ts'

/**
 * Minimal route for sales of tills. It makes the promises of `recordSales`: the key is checked, each sale is validated
 * and recorded once, its tags become paid with a number for the gates, its pieces get rights, and its receipt is signed.
 * As many sales share a durable commit as in the cloud. Without tenants, limits, doubts, recalls, returns, stock, totals,
 * points, events, webhooks, EPCIS and audit.
 */
export interface BareSalesQuestion {
  kind: 'prepare' | 'cpu'
  /** Number of tagged pieces to create. */
  pieces?: number
}

/** Sales that share a commit, as in the cloud. */
const AT_ONCE = 20

const Sale = z.strictObject({
  saleId: z.string().min(1).max(64),
  tillId: z.string().min(1).max(64),
  series: z.string().min(1).max(64),
  occurredAt: z.iso.datetime({ offset: true }),
  totalCent: z.int(),
  lines: z
    .array(
      z.strictObject({
        ean: z.string().min(1).max(200),
        quantity: z.int().min(1),
        priceUnit: z.int(),
        vat: z.union([z.literal(0), z.literal(7), z.literal(19)]),
        epcs: z.array(z.string().regex(/^[0-9A-F]{24}$/)).max(1_000),
      }),
    )
    .min(1)
    .max(500),
})
type Sale = z.output<typeof Sale>
const Batch = z.strictObject({ storeId: z.string(), sales: z.array(z.unknown()).min(1).max(500) })

const [folder = ''] = process.argv.slice(2)
const db = new Sqlite(join(folder, 'bare-sales.db'))
db.pragma('journal_mode = WAL')
db.pragma('synchronous = FULL')
db.exec(`
  CREATE TABLE api_key (hash TEXT PRIMARY KEY, account TEXT NOT NULL) STRICT;
  CREATE TABLE product (ean TEXT PRIMARY KEY, product_id TEXT NOT NULL, name TEXT NOT NULL, price_cent INTEGER NOT NULL) STRICT;
  CREATE TABLE item (item_id TEXT PRIMARY KEY, epc TEXT NOT NULL UNIQUE, status TEXT NOT NULL, line_id TEXT, seq INTEGER NOT NULL) STRICT;
  CREATE INDEX item_by_seq ON item (seq);
  CREATE TABLE sale (sale_key TEXT PRIMARY KEY, content TEXT NOT NULL, purchase_id TEXT NOT NULL UNIQUE, result TEXT NOT NULL, stored_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE purchase (purchase_id TEXT PRIMARY KEY, cti TEXT NOT NULL UNIQUE, total_cent INTEGER NOT NULL, receipt TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
  CREATE TABLE line (line_id TEXT PRIMARY KEY, purchase_id TEXT NOT NULL, product_id TEXT NOT NULL, name TEXT NOT NULL, price_cent INTEGER NOT NULL, quantity INTEGER NOT NULL, vat INTEGER NOT NULL) STRICT;
  CREATE INDEX line_by_purchase ON line (purchase_id);
  CREATE TABLE unit (line_id TEXT NOT NULL, unit_no INTEGER NOT NULL, purchase_id TEXT NOT NULL, item_id TEXT NOT NULL, PRIMARY KEY (line_id, unit_no)) STRICT;
  CREATE INDEX unit_by_purchase ON unit (purchase_id);
`)
const statements = {
  key: db.prepare<[string], { account: string }>('SELECT account FROM api_key WHERE hash = ?'),
  product: db.prepare<[string], { product_id: string; name: string }>(
    'SELECT product_id, name FROM product WHERE ean = ?',
  ),
  item: db.prepare<[string], { item_id: string; status: string }>('SELECT item_id, status FROM item WHERE epc = ?'),
  paid: db.prepare("UPDATE item SET status = 'paid', line_id = ?, seq = ? WHERE item_id = ?"),
  known: db.prepare<[string], { content: string; result: string }>(
    'SELECT content, result FROM sale WHERE sale_key = ?',
  ),
  sale: db.prepare('INSERT INTO sale (sale_key, content, purchase_id, result, stored_ms) VALUES (?, ?, ?, ?, ?)'),
  purchase: db.prepare('INSERT INTO purchase (purchase_id, cti, total_cent, receipt, at_ms) VALUES (?, ?, ?, ?, ?)'),
  line: db.prepare(
    'INSERT INTO line (line_id, purchase_id, product_id, name, price_cent, quantity, vat) VALUES (?, ?, ?, ?, ?, ?, ?)',
  ),
  unit: db.prepare('INSERT INTO unit (line_id, unit_no, purchase_id, item_id) VALUES (?, ?, ?, ?)'),
}
const hashOf = (text: string) => createHash('sha256').update(text).digest('base64url')
const newId = () => randomBytes(16).toString('base64url')
const key = randomBytes(32).toString('base64url')
db.prepare('INSERT INTO api_key (hash, account) VALUES (?, ?)').run(hashOf(key), 'bench')
const { privateKey } = generateKeyPairSync('ed25519')
let seq = 0

function prepare(pieces: number): void {
  const product = db.prepare('INSERT INTO product (ean, product_id, name, price_cent) VALUES (?, ?, ?, ?)')
  const item = db.prepare("INSERT INTO item (item_id, epc, status, seq) VALUES (?, ?, 'sellable', ?)")
  db.transaction(() => {
    for (let n = 0; n < PRODUCTS; n++) {
      const { ean, name, price } = productOfPiece(n)
      product.run(ean, newId(), name, Math.round(price * 100))
    }
    for (let n = 0; n < pieces; n++) item.run(newId(), epcOfPiece(n), ++seq)
  })()
}

const recordAll = db.transaction((storeId: string, sales: readonly unknown[]) =>
  sales.map((sent) => {
    const read = Sale.safeParse(sent)
    return read.success ? record(storeId, read.data) : { error: read.error.issues[0]?.path.join('.') }
  }),
)

function record(storeId: string, sale: Sale): object {
  const { saleId, tillId, series } = sale
  const saleKey = hashOf(JSON.stringify([storeId, tillId, series, saleId]))
  const content = hashOf(JSON.stringify(sale))
  const known = statements.known.get(saleKey)
  if (known)
    return known.content === content ? (JSON.parse(known.result) as object) : { saleId, error: 'sale_conflict' }
  const [purchaseId, nowMs] = [newId(), Date.now()]
  const items: object[] = []
  const warnings: object[] = []
  const units: [number, number][] = []
  for (const [i, line] of sale.lines.entries()) {
    const lineId = newId()
    const product = statements.product.get(line.ean)
    if (!product) warnings.push({ code: 'sale_product_unknown', line: i })
    statements.line.run(
      lineId,
      purchaseId,
      product?.product_id ?? '',
      product?.name ?? '',
      line.priceUnit,
      line.quantity,
      line.vat,
    )
    for (const [n, epc] of line.epcs.entries()) {
      const item = statements.item.get(epc)
      const isFree = item?.status === 'sellable'
      if (!isFree) warnings.push({ code: item ? 'item_already_paid' : 'sale_tag_unknown', tag: epc })
      if (item && isFree) {
        statements.paid.run(lineId, ++seq, item.item_id)
        statements.unit.run(lineId, n + 1, purchaseId, item.item_id)
        units.push([i, line.priceUnit])
      }
      items.push({ lineId: String(i + 1), tag: epc, itemStatus: isFree ? 'paid' : item?.status })
    }
  }
  const cti = newId()
  const claims = {
    aud: storeId,
    jti: cti,
    iat: Math.floor(nowMs / 1_000),
    exp: Math.floor(nowMs / 1_000) + 86_400,
    units,
  }
  const signed = Buffer.from(JSON.stringify(claims)).toString('base64url')
  const receiptToken = `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`
  statements.purchase.run(purchaseId, cti, sale.totalCent, receiptToken, nowMs)
  const result = { saleId, purchaseId, receiptToken, items, warnings }
  statements.sale.run(saleKey, content, purchaseId, JSON.stringify(result), nowMs)
  return result
}

const app = new Hono()
app.post('/recordSales', async (c) => {
  if (!statements.key.get(hashOf(c.req.header('authorization')?.slice('Bearer '.length) ?? '')))
    return c.json({ error: 'unknown key' }, 401)
  const read = Batch.safeParse(await c.req.json())
  if (!read.success) return c.json({ error: read.error.issues[0]?.path.join('.') }, 400)
  const { storeId, sales } = read.data
  const all: object[] = []
  for (let from = 0; from < sales.length; from += AT_ONCE)
    all.push(...recordAll.immediate(storeId, sales.slice(from, from + AT_ONCE)))
  const errors = all.filter((each) => 'error' in each)
  const results = all.filter((each) => !('error' in each))
  return c.json({ success: true, recorded: results.length, results, errors })
})

const server = createAdaptorServer({ fetch: app.fetch }) as Server
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))

answerBench((question) => {
  const { kind, pieces = 0 } = question as BareSalesQuestion
  if (kind === 'cpu') return Promise.resolve(process.cpuUsage())
  prepare(pieces)
  return Promise.resolve({
    port: (server.address() as AddressInfo).port,
    base: '',
    authorization: `Bearer ${key}`,
    storeId: 'st_bare',
  })
})
