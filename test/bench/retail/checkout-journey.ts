import { canPin, CORES, startProgram, type Program } from '../child.ts'
import type { PreparedCatalogue } from '../cloud-program.ts'
import { ratesAtLeast, rowsOf, type Bench, type Figure, type Result, type Sizes } from '../figure.ts'
import { benchProduct } from '../catalogue/products.ts'
import { withPrograms } from '../http-contender.ts'
import { takeTurns, type Contender } from '../measure.ts'
import type { JourneyQuestion } from './buy-all.ts'

const NAMES = { bare: 'bare Hono, three commits', ours: 'checkIn, startCheckout, paid' }
const CONNECTIONS = 16
const PRODUCTS = 1_000
/** Minimum ratio of the cloud's rate to that of the bare routes. */
const SHARE = 0.4

const SIZES = {
  full: { journeys: 1_000, rounds: 9, warmUps: 2 },
  quick: { journeys: 200, rounds: 3, warmUps: 2 },
  smoke: { journeys: 16, rounds: 1, warmUps: 0 },
} satisfies Sizes

/**
 * Measures a whole purchase over HTTP, from check-in to SUCCESS. Compares the purchase with three routes that only
 * write one durable row each.
 */
export const checkoutJourney: Figure = { sizes: SIZES, run }

async function run({ mode, folder, random }: Bench): Promise<Result> {
  const { journeys, rounds, warmUps } = SIZES[mode]
  return withPrograms(async (keep) => {
    const start = (file: string, core: number, args: string[] = []) => keep(startProgram(file, core, args))
    const load = await start('retail/journey-load.js', CORES.load)
    const bare = await start('peers/bare-journey.js', CORES.server, [folder])
    const cloud = await start('cloud-program.js', CORES.server, [folder])
    const { storeId, ...ours } = await cloud.request<PreparedCatalogue>({ kind: 'catalogue', products: PRODUCTS })
    let next = 0
    const contender = (
      name: string,
      server: Program,
      address: Omit<JourneyQuestion, 'storeId' | 'eans' | 'connections'>,
    ): Contender & { cpu: number[] } => {
      const cpu: number[] = []
      return {
        name,
        cpu,
        async slice() {
          const eans = Array.from({ length: journeys }, () => benchProduct(next++ % PRODUCTS).ean)
          const before = await server.request<NodeJS.CpuUsage>({ kind: 'cpu' })
          const microseconds = await load.request<number>({
            ...address,
            storeId,
            eans,
            connections: CONNECTIONS,
          } satisfies JourneyQuestion)
          const after = await server.request<NodeJS.CpuUsage>({ kind: 'cpu' })
          cpu.push((after.user + after.system - before.user - before.system) / journeys)
          return microseconds / journeys
        },
      }
    }
    const contenders = [
      contender(NAMES.bare, bare, await bare.request({ kind: 'prepare' })),
      contender(NAMES.ours, cloud, ours),
    ]
    const samples = await takeTurns(contenders, rounds, random, warmUps)
    const also = Object.fromEntries(
      contenders.map(({ name, cpu }) => [
        name,
        { 'server CPU µs': cpu.slice(-rounds).reduce((a, b) => a + b, 0) / rounds },
      ]),
    )
    return {
      title: `10 A purchase over HTTP, from check-in to SUCCESS, ${CONNECTIONS} connections (SQLite, synchronous=FULL)`,
      counts: `wall time at the client per purchase of three requests; ${canPin ? 'each server on core 0, the client on core 1' : 'servers and client share the cores as the system likes'}`,
      rows: rowsOf(samples, NAMES.bare, also),
      targets: [ratesAtLeast(samples, NAMES.ours, NAMES.bare, SHARE)],
      notes: [],
    }
  })
}
