import { existsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { postgresDatabase, sqliteDatabases } from './fuzz/scene/databases.ts'
import { runRights, WANTED, type RightsFailure } from './fuzz/rights/run.ts'
import { neverSucceeded, runFuzz, type Failure, type RunResult } from './fuzz/run.ts'
import { signQuickly } from './simulation/virtual/quick-signatures.ts'
import { runFuzzMutants } from './runner/run-fuzz-mutants.ts'
import { realPlatform } from '../../host/platform.ts'
import { renderPlainly } from '../../host/http-server.ts'

const HELP = `Sends valid and invalid requests to the cloud's API, in this process and on virtual time, and checks every answer.

  npm run fuzz -- [--requests N] [--seed N] [--run N] [--until-first] [--database-url URL]
  npm run fuzz -- --rights [--requests N] [--seed N] [--run N] [--until-first]
  npm run fuzz -- --bugs [--requests N] [--only NAMES] [--jobs N]

  --requests N        number of requests (20000)
  --seed N            the first seed (1); each run of requests has the next one
  --run N             requests per run; each run starts with new accounts (2500; steps: 400)
  --rights            instead: users, keys, sessions and agents act while their rights end; N counts steps
  --as-found          with --rights: prints all steps of a violation, without a search for fewer
  --until-first       stop at the first violation
  --database-url URL  an empty PostgreSQL database for one run, instead of SQLite in memory
  --bugs              runs each mutant in its own process and shows after how many requests it was found
  --only NAMES        only these mutants, separated by commas
  --jobs N            number of parallel mutants (one per core)

Three accounts with a test and a live side call with all kinds of keys. A violation is printed with the command that shows it again.
Exit code 1 after a violation, or if an operation never succeeded.
`

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      requests: { type: 'string' },
      seed: { type: 'string' },
      run: { type: 'string' },
      'database-url': { type: 'string' },
      'until-first': { type: 'boolean', default: false },
      bugs: { type: 'boolean', default: false },
      rights: { type: 'boolean', default: false },
      'as-found': { type: 'boolean', default: false },
      only: { type: 'string' },
      jobs: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(HELP)
    return true
  }
  const requests = numberOf(values.requests, 20_000)
  const url = values['database-url']
  if (values.bugs)
    return runFuzzMutants({
      requests,
      only: values.only,
      jobs: Math.max(1, numberOf(values.jobs, availableParallelism())),
    })
  const options = { requests, firstSeed: numberOf(values.seed, 1), untilFirst: values['until-first'] }
  renderPlainly()
  signQuickly()
  if (values.rights)
    return fuzzRights({ ...options, run: numberOf(values.run, 400), shrinks: values['as-found'] ? 0 : 60 })
  return fuzz({ ...options, run: url === undefined ? numberOf(values.run, 2_500) : requests, url })
}

const memoryFolder = () => (existsSync('/dev/shm') ? '/dev/shm' : tmpdir())

/** Steps of people whose rights end, in runs of new accounts. */
async function fuzzRights({
  requests,
  run,
  firstSeed,
  untilFirst,
  shrinks,
}: Omit<FuzzOptions, 'url'> & { shrinks: number }): Promise<boolean> {
  const databases = await sqliteDatabases(memoryFolder())
  let [steps, failures] = [0, 0]
  const hashes: string[] = []
  const reached = new Set<string>()
  try {
    for (let seed = firstSeed; steps < requests && !(untilFirst && failures > 0); seed++) {
      const options = { seed, steps: Math.min(run, requests - steps), shrinks }
      const result = await runRights(databases.accounts, () => databases.open(), options)
      if (result.failure) process.stdout.write(`${rightsText(result.failure)}\n`)
      if (result.failure) failures++
      for (const what of result.reached.keys()) reached.add(what)
      steps += options.steps
      hashes.push(result.hash.toString(16).padStart(8, '0').slice(-4))
    }
  } finally {
    databases.remove()
  }
  const missing = steps < 4_000 ? [] : WANTED.filter((what) => !reached.has(what))
  process.stdout.write(`${steps} steps, ${failures} violations; run ${hashes.join('').slice(0, 32)}\n`)
  if (missing.length > 0) process.stdout.write(`never reached: ${missing.join(', ')}\n`)
  return failures === 0 && missing.length === 0
}

function rightsText({ rule, detail, seed, step, steps }: RightsFailure): string {
  const again = `npm run fuzz -- --rights --seed ${seed} --requests ${step}`
  return [`${rule}: ${detail.split('\n')[0]}`, ...steps.map((each) => `  ${each}`), `  again:   ${again}`].join('\n')
}

interface FuzzOptions {
  readonly requests: number
  /** Number of requests per run; `requests` is the number over all runs. */
  readonly run: number
  readonly firstSeed: number
  readonly untilFirst: boolean
  readonly url: string | undefined
}

async function fuzz({ requests, run, firstSeed, untilFirst, url }: FuzzOptions): Promise<boolean> {
  const databases = await (url === undefined ? sqliteDatabases(memoryFolder()) : postgresDatabase(url, realPlatform()))
  const results: RunResult[] = []
  try {
    const isOver = () => untilFirst && results.some(({ failures }) => failures.length > 0)
    for (let sent = 0, seed = firstSeed; sent < requests && !isOver(); seed++) {
      const result = await runFuzz(databases.accounts, await databases.open(), {
        seed,
        requests: Math.min(run, requests - sent),
        ...(untilFirst && { most: 1 }),
      })
      for (const failure of result.failures) process.stdout.write(`${textOf(failure)}\n`)
      results.push(result)
      sent += Math.max(1, result.requests)
    }
  } finally {
    databases.remove()
  }
  return report(results, requests)
}

function textOf({ seed, requests, who, operation, rule, detail, request }: Failure): string {
  return [
    `${rule}: ${operation} (${who})`,
    `  ${detail.replaceAll('\n', '\n  ')}`,
    `  request: ${request}`,
    `  again:   npm run fuzz -- --seed ${seed} --requests ${requests}`,
  ].join('\n')
}

function report(results: readonly RunResult[], requests: number): boolean {
  const sum = (each: (result: RunResult) => number) => results.reduce((total, result) => total + each(result), 0)
  const failures = sum((result) => result.failures.length)
  const answers = new Map<number, number>()
  for (const { statuses } of results)
    for (const [status, n] of statuses) answers.set(status, (answers.get(status) ?? 0) + n)
  const counts = [...answers].toSorted(([a], [b]) => a - b).map(([status, n]) => `${status}: ${n}`)
  const hash = results.map((result) => result.hash.slice(0, 4)).join('')
  process.stdout.write(
    `${sum((result) => result.requests)} requests, ${failures} violations; ${counts.join(', ')}; run ${hash.slice(0, 32)}\n`,
  )
  // A short run does not reach every operation, so it does not report operations that never succeeded.
  const missing = requests < 10_000 ? [] : neverSucceeded(results)
  if (missing.length > 0) process.stdout.write(`never succeeded: ${missing.join(', ')}\n`)
  return failures === 0 && missing.length === 0
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
