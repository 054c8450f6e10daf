import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DayRecord } from '../verification/runner/sim-day.ts'
import type { Bench, Figure, Result, Sizes } from './figure.ts'

/** Target: maximum CPU time of a whole store day, s of one core. */
const AIM_S = 60

const SIZES = {
  full: { shoppers: 5_000, hours: 11 },
  quick: { shoppers: 30, hours: 1 },
  smoke: { shoppers: 1, hours: 1 },
} satisfies Sizes

/**
 * Measures the CPU time of a store day: cloud, three agents and the simulation together. Runs in a separate process,
 * because the simulation replaces the signature functions by fast ones.
 */
export const storeDay: Figure = { sizes: SIZES, run }

async function run({ mode, folder, note }: Bench): Promise<Result> {
  const { shoppers, hours } = SIZES[mode]
  const file = join(folder, 'day.json')
  const program = fileURLToPath(new URL('../verification/sim.js', import.meta.url))
  const child = spawn(
    process.execPath,
    [
      '--max-semi-space-size=64',
      program,
      '--day',
      '--shoppers',
      String(shoppers),
      '--hours',
      String(hours),
      '--json',
      file,
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  )
  child.stderr.on('data', (chunk: Buffer) => {
    const line = chunk.toString().trim().split('\n').at(-1)
    if (line) note(line)
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0)
    throw new Error(
      `the store day violated an invariant; repeat it with: npm run sim -- --day --shoppers ${shoppers} --hours ${hours}`,
    )
  const day = JSON.parse(readFileSync(file, 'utf8')) as DayRecord
  const also = {
    's of CPU time': day.cpuSeconds,
    decisions: day.decisions,
    'p50 ms': day.decisionMs.p50,
    'p99 ms': day.decisionMs.p99,
    'units released': day.unitsReleased,
  }
  const microseconds = (day.cpuSeconds * 1e6) / day.shoppers
  return {
    title: `A day of a store (${day.hours} h): 3 agents, ${day.shoppers} shoppers, a while without network, a power cut`,
    counts:
      'CPU time of one process with cloud, agents, oracles and the simulation, per shopper; decisions: from request to response',
    rows: [{ name: 'simulated day', microseconds, perSecond: 1e6 / microseconds, ratio: 1, quartiles: [1, 1], also }],
    targets:
      mode !== 'full'
        ? []
        : [
            {
              text: `the whole day, s of one core: at most ${AIM_S}`,
              measured: day.cpuSeconds,
              limit: AIM_S,
              met: day.cpuSeconds <= AIM_S,
            },
          ],
    notes: [
      'the simulation uses fast signatures, files in memory and all oracles (docs/reference/tests.md)',
      ...(mode !== 'full'
        ? ['a small day: most of its cost does not depend on shoppers, so the whole day cannot be estimated from it']
        : []),
    ],
  }
}
