import { randomFraction } from '../../../policy/platform.ts'
import { ratesAtLeast, rowsOf, type Bench, type Figure, type Result, type Sizes } from '../figure.ts'
import { alsoOf, httpContender, withPrograms, type HttpContender } from '../http-contender.ts'
import { takeTurns } from '../measure.ts'
import { benchProduct } from './products.ts'
import { CONNECTIONS, openShops, peerNotes, PRODUCTS, SHARING, type Shop } from './servers.ts'
import { productBody } from './vendure-questions.ts'

const NAMES = { bare: 'bare Hono route', ours: 'fetchProduct', vendure: 'Vendure product(id)' }
/** Minimum ratio of the cloud's rate to that of the bare route. */
const SHARE = 0.4
/** Minimum ratio of the cloud's rate to that of Vendure. */
const TIMES = 20

/**
 * `warmUps`: unmeasured rounds, in which Node.js compiles the code. Without them the cloud would seem too slow, because
 * it has more code than a bare route.
 */
const SIZES = {
  full: { requests: 5_000, rounds: 9, warmUps: 3 },
  quick: { requests: 400, rounds: 3, warmUps: 3 },
  smoke: { requests: 20, rounds: 1, warmUps: 0 },
} satisfies Sizes

/** Measures a scan at the shelf over HTTP: fetch one product by its barcode, with the price of the store. */
export const productByEan: Figure = { sizes: SIZES, run }

async function run(bench: Bench): Promise<Result> {
  const { mode, random } = bench
  const { requests, rounds, warmUps } = SIZES[mode]
  return withPrograms(async (keep) => {
    const { load, cloud, vendure, ...shops } = await openShops(bench, keep)
    const bare = await shops.bare('single')
    const contender = (name: string, shop: Shop, path: string, body: (number: number) => string, count = requests) => {
      const bodies = () => Array.from({ length: count }, () => body(Math.floor(randomFraction(random) * PRODUCTS)))
      return httpContender({
        name,
        load,
        server: shop.server,
        address: shop.at(path),
        connections: CONNECTIONS,
        expected: '49999',
        bodies,
      })
    }
    const ours = (number: number) => JSON.stringify({ storeId: cloud.storeId, barcode: benchProduct(number).ean })
    const contenders: HttpContender[] = [
      contender(NAMES.bare, bare, '/product', ours),
      contender(NAMES.ours, cloud, 'fetchProduct', ours),
      ...(vendure ? [contender(NAMES.vendure, vendure, '', (number) => productBody(number + 1), requests / 4)] : []),
    ]
    const samples = await takeTurns(contenders, rounds, random, warmUps)
    return {
      title: `5  A product by its barcode over HTTP, ${CONNECTIONS} connections`,
      counts: `wall time at the client; ${SHARING}`,
      rows: rowsOf(samples, NAMES.bare, alsoOf(contenders, rounds)),
      targets: [
        ratesAtLeast(samples, NAMES.ours, NAMES.bare, SHARE),
        ...(vendure ? [ratesAtLeast(samples, NAMES.ours, NAMES.vendure, TIMES)] : []),
      ],
      notes: [
        ...(vendure ? ['Vendure cannot find a product by its barcode, so it is queried by id, its fastest way'] : []),
        ...peerNotes(bench),
      ],
    }
  })
}
