import type { Program } from '../child.ts'
import { benchProduct } from '../catalogue/products.ts'
import { median, type Contender } from '../measure.ts'
import type { StatementCounts } from './count-statements.ts'
import { sampleLocks } from './lock-samples.ts'
import type { PreparedShops, Shop } from './prepare-shops.ts'
import type { ShopsQuestion } from './shops-load.ts'

/** Number of products in each store. */
export const PRODUCTS = 200
const PAGE = 50

/** A measured operation. `question` builds `count` requests of a shop. */
export interface Operation {
  readonly name: string
  question(at: At, count: number): ShopsQuestion['parts'][number]
}

interface At {
  readonly server: PreparedShops
  readonly shop: Shop
  readonly connections: number
  /** Number of the first request. No earlier request used this number or a higher one. */
  readonly first: number
}

function send({ server, shop, connections }: At, name: string, bodies: readonly object[], expected: string) {
  const { port, base } = server
  const path = `${base}/${name}`
  const { authorization } = shop
  return { port, path, authorization, connections, expected, bodies: bodies.map((body) => JSON.stringify(body)) }
}

const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

export const OPERATIONS: readonly Operation[] = [
  {
    name: 'verifyProtectedItem',
    question(at, count) {
      const { deviceId, epcs } = at.shop
      const bodies = epcs
        .slice(at.first, at.first + count)
        .map((epc) => ({ deviceId, protectionAction: 'detach_hard_tag', epc }))
      return send(at, 'verifyProtectedItem', bodies, '"authorized":true')
    },
  },
  {
    name: 'purchase',
    question({ server: { port, base }, shop: { authorization, storeId }, connections, first }, count) {
      const eans = many(count, (i) => benchProduct((first + i) % PRODUCTS).ean)
      return { port, base, authorization, storeId, eans, connections }
    },
  },
  {
    name: 'insertProduct',
    question(at, count) {
      const { growingStoreId: storeId } = at.shop
      const bodies = many(count, (i) => ({ storeId, ...benchProduct(PRODUCTS + at.first + i) }))
      return send(at, 'insertProduct', bodies, '49999')
    },
  },
  {
    name: 'fetchProducts',
    question(at, count) {
      const body = { storeId: at.shop.storeId, limit: PAGE }
      return send(
        at,
        'fetchProducts',
        many(count, () => body),
        '49999',
      )
    },
  },
]

/** Number of accounts that send requests at the same time, and of their connections. */
export interface Load {
  readonly name: string
  readonly accounts: number
  /** Number of connections of each account. */
  readonly connections: number
}

/** Number of concurrent requests to a busy server. */
const IN_FLIGHT = 16
/** Concurrent requests between one and a busy server. */
const FEW_IN_FLIGHT = 4

/**
 * The loads: one request at a time, concurrent requests of one account, and concurrent requests of several accounts.
 */
export function loadsOf(accounts: number): readonly Load[] {
  return [
    { name: '1 in flight', accounts: 1, connections: 1 },
    { name: `${FEW_IN_FLIGHT} in flight`, accounts: 1, connections: FEW_IN_FLIGHT },
    { name: `${IN_FLIGHT} in flight`, accounts: 1, connections: IN_FLIGHT },
    { name: `${IN_FLIGHT} in flight, ${accounts} accounts`, accounts, connections: IN_FLIGHT / accounts },
  ]
}

/** A server with its accounts. */
export interface Engine {
  readonly name: string
  /** URL of its PostgreSQL database; undefined for SQLite. */
  readonly url: string | undefined
  readonly program: Program
  readonly server: PreparedShops
  /** Numbers of requests that each account has sent, by operation. */
  readonly sent: Map<string, number>
}

export interface ShopsContender extends Contender {
  readonly engine: Engine
  /** Medians over the last `rounds` slices. */
  also(rounds: number): Readonly<Record<string, number>>
}

interface Seen {
  cpu: NodeJS.CpuUsage
  statements: StatementCounts | undefined
}

async function look({ program }: Engine): Promise<Seen> {
  const cpu = await program.request<NodeJS.CpuUsage>({ kind: 'cpu' })
  return { cpu, statements: await program.request<StatementCounts | undefined>({ kind: 'statements' }) }
}

/** Measures one operation on one engine under one load, with `count` requests per slice. */
export function shopsContender(
  { engine, load, operation, client }: { engine: Engine; load: Load; operation: Operation; client: Program },
  count: number,
): ShopsContender {
  const seen: Record<string, number>[] = []
  return {
    name: `${operation.name}, ${load.name}: ${engine.name}`,
    engine,
    async slice() {
      const question = questionOf(engine, load, operation, count)
      const before = await look(engine)
      const locks = engine.url === undefined ? undefined : await sampleLocks(engine.url)
      const microseconds = await client.request<number>(question)
      const { busy, waiting } = (await locks?.stop()) ?? { busy: 0, waiting: 0 }
      const costs = costsOf(before, await look(engine), count)
      seen.push(busy === 0 ? costs : { ...costs, 'lock waits %': (waiting / busy) * 100 })
      return microseconds / count
    },
    also(rounds) {
      const last = seen.slice(-rounds)
      const names = [...new Set(last.flatMap((costs) => Object.keys(costs)))]
      return Object.fromEntries(names.map((name) => [name, median(last.map((costs) => costs[name] ?? 0))]))
    },
  }
}

function questionOf(engine: Engine, load: Load, operation: Operation, count: number): ShopsQuestion {
  const { server, sent } = engine
  const each = count / load.accounts
  const parts = server.shops.slice(0, load.accounts).map((shop, i) => {
    const key = `${operation.name} ${i}`
    const first = sent.get(key) ?? 0
    sent.set(key, first + each)
    return operation.question({ server, shop, connections: load.connections, first }, each)
  })
  return { kind: operation.name === 'purchase' ? 'buy' : 'send', parts } as ShopsQuestion
}

function costsOf(before: Seen, after: Seen, count: number): Record<string, number> {
  const cpu = (after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system) / count
  const [from, to] = [before.statements, after.statements]
  if (!from || !to) return { 'server CPU µs': cpu }
  return {
    'server CPU µs': cpu,
    statements: (to.statements - from.statements) / count,
    'round trips': (to.roundTrips - from.roundTrips) / count,
    'conflicts %': ((to.conflicts - from.conflicts) / count) * 100,
  }
}
