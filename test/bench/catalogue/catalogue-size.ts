import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { randomFraction, type Randomness } from '../../../policy/platform.ts'
import { openBenchCloud, benchAccount } from '../bench-cloud.ts'
import { costsAtMost, rowsOf, type Bench, type Figure, type Result, type Sizes } from '../figure.ts'
import { cpuTime, takeTurns, type Contender, type Samples } from '../measure.ts'
import { addStore, fillStore } from './fill-store.ts'
import { benchProduct } from './products.ts'

/** Maximum ratio of the cost in the largest store to the cost in the smallest. */
const LIMIT = 1.5

const SIZES = {
  full: { products: [1_000, 100_000, 1_000_000], calls: 300, rounds: 21, warmUps: 3 },
  quick: { products: [1_000, 100_000], calls: 100, rounds: 7, warmUps: 3 },
  smoke: { products: [100, 200], calls: 2, rounds: 1, warmUps: 0 },
} satisfies Sizes

/** Measures whether operations are slower in a store with a thousand times as many products. */
export const catalogueSize: Figure = { sizes: SIZES, run }

/** One operation with its parameters, in a store of `size` products whose ids are in `cursors`. */
interface Question {
  name: string
  operation: string
  body(random: Randomness, size: number, cursors: readonly string[]): object
}

const QUESTIONS: readonly Question[] = [
  {
    name: 'fetchProduct',
    operation: 'fetchProduct',
    body: (random, size) => ({ barcode: benchProduct(below(size, random)).ean }),
  },
  { name: 'fetchProducts, first page', operation: 'fetchProducts', body: () => ({ limit: 50 }) },
  {
    name: 'fetchProducts, middle page',
    operation: 'fetchProducts',
    body: (random, _size, cursors) => ({ limit: 50, cursor: cursors[below(cursors.length, random)] }),
  },
  {
    name: 'searchProducts, one word',
    operation: 'searchProducts',
    body: (random, size) => ({ q: wordsOf(below(size, random))[0]?.slice(0, 6) }),
  },
  {
    name: 'searchProducts, two words',
    operation: 'searchProducts',
    body: (random, size) => ({ q: wordsOf(below(size, random)).join(' ') }),
  },
  {
    name: 'searchProducts, barcode',
    operation: 'searchProducts',
    body: (random, size) => ({ q: benchProduct(below(size, random)).ean }),
  },
]

type Also = Readonly<Record<string, Readonly<Record<string, number>>>>

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0)
}

function below(limit: number, random: Randomness): number {
  return Math.floor(randomFraction(random) * limit)
}

/** Two search terms that find the product and many others: the first word of its name, and its brand. */
function wordsOf(number: number): string[] {
  const { name, brand } = benchProduct(number)
  return [name.split(' ')[0] ?? '', brand]
}

async function run({ mode, folder, random, note }: Bench): Promise<Result> {
  const { products: sizes, calls, rounds, warmUps } = SIZES[mode]
  const [smallest, largest] = [Math.min(...sizes), Math.max(...sizes)]
  const clouds: FilledCloud[] = []
  try {
    for (const size of sizes) clouds.push(await openFilled(join(folder, String(size)), size, note))
    const perQuestion: { name: string; samples: Samples; also: Also; base: string; most: string }[] = []
    for (const { name, operation, body } of QUESTIONS) {
      const answered = new Map<string, number[]>()
      const nameFor = (size: number) => `${name}, ${size.toLocaleString('en')}`
      const contenders: Contender[] = clouds.map((cloud) => ({
        name: nameFor(cloud.size),
        slice: async () => {
          const bodies = Array.from({ length: calls }, () =>
            JSON.stringify({ storeId: cloud.storeId, ...body(random, cloud.size, cloud.cursors) }),
          )
          const counted = answered.get(nameFor(cloud.size)) ?? []
          answered.set(nameFor(cloud.size), counted)
          return cpuTime(calls, async () => {
            for (const each of bodies) counted.push(await cloud.call(operation, each))
          })
        },
      }))
      const samples = await takeTurns(contenders, rounds, random, warmUps)
      const also = Object.fromEntries(
        [...answered].map(([of, counts]) => [of, { 'products in the answer': sumOf(counts) / counts.length }]),
      )
      perQuestion.push({ name, samples, also, base: nameFor(smallest), most: nameFor(largest) })
    }
    return {
      title: `8  One store with ${sizes.map((size) => size.toLocaleString('en')).join(', ')} products (SQLite)`,
      counts: 'CPU time of the process, all threads, per call without a socket',
      rows: perQuestion.flatMap(({ samples, base, also }) => rowsOf(samples, base, also)),
      targets: perQuestion.map(({ samples, base, most }) => costsAtMost(samples, most, base, LIMIT)),
      notes: clouds
        .filter(({ perProduct }) => perProduct > 0)
        .map(
          ({ size, perProduct }) =>
            `${size.toLocaleString('en')} products were inserted, ${perProduct.toFixed(0)} µs each`,
        ),
    }
  } finally {
    for (const cloud of clouds) await cloud.stop()
  }
}

interface FilledCloud {
  size: number
  storeId: string
  /** Product ids from all parts of the store except its last page. */
  cursors: string[]
  /** Wall time to insert one product, µs. */
  perProduct: number
  /** Returns the number of products in the answer. */
  call(operation: string, body: string): Promise<number>
  stop(): Promise<void>
}

/** Starts a cloud with its own database and a store with this number of products. */
async function openFilled(data: string, size: number, note: (text: string) => void): Promise<FilledCloud> {
  const { running, platform } = await openBenchCloud(data)
  const { database, cloud, stop } = running
  const { tenant, key } = await benchAccount(database, platform)
  const storeId = await addStore(database, tenant, platform)
  const from = platform.clock.elapsed()
  await fillStore(database, { tenant, storeId, from: 0, to: size }, platform, (done) => {
    if (done % 50_000 === 0) note(`${done.toLocaleString('en')} of ${size.toLocaleString('en')} products are in`)
  })
  const perProduct = ((platform.clock.elapsed() - from) * 1_000) / size
  const ids = await database.reads
    .selectFrom('store_product')
    .select('product_id')
    .where('store_id', '=', storeId)
    .orderBy('product_id')
    .execute()
  const step = Math.max(1, Math.floor(ids.length / 1_000))
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  return {
    size,
    storeId,
    cursors: ids
      .slice(0, -60)
      .filter((_, i) => i % step === 0)
      .map((row) => row.product_id),
    perProduct,
    async call(operation, body) {
      const response = await cloud.app.request(`/api/v1/${operation}`, { method: 'POST', headers, body })
      const text = await response.text()
      if (response.status !== 200 || !text.includes('49999'))
        throw new Error(`${operation} answered ${response.status}: ${text.slice(0, 300)}`)
      return text.split('"ean":').length - 1
    },
    async stop() {
      await stop()
      rmSync(data, { recursive: true, force: true })
    },
  }
}
