import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Mode, Result } from './figure.ts'
import { LIMITS_MS, runInProcess } from './figure-process.ts'
import { FIGURE_NAMES } from './figures.ts'
import { describeMachine } from './machine.ts'
import { runFigures, type Outcome, type Report } from './run-figures.ts'
import { SCALE_FIGURES } from './scale/scale-rows.ts'
import { scaleTable, writeScale } from './scale/scale-table.ts'

const HELP = `Measures untag, and minimal programs that do the same work, in one run on one machine.

  npm run bench -- [--quick | --smoke] [--json FILE] [--folder DIR] [FIGURE …]
  npm run bench -- --scale [--smoke] [--million] [--write]

  --quick        a few minutes; the figures are less steady
  --smoke        about a minute, for CI: tests that every figure runs, without a result about speed
  --vendure      also measures Vendure for the catalogue figures; the first run installs it into var/peers/vendure (about 170 MB, some minutes)
  --scale        the table of aims past one machine, from quick runs of ${SCALE_FIGURES.join(', ')}
  --million      with --scale: measures the search with 1,000,000 products too (about 15 minutes and 2 GB more)
  --write        with --scale: stores the table in docs/performance.md
  --json FILE    writes the results and a description of the machine; rewritten after every figure
  --folder DIR   folder for the databases, on the disk to measure (default var/bench)
  FIGURE         ${FIGURE_NAMES.join(', ')}; default: all

A figure that fails does not stop the others; its message is printed and written to the JSON file. The exit code is then 1.
The figure postgres needs the PostgreSQL server of Debian's package postgresql. Without it the figure is skipped. If it was named on the command line, the exit code is then 1.
A missed target is printed but is not a failure.
`

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      smoke: { type: 'boolean', default: false },
      json: { type: 'string' },
      scale: { type: 'boolean', default: false },
      million: { type: 'boolean', default: false },
      write: { type: 'boolean', default: false },
      vendure: { type: 'boolean', default: false },
      folder: { type: 'string', default: 'var/bench' },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  })
  if (values.help) return void process.stdout.write(HELP)
  const unknown = positionals.find((name) => !FIGURE_NAMES.includes(name))
  if (unknown !== undefined) throw new Error(`there is no figure ${unknown}; see --help`)
  if (values.quick && values.smoke) throw new Error('--quick and --smoke exclude each other: use one of them')
  if ((values.million || values.write) && !values.scale) throw new Error('--million and --write need --scale')
  if (values.scale && positionals.length > 0) throw new Error('--scale runs its own figures: name none')
  const mode: Mode = values.smoke ? 'smoke' : values.quick || values.scale ? 'quick' : 'full'
  const base = resolve(values.folder)
  mkdirSync(base, { recursive: true })
  const machine = describeMachine(base)
  const say = (text: string) => void process.stdout.write(`${text}\n`)
  const warn = (text: string) => void process.stderr.write(`${text}\n`)
  const { cpu, cores, node, sqlite, fileSystem, load } = machine
  say(`${cpu}, ${cores} cores, Node ${node}, SQLite ${sqlite}, ${fileSystem}, load ${load.toFixed(1)}\n`)
  if (fileSystem === 'tmpfs' && mode !== 'smoke')
    say(
      'note   the databases are in memory, where a durable commit costs nothing: choose a folder on a disk with --folder\n',
    )
  const reportOf = (outcome: Outcome): Report => ({ at: new Date().toISOString(), mode, machine, ...outcome })
  const keep = (outcome: Outcome) => {
    if (values.json === undefined) return
    const report = reportOf(outcome)
    writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`)
  }
  const modeOf = (name: string) => (values.million && name === 'catalogue-size' ? 'full' : mode)
  const measure = (name: string) => measureIn(base, name, modeOf(name), values.vendure)
  const wanted: readonly string[] = values.scale ? SCALE_FIGURES : positionals
  const names = FIGURE_NAMES.filter((name) => wanted.length === 0 || wanted.includes(name))
  const outcome = await runFigures({ names, mode, measure, keep, say, warn })
  const { failures, skipped } = outcome
  if (values.scale) say(scaleTable(reportOf(outcome)))
  const isWhole = Object.keys({ ...failures, ...skipped }).length === 0
  if (values.write && isWhole) writeScale(reportOf(outcome))
  if (values.write && !isWhole) warn('nothing is written, because a figure is missing')
  if (Object.keys(failures).length > 0 || positionals.some((name) => name in skipped)) process.exitCode = 1
}

/** Runs a figure in a new empty folder and removes the folder afterwards. */
async function measureIn(base: string, name: string, mode: Mode, vendure: boolean): Promise<Result> {
  const folder = join(base, `${name}-${process.pid}`)
  mkdirSync(folder)
  try {
    const program = fileURLToPath(new URL('figure-program.js', import.meta.url))
    return await runInProcess(program, { name, mode, folder, vendure }, LIMITS_MS[mode])
  } finally {
    // Programs of a killed figure may still write for a short time, so the removal is retried.
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

try {
  await main()
} catch (error) {
  process.stderr.write(`${String((error as Error).stack ?? error)}\n`)
  process.exitCode = 1
}
