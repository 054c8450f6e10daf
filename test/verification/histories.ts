import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { whyNoPostgres } from './kills/postgres-server.ts'
import { withMutant } from './kills/kill-mutants.ts'
import { FAULTS, runHistories, type HistoryFault } from './histories/run.ts'

/** The project folder. This file runs as dist/test/verification/histories.js. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

const HELP = `Runs cloud processes on one PostgreSQL database under random load, and checks what the clients saw.

  node dist/test/verification/histories.js [--seconds N] [--processes N] [--seed N] [--lanes N] [--fault-every N] [--faults LIST] [--bug NAME]

  --seconds      duration of the load (60)
  --processes    number of cloud processes (4)
  --seed         chooses requests and faults (1); the order of answers differs in each run
  --lanes        number of objects with load at the same time (4)
  --fault-every  seconds between two faults; 0: none (5)
  --faults       faults in turn (${FAULTS.join()})
  --bug          runs a mutant of test/verification/kills/kill-mutants.ts or test/verification/histories/history-mutants.ts

Exit code 1 if a check failed. Needs the package postgresql.
`

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '60' },
      processes: { type: 'string', default: '4' },
      seed: { type: 'string', default: '1' },
      lanes: { type: 'string', default: '4' },
      'fault-every': { type: 'string', default: '5' },
      faults: { type: 'string', default: FAULTS.join() },
      bug: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(HELP)
    return true
  }
  const missing = whyNoPostgres()
  if (missing !== undefined) throw new Error(missing)
  const result = await runHistories({
    root: ROOT,
    seconds: numberOf('--seconds', values.seconds, 1, 86_400),
    processes: numberOf('--processes', values.processes, 1, 16),
    seed: numberOf('--seed', values.seed, 0, 999_999_999),
    lanes: numberOf('--lanes', values.lanes, 1, 64),
    faults: faultsOf(values.faults),
    faultEvery: numberOf('--fault-every', values['fault-every'], 0, 3_600),
    ...(values.bug !== undefined && { cloudIn: withMutant(ROOT, values.bug) }),
    onProgress: (text) => void (process.stderr.isTTY && process.stderr.write(`\r${text.padEnd(60)}`)),
  })
  if (process.stderr.isTTY) process.stderr.write('\n')
  const { violations, ...figures } = result
  process.stdout.write(`${JSON.stringify(figures, null, 2)}\n`)
  for (const violation of violations) process.stdout.write(`VIOLATION ${violation}\n`)
  process.stdout.write(violations.length === 0 ? 'no violation\n' : `${violations.length} violations\n`)
  return violations.length === 0
}

function faultsOf(list: string): HistoryFault[] {
  return list.split(',').map((name) => {
    const fault = FAULTS.find((known) => known === name)
    if (fault === undefined) throw new Error(`--faults names ${name}: use ${[...new Set(FAULTS)].join()}`)
    return fault
  })
}

function numberOf(option: string, text: string, least: number, most: number): number {
  const value = Number(text)
  if (!/^\d{1,9}$/.test(text) || value < least || value > most)
    throw new Error(`${option} is ${text}: use a whole number from ${least} to ${most}`)
  return value
}

main().then(
  (isRight) => process.exit(isRight ? 0 : 1),
  (error: unknown) => {
    process.stderr.write(`${(error as Error).message}\n`)
    process.exit(2)
  },
)
