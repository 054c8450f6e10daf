import { canPin, CORES, startProgram, type Program } from './child.ts'
import type { PreparedCloud } from './cloud-program.ts'
import { ratesAtLeast, rowsOf, type Bench, type Figure, type Result, type Sizes } from './figure.ts'
import { alsoOf, httpContender, withPrograms, type Address } from './http-contender.ts'
import { takeTurns } from './measure.ts'

const NAMES = {
  bare: 'bare Hono route, a commit a request',
  grouped: 'bare Hono route, group commit',
  ours: 'verifyProtectedItem',
}
const CONNECTIONS = 32
/** Minimum ratio of the cloud's rate to that of the bare route. */
const SHARE = 0.4

const SHARING = canPin
  ? 'each server on core 0, the client on core 1'
  : 'servers and client share the cores as the system likes'

const SIZES = {
  full: { requests: 2_500, rounds: 9 },
  quick: { requests: 1_000, rounds: 3 },
  smoke: { requests: 40, rounds: 1 },
} satisfies Sizes

/** Measures a whole decision over HTTP. Compares the cloud with a minimal route. */
export const verifyProtectedItem: Figure = { sizes: SIZES, run }

async function run({ mode, folder, random, note }: Bench): Promise<Result> {
  const { requests, rounds } = SIZES[mode]
  return withPrograms(async (keep) => {
    const start = (file: string, core: number, args: string[] = []) => keep(startProgram(file, core, args))
    const load = await start('load-program.js', CORES.load)
    const bare = await start('peers/bare-route.js', CORES.server, [folder, 'single'])
    const grouped = await start('peers/bare-route.js', CORES.server, [folder, 'grouped'])
    const ours = await start('cloud-program.js', CORES.server, [folder])
    const items = requests * (rounds + 1)
    note(`creating ${items} purchases`)
    const prepared = await ours.request<PreparedCloud>({ kind: 'prepare', items })
    const contender = (name: string, server: Program, address: Address) => {
      let sent = 0
      const bodies = () => prepared.bodies.slice(sent, (sent += requests))
      return httpContender({
        name,
        server,
        load,
        address,
        connections: CONNECTIONS,
        expected: '"authorized":true',
        bodies,
      })
    }
    const { port, path, authorization } = prepared
    const contenders = [
      contender(NAMES.bare, bare, await bare.request({ kind: 'prepare' })),
      contender(NAMES.grouped, grouped, await grouped.request({ kind: 'prepare' })),
      contender(NAMES.ours, ours, { port, path, authorization }),
    ]
    const samples = await takeTurns(contenders, rounds, random)
    return {
      title: `3  verifyProtectedItem over HTTP, ${CONNECTIONS} connections, every request a fresh grant (SQLite, synchronous=FULL)`,
      counts: `wall time at the client; ${SHARING}`,
      rows: rowsOf(samples, NAMES.bare, alsoOf(contenders, rounds)),
      targets: [ratesAtLeast(samples, NAMES.ours, NAMES.bare, SHARE)],
      notes: [
        'the target is the bare route with one commit per request; the other bare route commits in groups, as the cloud does',
      ],
    }
  })
}
