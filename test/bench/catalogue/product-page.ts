import { ratesAtLeast, rowsOf, type Bench, type Figure, type Result, type Sizes } from '../figure.ts'
import { alsoOf, httpContender, withPrograms, type HttpContender } from '../http-contender.ts'
import { takeTurns } from '../measure.ts'
import { CONNECTIONS, openShops, peerNotes, SHARING, type Shop } from './servers.ts'
import { searchBody } from './vendure-questions.ts'

const NAMES = {
  bare: 'bare Hono route',
  documents: 'bare Hono route, kept documents',
  ours: 'fetchProducts',
  vendure: 'Vendure search()',
}
const PAGE = 50
/** Minimum ratio of the cloud's rate to that of the bare route. */
const SHARE = 0.6
/** Minimum ratio of the cloud's rate to that of Vendure. */
const TIMES = 5

/**
 * `warmUps`: unmeasured rounds, in which Node.js compiles the code. Without them the cloud would seem too slow, because
 * it has more code than a bare route.
 */
const SIZES = {
  full: { requests: 2_000, rounds: 9, warmUps: 3 },
  quick: { requests: 500, rounds: 3, warmUps: 3 },
  smoke: { requests: 20, rounds: 1, warmUps: 0 },
} satisfies Sizes

/** Measures a page of products over HTTP. Compares the cloud with a minimal route and with the shop system Vendure. */
export const productPage: Figure = { sizes: SIZES, run }

async function run(bench: Bench): Promise<Result> {
  const { mode, random } = bench
  const { requests, rounds, warmUps } = SIZES[mode]
  return withPrograms(async (keep) => {
    const { load, cloud, vendure, ...shops } = await openShops(bench, keep)
    const bare = await shops.bare('single')
    const contender = (name: string, shop: Shop, path: string, body: string, count = requests) => {
      const bodies = new Array<string>(count).fill(body)
      return httpContender({
        name,
        load,
        server: shop.server,
        address: shop.at(path),
        connections: CONNECTIONS,
        expected: '49999',
        bodies: () => bodies,
      })
    }
    const body = JSON.stringify({ storeId: cloud.storeId, limit: PAGE })
    const contenders: HttpContender[] = [
      contender(NAMES.bare, bare, '/page', body),
      contender(NAMES.documents, bare, '/page-of-documents', body),
      contender(NAMES.ours, cloud, 'fetchProducts', body),
      ...(vendure ? [contender(NAMES.vendure, vendure, '', searchBody(PAGE), requests / 4)] : []),
    ]
    const samples = await takeTurns(contenders, rounds, random, warmUps)
    return {
      title: `4  A page of ${PAGE} products over HTTP, ${CONNECTIONS} connections`,
      counts: `wall time at the client; ${SHARING}`,
      rows: rowsOf(samples, NAMES.bare, alsoOf(contenders, rounds)),
      targets: [
        ratesAtLeast(samples, NAMES.ours, NAMES.bare, SHARE),
        ...(vendure ? [ratesAtLeast(samples, NAMES.ours, NAMES.vendure, TIMES)] : []),
      ],
      notes: [
        'the target is the bare route that builds its response from rows; the other bare route stores documents, as the cloud does',
        ...peerNotes(bench),
      ],
    }
  })
}
