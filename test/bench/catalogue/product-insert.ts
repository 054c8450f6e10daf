import { ratesAtLeast, rowsOf, type Bench, type Figure, type Result, type Sizes } from '../figure.ts'
import { alsoOf, httpContender, withPrograms } from '../http-contender.ts'
import { takeTurns } from '../measure.ts'
import { benchProduct } from './products.ts'
import { openShops, PRODUCTS, SHARING, type Shop } from './servers.ts'

const NAMES = {
  bare: 'bare Hono insert, a commit a request',
  grouped: 'bare Hono insert, group commit',
  ours: 'insertProduct',
}
const CONNECTIONS = 16
/** Minimum ratio of the cloud's rate to that of the bare route. */
const SHARE = 0.4

/**
 * `warmUps`: unmeasured rounds, in which Node.js compiles the code. Without them the cloud would seem too slow, because
 * it has more code than a bare route.
 */
const SIZES = {
  full: { requests: 2_000, rounds: 9, warmUps: 3 },
  quick: { requests: 500, rounds: 3, warmUps: 3 },
  smoke: { requests: 20, rounds: 1, warmUps: 0 },
} satisfies Sizes

/** Measures the insertion of a product over HTTP: a durable commit, and the stored product as the response. */
export const productInsert: Figure = { sizes: SIZES, run }

async function run(bench: Bench): Promise<Result> {
  const { mode, random } = bench
  const { requests, rounds, warmUps } = SIZES[mode]
  return withPrograms(async (keep) => {
    const { load, cloud, bare } = await openShops({ ...bench, vendure: false }, keep)
    const contender = (name: string, shop: Shop, path: string) => {
      let next = PRODUCTS
      const bodies = () =>
        Array.from({ length: requests }, () => JSON.stringify({ storeId: cloud.storeId, ...benchProduct(next++) }))
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
    const contenders = [
      contender(NAMES.bare, await bare('single'), '/insert'),
      contender(NAMES.grouped, await bare('grouped'), '/insert'),
      contender(NAMES.ours, cloud, 'insertProduct'),
    ]
    const samples = await takeTurns(contenders, rounds, random, warmUps)
    return {
      title: `6  A new product over HTTP, ${CONNECTIONS} connections (SQLite, synchronous=FULL)`,
      counts: `wall time at the client; ${SHARING}`,
      rows: rowsOf(samples, NAMES.bare, alsoOf(contenders, rounds)),
      targets: [ratesAtLeast(samples, NAMES.ours, NAMES.bare, SHARE)],
      notes: [
        'the target is the bare route with one commit per request; the other bare route commits in groups, as the cloud does',
      ],
    }
  })
}
