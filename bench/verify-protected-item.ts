import { canPin, CORES, startProgram, type Program } from './child.ts'
import type { PreparedCloud } from './cloud-program.ts'
import { ratesAtLeast, rowsOf, type Bench, type Figure, type Result } from './figure.ts'
import type { LoadAnswer, LoadQuestion } from './http-load.ts'
import { median, takeTurns, type Contender } from './measure.ts'

const NAMES = {
  bare: 'bare Hono route, a commit a request',
  grouped: 'bare Hono route, group commit',
  ours: 'verifyProtectedItem',
}
const CONNECTIONS = 32
/** Least share of the bare route's rate. */
const SHARE = 0.4

const SHARING = canPin ? 'each server on core 0, the client on core 1' : 'servers and client share the cores as the system likes'

type Address = Pick<LoadQuestion, 'port' | 'path' | 'authorization'>

/** What a whole decision costs over HTTP, beside a route that does only what cannot be left out. */
export const verifyProtectedItem: Figure = { name: 'verify-protected-item', run }

interface Measured {
  p50: number[]
  p99: number[]
  cpu: number[]
}

async function run({ quick, folder, random, note }: Bench): Promise<Result> {
  const requests = quick ? 1_000 : 2_500
  const rounds = quick ? 3 : 9
  const programs: Program[] = []
  const start = async (file: string, core: number, args: string[] = []) => {
    const program = await startProgram(file, core, args)
    programs.push(program)
    return program
  }
  try {
    const load = await start('load-program.js', CORES.load)
    const bare = await start('peers/bare-route.js', CORES.server, [folder, 'single'])
    const grouped = await start('peers/bare-route.js', CORES.server, [folder, 'grouped'])
    const ours = await start('cloud-program.js', CORES.server, [folder])
    const items = requests * (rounds + 1)
    note(`${items} purchases are being made`)
    const prepared = await ours.ask<PreparedCloud>({ kind: 'prepare', items })
    const measured = new Map<string, Measured>()
    const contender = (name: string, server: Program, target: Address): Contender => {
      const seen: Measured = { p50: [], p99: [], cpu: [] }
      measured.set(name, seen)
      let sent = 0
      return {
        name,
        async slice() {
          const bodies = prepared.bodies.slice(sent, (sent += requests))
          const before = await server.ask<NodeJS.CpuUsage>({ kind: 'cpu' })
          const question: LoadQuestion = { ...target, bodies, connections: CONNECTIONS, expected: '"authorized":true' }
          const { microseconds, p50Ms, p99Ms } = await load.ask<LoadAnswer>(question)
          const after = await server.ask<NodeJS.CpuUsage>({ kind: 'cpu' })
          seen.p50.push(p50Ms)
          seen.p99.push(p99Ms)
          seen.cpu.push((after.user + after.system - before.user - before.system) / bodies.length)
          return microseconds / bodies.length
        },
      }
    }
    const { port, path, authorization } = prepared
    const contenders = [
      contender(NAMES.bare, bare, await bare.ask({ kind: 'prepare' })),
      contender(NAMES.grouped, grouped, await grouped.ask({ kind: 'prepare' })),
      contender(NAMES.ours, ours, { port, path, authorization }),
    ]
    const samples = await takeTurns(contenders, rounds, random)
    const also = Object.fromEntries(
      [...measured].map(([name, { p50, p99, cpu }]) => [
        name,
        { 'server CPU µs': afterWarmUp(cpu), 'p50 ms': afterWarmUp(p50), 'p99 ms': afterWarmUp(p99) },
      ]),
    )
    return {
      title: `3  verifyProtectedItem over HTTP, ${CONNECTIONS} connections, every request a fresh grant (SQLite, synchronous=FULL)`,
      counts: `wall time at the client; ${SHARING}`,
      rows: rowsOf(samples, NAMES.bare, also),
      targets: [ratesAtLeast(samples, NAMES.ours, NAMES.bare, SHARE)],
      notes: ['the target is the bare route with a commit a request; that with group commit is shown because ours commits in groups too'],
    }
  } finally {
    for (const program of programs) await program.stop()
  }
}

function afterWarmUp(values: readonly number[]): number {
  return median(values.slice(1))
}
