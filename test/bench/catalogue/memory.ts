import { randomFraction } from '../../../policy/platform.ts'
import { rowsOf, type Bench, type Figure, type Result, type Sizes, type Target } from '../figure.ts'
import { alsoOf, httpContender, withPrograms, type HttpContender } from '../http-contender.ts'
import { takeTurns } from '../measure.ts'
import type { Memory } from '../memory-of.ts'
import { benchProduct } from './products.ts'
import { CONNECTIONS, openShops, peerNotes, PRODUCTS, SHARING, type Shop } from './servers.ts'
import { productBody, searchBody } from './vendure-questions.ts'

const NAMES = { bare: 'bare Hono routes', ours: 'cloud', vendure: 'Vendure' }
/** Maximum memory of the cloud, MB. */
const LIMIT = 150
const PAGE = 50

const SIZES = {
  full: { pages: 3_000, reads: 10_000, inserts: 3_000, rounds: 6, warmUps: 3 },
  quick: { pages: 500, reads: 1_000, inserts: 500, rounds: 2, warmUps: 3 },
  smoke: { pages: 20, reads: 20, inserts: 20, rounds: 1, warmUps: 0 },
} satisfies Sizes

/**
 * Measures the memory of each server after the requests of the other catalogue figures: fetch pages, fetch single
 * products, insert products. Vendure gets no inserts.
 */
export const memory: Figure = { sizes: SIZES, run }

async function run(bench: Bench): Promise<Result> {
  const { mode, random } = bench
  const { pages, reads, inserts, rounds, warmUps } = SIZES[mode]
  return withPrograms(async (keep) => {
    const { load, cloud, vendure, ...shops } = await openShops(bench, keep)
    const bare = await shops.bare('single')
    const some = () => Math.floor(randomFraction(random) * PRODUCTS)
    const contender = (name: string, shop: Shop, path: string, count: number, body: () => string) => {
      const bodies = () => Array.from({ length: count }, body)
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
    const work = (name: string, shop: Shop, paths: readonly [string, string, string]): HttpContender[] => {
      let next = PRODUCTS
      return [
        contender(`${name}, page`, shop, paths[0], pages, () =>
          JSON.stringify({ storeId: cloud.storeId, limit: PAGE }),
        ),
        contender(`${name}, product`, shop, paths[1], reads, () =>
          JSON.stringify({ storeId: cloud.storeId, barcode: benchProduct(some()).ean }),
        ),
        contender(`${name}, insert`, shop, paths[2], inserts, () =>
          JSON.stringify({ storeId: cloud.storeId, ...benchProduct(next++) }),
        ),
      ]
    }
    const contenders = [
      ...work(NAMES.bare, bare, ['/page', '/product', '/insert']),
      ...work(NAMES.ours, cloud, ['fetchProducts', 'fetchProduct', 'insertProduct']),
      ...(vendure
        ? [
            contender(`${NAMES.vendure}, page`, vendure, '', pages / 10, () => searchBody(PAGE)),
            contender(`${NAMES.vendure}, product`, vendure, '', reads / 10, () => productBody(some() + 1)),
          ]
        : []),
    ]
    const samples = await takeTurns(contenders, rounds, random, warmUps)
    const held = new Map<string, Memory>()
    for (const [name, shop] of [
      [NAMES.bare, bare],
      [NAMES.ours, cloud],
      [NAMES.vendure, vendure],
    ] as const) {
      if (shop) held.set(name, await shop.server.request<Memory>({ kind: 'memory' }))
    }
    const also = alsoOf(contenders, rounds)
    for (const [name, row] of Object.entries(also)) {
      const { rss = Number.NaN, peak = Number.NaN } = held.get(name.replace(/, \w+$/, '')) ?? {}
      also[name] = { ...row, 'RSS MB': rss, 'peak MB': peak }
    }
    return {
      title: '7  Memory of a server after such work',
      counts: `resident memory of the process after all rounds; costs as in the preceding figures; ${SHARING}`,
      rows: rowsOf(samples, `${NAMES.bare}, product`, also),
      targets: [staysUnder(NAMES.ours, held.get(NAMES.ours)?.rss ?? Number.NaN)],
      notes: peerNotes(bench),
    }
  })
}

function staysUnder(name: string, measured: number): Target {
  return { text: `${name}: RSS under ${LIMIT} MB`, measured, limit: LIMIT, met: measured < LIMIT }
}
