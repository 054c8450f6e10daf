import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { whyNoPostgres } from '../../verification/kills/postgres-server.ts'
import { canPin, CORES, startProgram, type Program } from '../child.ts'
import { FigureUnavailable, rowsOf, type Bench, type Figure, type Result, type Row, type Sizes } from '../figure.ts'
import { withPrograms } from '../http-contender.ts'
import { median, ratios, takeTurns, type Samples } from '../measure.ts'
import {
  loadsOf,
  OPERATIONS,
  PRODUCTS,
  shopsContender,
  type Engine,
  type Load,
  type ShopsContender,
} from './contender.ts'
import type { PreparedShops, ShopsWanted } from './prepare-shops.ts'
import { assertSameRows, SPARE_REQUESTS } from './same-rows.ts'

const NAMES = { bare: 'bare pg', sqlite: 'SQLite', postgres: 'PostgreSQL' } as const

const SHARING = canPin
  ? 'each server on core 0, the client on core 1, PostgreSQL on both'
  : 'servers, client and PostgreSQL share the cores as the system likes'

/**
 * Numbers of requests and purchases are multiples of the number of accounts, because each account sends the same
 * number.
 */
const SIZES = {
  full: { requests: 400, purchases: 96, rounds: 7, warmUps: 2, accounts: 8 },
  quick: { requests: 160, purchases: 48, rounds: 3, warmUps: 1, accounts: 8 },
  smoke: { requests: 8, purchases: 4, rounds: 1, warmUps: 0, accounts: 2 },
} satisfies Sizes

/** Compares four operations over HTTP: on SQLite, on PostgreSQL, and on bare `pg` with the fewest statements. */
export const postgres: Figure = { sizes: SIZES, run }

async function run({ mode, folder, random, note }: Bench): Promise<Result> {
  const missing = whyNoPostgres()
  if (missing !== undefined) throw new FigureUnavailable(missing)
  const { requests, purchases, rounds, warmUps, accounts } = SIZES[mode]
  const loads = loadsOf(accounts)
  return withPrograms(async (keep) => {
    const client = await keep(startProgram('postgres/shops-load.js', CORES.load))
    const slices = rounds + warmUps
    const { bare, sqlite, cloud } = await startEngines(folder, keep, wantedFor(loads, requests * slices))
    const engines = [bare, sqlite, cloud]
    const contenders = OPERATIONS.flatMap((operation) =>
      loads.flatMap((load) =>
        engines.map((engine) => {
          const count = operation.name === 'purchase' ? purchases : requests
          return shopsContender({ engine, load, operation, client }, count)
        }),
      ),
    )
    note('the bare routes are compared with the cloud: both must leave the same rows')
    await assertSameRows(client, bare, cloud)
    const samples = await takeTurns(contenders, rounds, random, warmUps)
    return {
      title: `14 PostgreSQL beside SQLite and beside the fewest statements on bare pg, over HTTP (all commits durable)`,
      counts: `wall time at the client, a purchase is three requests; ratio: cost over that of bare pg; ${SHARING}`,
      rows: tableOf(contenders, samples, rounds),
      targets: [],
      notes: [
        'lock waits: connections that waited for a lock, of all busy connections, in samples every 10 ms',
        'round trips and conflicts hold those of jobs that an operation wakes: a new event is numbered for webhooks',
        'test/bench/postgres/statements.ts lists the statements of bare pg and why each is needed',
      ],
    }
  })
}

/**
 * Number of items of each account. If several accounts send requests, each account releases items. Otherwise only the
 * first account releases items.
 */
function wantedFor(loads: readonly Load[], requests: number): ShopsWanted {
  const accounts = Math.max(...loads.map((load) => load.accounts))
  const items = Array.from({ length: accounts }, (_, i) =>
    loads.reduce((sum, load) => sum + (i < load.accounts ? requests / load.accounts : 0), SPARE_REQUESTS),
  )
  return { items, products: PRODUCTS }
}

async function startEngines(
  folder: string,
  keep: (program: Promise<Program>) => Promise<Program>,
  wanted: ShopsWanted,
): Promise<Record<'bare' | 'sqlite' | 'cloud', Engine>> {
  const server = await keep(startProgram('postgres/server-program.js', CORES.any, [folder]))
  const newDatabase = (name: string) => server.request<string>({ kind: 'database', name })
  const engineOf = async (name: string, file: string, url?: string): Promise<Engine> => {
    const data = join(folder, name.replace(' ', '-'))
    mkdirSync(data)
    const program = await keep(startProgram(file, CORES.server, url === undefined ? [data] : [data, url]))
    const prepared = await program.request<PreparedShops>({ kind: 'shops', shops: wanted })
    return { name, url, program, server: prepared, sent: new Map() }
  }
  return {
    bare: await engineOf(NAMES.bare, 'postgres/bare-pg.js', await newDatabase('bare')),
    sqlite: await engineOf(NAMES.sqlite, 'cloud-program.js'),
    cloud: await engineOf(NAMES.postgres, 'cloud-program.js', await newDatabase('cloud')),
  }
}

/** Creates a table for each operation and load, relative to bare pg. */
function tableOf(contenders: readonly ShopsContender[], samples: Samples, rounds: number): Row[] {
  const rows: Row[] = []
  for (let at = 0; at < contenders.length; at += 3) {
    const group = contenders.slice(at, at + 3)
    const nameOf = (engine: string) => group.find((each) => each.engine.name === engine)?.name ?? engine
    const ofGroup: Samples = new Map(group.map(({ name }) => [name, samples.get(name) ?? []]))
    const also = Object.fromEntries(
      group.map((each) => {
        const share = median(ratios(samples, nameOf(NAMES.sqlite), each.name))
        return [each.name, { 'of SQLite %': share * 100, ...each.also(rounds) }]
      }),
    )
    rows.push(...rowsOf(ofGroup, nameOf(NAMES.bare), also))
  }
  return rows
}
