import { CORES, canPin, startProgram, type Program } from './child.ts'
import type { PreparedCloud } from './cloud-program.ts'
import { ratesAtLeast, rowsOf, type Bench, type Figure, type Result } from './figure.ts'
import type { LoadAnswer, LoadQuestion } from './http-load.ts'
import { takeTurns, type Contender } from './measure.ts'

const NAMES = { bare: 'bare Hono route, one query, rows made JSON', ours: 'fetchProducts' }
const CONNECTIONS = 16
const PAGE = 50
/** Least share of the bare route's rate. */
const SHARE = 0.6

/** What a page of 50 products costs over HTTP, beside a route that does nothing but query and answer. */
export const fetchProducts: Figure = { name: 'fetch-products', run }

async function run({ quick, folder, random, note }: Bench): Promise<Result> {
  const requests = quick ? 1_000 : 4_000
  const rounds = quick ? 3 : 9
  const products = quick ? 1_000 : 10_000
  const programs: Program[] = []
  const start = async (file: string, core: number, args: string[] = []) => {
    const program = await startProgram(file, core, args)
    programs.push(program)
    return program
  }
  try {
    const load = await start('load-program.js', CORES.load)
    const bare = await start('peers/bare-page.js', CORES.server, [folder])
    const ours = await start('cloud-program.js', CORES.server, [folder])
    note(`${products} products are being made`)
    const contender = async (name: string, server: Program): Promise<Contender> => {
      const { bodies, ...target } = await server.ask<PreparedCloud>({ kind: server === ours ? 'catalogue' : 'prepare', products })
      const question: LoadQuestion = { ...target, bodies: Array.from({ length: requests }, () => bodies[0] ?? ''), connections: CONNECTIONS, expected: '"products":[{' }
      return { name, slice: async () => (await load.ask<LoadAnswer>(question)).microseconds / requests }
    }
    const samples = await takeTurns([await contender(NAMES.bare, bare), await contender(NAMES.ours, ours)], rounds, random)
    return {
      title: `4  a page of ${PAGE} out of ${products} products over HTTP, ${CONNECTIONS} connections (SQLite)`,
      counts: `wall time at the client; ${canPin ? 'each server on core 0, the client on core 1' : 'servers and client share the cores as the system likes'}`,
      rows: rowsOf(samples, NAMES.bare),
      targets: [ratesAtLeast(samples, NAMES.ours, NAMES.bare, SHARE)],
      notes: [],
    }
  } finally {
    for (const program of programs) await program.stop()
  }
}
