import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { realPlatform } from '../../host/platform.ts'
import { SIZES, type Size } from './prove/part.ts'
import { partsOf } from './prove/parts.ts'
import { progressLine } from './prove/progress-line.ts'
import { furthest, reportText, withTables, type Report } from './prove/report.ts'
import { loadResult, runParts, stateFile, type ProofContext } from './prove/run-parts.ts'
import { sumOf, writeJson } from './prove/state.ts'

/** The project folder. This file runs as dist/test/verification/prove.js. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const PARTS = partsOf(ROOT)
const STATE = join(ROOT, 'var/prove')
const KEPT_REPORT = join(ROOT, 'test/verification/results.json')
const PAGE = join(ROOT, 'test/verification/results.md')

const HELP = `Tests every promise of untag under faults and reports the results.

  npm run prove -- [--size ci|night] [--part NAME,…] [--jobs N] [--fresh | --go-on]
  npm run prove -- --report

  --size    ci: minutes (default); night: hours
  --part    only these parts: ${PARTS.map((p) => p.name).join(', ')}
  --jobs    number of parallel processes (${availableParallelism()}: the cores of this machine)
  --fresh   ignore the results of a stopped run
  --go-on   keep successful results of earlier code and of test/verification/results.json, with their commits;
            repeat what failed
  --report  write the longest run of each part to test/verification/results.json, and the tables to
            test/verification/results.md

Ctrl-C keeps the results in var/prove; the same command continues. After a code change it starts again, unless --go-on is set.
The report is var/prove/report-SIZE.json. Exit code 1 if a proof failed.
`

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      size: { type: 'string' },
      part: { type: 'string' },
      jobs: { type: 'string', default: String(availableParallelism()) },
      fresh: { type: 'boolean', default: false },
      'go-on': { type: 'boolean', default: false },
      report: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(HELP)
    return 0
  }
  const size = SIZES.find((name) => name === (values.size ?? 'ci'))
  if (!size) throw new Error(`--size is one of ${SIZES.join(', ')}`)
  if (values.report) return writeReport()
  const jobs = Number(values.jobs)
  if (!Number.isInteger(jobs) || jobs < 1 || jobs > 64) throw new Error('--jobs is a whole number from 1 to 64')
  if (values.fresh && values['go-on']) throw new Error('--fresh and --go-on exclude each other')
  return prove(
    {
      size,
      folder: STATE,
      build: buildOf(),
      commit: commitOf(),
      machine: machine(),
      reusesEarlierCode: values['go-on'],
      earlierResults: keptReport()?.parts ?? [],
    },
    values.part?.split(','),
    jobs,
    values.fresh,
  )
}

async function prove(
  place: ProofContext,
  only: readonly string[] | undefined,
  jobs: number,
  fresh: boolean,
): Promise<number> {
  const unknown = only?.find((name) => !PARTS.some((part) => part.name === name))
  if (unknown !== undefined) throw new Error(`there is no part ${unknown}; see --help`)
  const parts = PARTS.filter(({ name }) => only?.includes(name) ?? true)
  if (fresh) for (const part of parts) rmSync(stateFile(part, place), { force: true })
  const { clock } = realPlatform()
  const controller = new AbortController()
  const stop = () => controller.abort()
  // The listener stays registered. The terminal and npm both send Ctrl-C, and without a listener the second signal
  // would end the process before the process stores results.
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  try {
    const proven = await runParts({
      ...place,
      isBuildUnchanged: () => buildOf() === place.build,
      parts,
      jobs,
      clock,
      signal: controller.signal,
      progress: progressLine(process.stderr, clock),
    })
    return proven.every((part) => sumOf(part).violations.length === 0) ? 0 : 1
  } catch (error) {
    if (!controller.signal.aborted) throw error
    process.stderr.write('\nstopped; run the same command to continue\n')
    return 130
  } finally {
    writeJson(reportFile(place.size), reportOf(place))
  }
}

/** Report of all parts, including those that did not run or are unfinished. */
function reportOf(place: ProofContext): Report {
  return {
    at: new Date().toISOString(),
    parts: PARTS.map((part) => ({ ...loadResult(part, place), size: place.size })),
  }
}

function machine(): string {
  return `${cpus()[0]?.model ?? 'unknown'}, ${cpus().length} cores, Node ${process.version}`
}

function reportFile(size: Size): string {
  return join(STATE, `report-${size}.json`)
}

function keptReport(): Report | undefined {
  return existsSync(KEPT_REPORT) ? (JSON.parse(readFileSync(KEPT_REPORT, 'utf8')) as Report) : undefined
}

/** Writes the results of this machine together with those of test/verification/results.json. */
function writeReport(): number {
  const made = SIZES.map(reportFile)
    .filter((file) => existsSync(file))
    .map((file) => JSON.parse(readFileSync(file, 'utf8')) as Report)
  const [first, ...more] = [...made, keptReport()].filter((report) => report !== undefined)
  if (!first) return 1
  const report = furthest([first, ...more])
  writeFileSync(KEPT_REPORT, reportText(report))
  writeFileSync(PAGE, withTables(readFileSync(PAGE, 'utf8'), report))
  return 0
}

/** Hash of all sources at the last build (scripts/prepare.js). */
function buildOf(): string {
  const stamp = join(ROOT, 'dist/.built')
  return existsSync(stamp) ? readFileSync(stamp, 'utf8') : ''
}

function commitOf(): string {
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  try {
    return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', '--untracked-files=no') === '' ? '' : '+'}`
  } catch {
    return ''
  }
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${(error as Error).stack}\n`)
    process.exit(2)
  },
)
