import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { runSeed } from './simulation/run-seed.ts'
import { isFault, FAULTS, type Fault } from './simulation/faults/fault-kinds.ts'
import { runMutants } from './runner/sim-mutants.ts'
import { showDay } from './runner/sim-day.ts'
import { runMany } from './runner/sim-many.ts'
import { describeSeed } from './runner/describe-seed.ts'
import { openShops, runWorkerSeeds } from './runner/sim-worker.ts'

const HELP = `Simulates a store with the real cloud and real agents, injects faults, and checks the invariants.

  npm run sim -- [--seeds N] [--first N] [--liveness] [--troubles LIST] [--jobs N] [--json FILE]
  npm run sim -- --seed N [--trace] [--liveness] [--troubles LIST]
  npm run sim -- --bugs [--seeds N] [--only NAMES] [--jobs N] [--json FILE]
  npm run sim -- --day [--shoppers N] [--hours N] [--tills reported|silent] [--seed N] [--trace] [--json FILE]

  --seeds N       number of runs (200); with --bugs: at most per mutant (500)
  --first N       the first seed (1)
  --seed N        run this seed only
  --trace         print every event of the run
  --troubles LIST faults to inject instead of those that the seed draws: none, or some of ${FAULTS.join(',')}
  --liveness      longer faults; afterwards everything must recover within half an hour
  --bugs          runs each mutant in its own process and shows which seed finds it
  --day           simulate one store day from 9:00 to 20:00 with three agents, thefts, returns, a network outage and a power cut
  --shoppers N    number of shoppers of the day (5000)
  --hours N       length of the day (11); a shorter day has the same events
  --tills WHICH   80 % of the sales of the day are sales of tills: reported to the agent of the station, or silent
  --jobs N        number of parallel processes (one per core)
  --json FILE     write the result to this file

Exit code 1 if an invariant failed.
`

const LAST_LINES = 60
const ALL_LINES = 1_000_000

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string' },
      first: { type: 'string' },
      seed: { type: 'string' },
      trace: { type: 'boolean', default: false },
      troubles: { type: 'string' },
      liveness: { type: 'boolean', default: false },
      bugs: { type: 'boolean', default: false },
      day: { type: 'boolean', default: false },
      shoppers: { type: 'string' },
      hours: { type: 'string' },
      tills: { type: 'string' },
      only: { type: 'string' },
      jobs: { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean', default: false },
      // Internal options for worker processes (sim-worker.ts).
      worker: { type: 'boolean', default: false },
      step: { type: 'string' },
      'until-first': { type: 'boolean', default: false },
    },
  })
  const { liveness, json, trace } = values
  if (values.help) {
    process.stdout.write(HELP)
    return true
  }
  const jobs = Math.max(1, numberOf(values.jobs, availableParallelism()))
  if (values.day)
    return showDay({
      seed: numberOf(values.seed, 1),
      shoppers: numberOf(values.shoppers, 5_000),
      hours: Math.max(1, numberOf(values.hours, 11)),
      tills: tillsOf(values.tills),
      trace,
      json,
    })
  if (values.bugs) return runMutants({ seeds: numberOf(values.seeds, 500), only: values.only, jobs, json })
  const faults = faultsOf(values.troubles)
  if (values.seed !== undefined) return showSeed({ seed: numberOf(values.seed, 1), liveness, trace, faults })
  const many = { seeds: numberOf(values.seeds, 200), first: numberOf(values.first, 1), liveness, faults }
  if (!values.worker) return runMany({ ...many, jobs, json })
  await runWorkerSeeds({ ...many, step: numberOf(values.step, 1), untilFirst: values['until-first'] })
  return true
}

/** Faults that the option names. Throws if it does not know one of them. */
function faultsOf(troubles: string | undefined): Fault[] | undefined {
  const names = troubles === 'none' ? [] : troubles?.split(',')
  const unknown = names?.find((name) => !isFault(name))
  if (unknown !== undefined) throw new Error(`--troubles: ${unknown} is none of ${FAULTS.join(', ')}`)
  return names?.filter((name) => isFault(name))
}

async function showSeed({
  seed,
  liveness,
  trace,
  faults,
}: {
  seed: number
  liveness: boolean
  trace: boolean
  faults: Fault[] | undefined
}): Promise<boolean> {
  const shops = openShops()
  try {
    const result = await runSeed(shops, {
      seed,
      liveness,
      keepLines: trace ? ALL_LINES : LAST_LINES,
      ...(faults && { faults }),
    })
    if (trace) process.stdout.write(`${result.lines.join('\n')}\n`)
    process.stdout.write(describeSeed(result))
    return result.violations.length === 0
  } finally {
    await shops.remove()
  }
}

function tillsOf(text: string | undefined): 'reported' | 'silent' | undefined {
  if (text === undefined || text === 'reported' || text === 'silent') return text
  throw new Error(`--tills is reported or silent, not ${text}`)
}

function numberOf(text: string | undefined, fallback: number): number {
  if (text === undefined) return fallback
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${text} is not a whole number`)
  return Number(text)
}

main().then(
  (held) => void (process.exitCode = held ? 0 : 1),
  (error: unknown) => {
    process.stderr.write(`${(error as Error).stack}\n`)
    process.exitCode = 2
  },
)
