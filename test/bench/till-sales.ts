import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { TillSales } from '../../edge-agent/decisions/till-sales.ts'
import { openItemFile } from '../../edge-agent/items/item-file.ts'
import { Replica } from '../../edge-agent/items/replica.ts'
import { openLedger } from '../../edge-agent/ledger/ledger.ts'
import { realPlatform } from '../../host/platform.ts'
import { createSigner, newKey } from '../../policy/documents/keys.ts'
import { signSaleReceipt } from '../../policy/receipts/receipt-token.ts'
import type { ItemsClaims } from '../../policy/documents/item-documents.ts'
import { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { TillSale } from '../../policy/till-sale.ts'
import { costsAtMost, rowsOf, type Bench, type Figure, type Result, type Sizes } from './figure.ts'
import { cpuTime, quantile, samplesOf, takeTurns, wallTime } from './measure.ts'
import { LEDGER } from './tokens.ts'

const NAMES = {
  bare: 'bare FULL commit of the sale as JSON',
  one: 'sale at an agent, one after another',
  together: 'sale at an agent, 10 tills at once',
}
const LINES = 3
const STORE = 'st_06H2K3PG8NSMF314Z81NSCJEEG'
/** Items of the store at the agent. */
const ITEMS = 50_000
const TILLS = 10
/** Target of the store's tills, ms. */
const P99_MS = 20
/** Cost of the agent against the bare commit that the project aims at. */
const COST = 4

const SIZES = {
  full: { rounds: 60, sales: 50, warmUps: 3 },
  quick: { rounds: 15, sales: 50, warmUps: 2 },
  smoke: { rounds: 1, sales: 10, warmUps: 0 },
} satisfies Sizes

const platform = realPlatform()
const log = { info: () => undefined, warn: () => undefined, error: () => undefined }
const epcOf = (n: number) => `3034257BF7194E40${n.toString(16).toUpperCase().padStart(8, '0')}`

/** Measures what a till waits for after `POST /v1/sales`: judge, journal row, tags and the durable commit. */
export const tillSales: Figure = { sizes: SIZES, run }

async function run({ mode, folder, random }: Bench): Promise<Result> {
  const { rounds, sales: count, warmUps } = SIZES[mode]
  const storeId = 'st_bench'
  const ledger = openLedger({
    file: join(folder, 'ledger.db'),
    ...LEDGER,
    onFailure: (failure) => {
      throw failure
    },
  })
  const items = new Replica({
    disk: openItemFile(join(folder, 'items.db'), () => undefined),
    tillTags: { tag: (key) => ledger.till.tag(key), in: () => [] },
    platform,
    log: log as never,
  })
  items.applyPage(pageOf(storeId))
  const policy = ProtectionPolicy.parse({
    tillSales: { agents: ['agt'], salesPerHour: 100_000, valuePerHour: 10_000_000 },
  })
  const { x, secret } = newKey(platform.random)
  const signer = createSigner(x, secret)
  const tills = new TillSales({
    ledger,
    items,
    storeId,
    agentId: 'agt',
    policy: () => policy,
    revokedTills: () => [],
    layouts: () => [],
    recalledGoods: () => [],
    saleOfReceipt: () => undefined,
    signReceipt: ({ sale, exp, riskClass }) =>
      signSaleReceipt({ exp, riskClass, storeId: STORE, cti: Buffer.from(sale, 'hex'), policyVersion: 1 }, [], signer),
    shares: { whyFull: () => undefined, count: (_, report) => report() },
    nowMs: () => platform.clock.wall(),
    hasTrustedTime: () => true,
    passSeconds: () => 0,
    onChanged: () => undefined,
  })
  const bare = bareSales(join(folder, 'bare.db'))
  let number = 0
  const next = (tillId: string): TillSale => {
    number++
    return {
      saleId: String(number),
      tillId,
      occurredAt: new Date(platform.clock.wall()).toISOString(),
      lines: Array.from({ length: LINES }, (_, n) => ({
        name: 'Jacke',
        quantity: 1,
        priceUnit: 4_990,
        vat: 19 as const,
        epcs: [epcOf((number * LINES + n) % ITEMS)],
      })),
    }
  }
  const waits: number[] = []
  const sell = async (tillId: string) => {
    const from = process.hrtime.bigint()
    await tills.sell(next(tillId))
    waits.push(Number(process.hrtime.bigint() - from) / 1e6)
  }
  const cpu: Record<string, number[]> = { [NAMES.bare]: [], [NAMES.one]: [], [NAMES.together]: [] }
  const contender = (name: string, work: () => Promise<void> | void) => ({
    name,
    async slice() {
      let us = 0
      cpu[name]?.push(await cpuTime(count, async () => void (us = await wallTime(count, work))))
      return us
    },
  })
  try {
    const contenders = [
      contender(NAMES.bare, () => {
        for (let n = 0; n < count; n++) bare.add(next('bare'))
      }),
      contender(NAMES.one, async () => {
        for (let n = 0; n < count; n++) await sell('one')
      }),
      contender(NAMES.together, async () => {
        for (let n = 0; n < count; n += TILLS)
          await Promise.all(Array.from({ length: TILLS }, (_, till) => sell(`till-${till}`)))
      }),
    ]
    const samples = await takeTurns(contenders, rounds, random, warmUps)
    const p99 = quantile(waits, 0.99)
    const cpuOf = (name: string) => ({ 'CPU µs': quantile(cpu[name] ?? [], 0.5) })
    return {
      title: `Sale of ${LINES} tagged goods at an agent with ${ITEMS.toLocaleString('en')} items, durable (WAL, synchronous=FULL)`,
      counts: 'wall time of the agent’s part of POST /v1/sales, without HTTP',
      rows: rowsOf(samples, NAMES.bare, {
        [NAMES.bare]: cpuOf(NAMES.bare),
        [NAMES.one]: { ...cpuOf(NAMES.one), 'p99 ms': p99 },
        [NAMES.together]: cpuOf(NAMES.together),
      }),
      targets: [
        { text: `a sale: p99 at most ${P99_MS} ms`, measured: p99, limit: P99_MS, met: p99 <= P99_MS },
        costsAtMost(samples, NAMES.together, NAMES.bare, COST),
      ],
      notes: [
        `the median of all sales was ${quantile(samplesOf(samples, NAMES.one), 0.5).toFixed(0)} µs; a sale writes its journal row, ${LINES} tags and itself in one commit, which tills at the same time share`,
      ],
    }
  } finally {
    bare.close()
    items.close()
    ledger.close()
  }
}

function pageOf(storeId: string): ItemsClaims {
  const entries = Array.from({ length: ITEMS }, (_, n) => ({
    seq: n + 1,
    status: 'sellable' as const,
    epc: epcOf(n),
    price: 4_990,
  }))
  return { aud: storeId, iat: 0, exp: 1, epoch: 0, ver: ITEMS, after: 0, floor: 0, categories: [], brands: [], entries }
}

/** A table of sales as JSON, with a commit for each. */
function bareSales(file: string) {
  const db = new Sqlite(file)
  db.pragma('journal_mode = WAL')
  db.pragma('synchronous = FULL')
  db.exec('CREATE TABLE sale (id TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID, STRICT')
  const insert = db.prepare('INSERT INTO sale (id, body) VALUES (?, ?)')
  return {
    add: (sale: TillSale) => void insert.run(sale.saleId, JSON.stringify(sale)),
    close: () => void db.close(),
  }
}
