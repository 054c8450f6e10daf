import { canPin, CORES, startProgram } from '../child.ts'
import type { PreparedCatalogue } from '../cloud-program.ts'
import { ratesAtLeast, rowsOf, type Bench, type Figure, type Result, type Sizes } from '../figure.ts'
import { alsoOf, httpContender, withPrograms } from '../http-contender.ts'
import { realPlatform } from '../../../host/platform.ts'
import { takeTurns } from '../measure.ts'
import { batchOfSales, epcOfPiece, LINES, PRODUCTS, productOfPiece } from './till-batches.ts'

const NAMES = { bare: 'bare Hono, the same promises', ours: 'recordSales' }
/** Minimum ratio of the cloud's rate to that of the bare route. */
const SHARE = 0.4
/** Items of a call of registerProtectedItems. */
const ITEMS_AT_ONCE = 500

const SIZES = {
  full: { sales: 500, batches: 2, rounds: 9, warmUps: 2 },
  quick: { sales: 500, batches: 2, rounds: 5, warmUps: 2 },
  smoke: { sales: 25, batches: 1, rounds: 1, warmUps: 0 },
} satisfies Sizes

/** Measures `recordSales` in large batches, against a route that makes the same promises. */
export const recordSales: Figure = { sizes: SIZES, run }

async function run({ mode, folder, random, note }: Bench): Promise<Result> {
  const { sales, batches, rounds, warmUps } = SIZES[mode]
  const { clock } = realPlatform()
  const all = sales * (batches * (rounds + warmUps) + 1)
  return withPrograms(async (keep) => {
    const start = (file: string, core: number, args: string[] = []) => keep(startProgram(file, core, args))
    const load = await start('load-program.js', CORES.load)
    const bare = await start('peers/bare-sales.js', CORES.server, [folder])
    const cloud = await start('cloud-program.js', CORES.server, [folder])
    const bareAt = await bare.request<PreparedCatalogue>({ kind: 'prepare', pieces: all * LINES })
    const cloudAt = await cloud.request<PreparedCatalogue>({ kind: 'catalogue', products: PRODUCTS })
    note(`registering ${all * LINES} items`)
    await registerPieces(cloudAt, all * LINES)
    const contender = (name: string, server: typeof cloud, at: PreparedCatalogue) => {
      let next = sales
      return httpContender({
        name,
        server,
        load,
        address: { ...at, path: `${at.base}/recordSales` },
        connections: 1,
        expected: '"errors":[]',
        bodies: () =>
          Array.from({ length: batches }, () => batchOfSales(at.storeId, (next += sales) - sales, sales, clock.wall())),
      })
    }
    for (const at of [bareAt, cloudAt]) await checkAnswer(at, batchOfSales(at.storeId, 0, sales, clock.wall()), sales)
    const contenders = [contender(NAMES.bare, bare, bareAt), contender(NAMES.ours, cloud, cloudAt)]
    const perSale = contenders.map(({ name, slice }) => ({ name, slice: async () => (await slice()) / sales }))
    const samples = await takeTurns(perSale, rounds, random, warmUps)
    const also = Object.entries(alsoOf(contenders, rounds)).map(([name, { 'server CPU µs': cpu = 0 }]) => [
      name,
      { 'server CPU µs': cpu / sales },
    ])
    return {
      title: `Sales of tills over HTTP, ${sales} sales of ${LINES} tagged pieces a call (SQLite, synchronous=FULL)`,
      counts: `wall time at the client per sale; ${canPin ? 'each server on core 0, the client on core 1' : 'servers and client share the cores as the system likes'}`,
      rows: rowsOf(samples, NAMES.bare, Object.fromEntries(also) as Record<string, Record<string, number>>),
      targets: [ratesAtLeast(samples, NAMES.ours, NAMES.bare, SHARE)],
      notes: ['both commit 20 sales at once; the bare route is test/bench/peers/bare-sales.ts'],
    }
  })
}

/** Registers the pieces of the sales as items of the store. */
async function registerPieces({ storeId, ...at }: PreparedCatalogue, count: number): Promise<void> {
  for (let from = 0; from < count; from += ITEMS_AT_ONCE) {
    const items = Array.from({ length: Math.min(ITEMS_AT_ONCE, count - from) }, (_, i) => ({
      epc: epcOfPiece(from + i),
      ean: productOfPiece(from + i).ean,
      protectionTechnology: 'uhf_rfid',
    }))
    await call(at, 'registerProtectedItems', JSON.stringify({ storeId, items }))
  }
}

/** Sends a batch, and checks that each sale gets a receipt, and each tag is paid. */
async function checkAnswer(at: PreparedCatalogue, body: string, sales: number): Promise<void> {
  const answer = await call(at, 'recordSales', body)
  const counts = [/"receiptToken":/g, /"itemStatus":"paid"/g, /"warnings":\[\]/g].map(
    (each) => answer.match(each)?.length,
  )
  if (counts.join() !== [sales, sales * LINES, sales].join())
    throw new Error(`of ${sales} sales, receipts, paid tags and sales without warning are ${counts.join(', ')}`)
}

async function call(
  { port, base, authorization }: Omit<PreparedCatalogue, 'storeId'>,
  operation: string,
  body: string,
) {
  const headers = { 'content-type': 'application/json', authorization }
  const answer = await fetch(`http://127.0.0.1:${port}${base}/${operation}`, { method: 'POST', headers, body })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${operation} answered ${answer.status}: ${text.slice(0, 500)}`)
  return text
}
