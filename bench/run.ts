import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import type { Mode, Result } from './figure.ts'
import { LIMITS_MS, runInProcess } from './figure-process.ts'
import { FIGURE_NAMES } from './figures.ts'
import { describeMachine } from './machine.ts'
import { runFigures, type Outcome, type Report } from './run-figures.ts'

const HELP = `Measures untag beside the least that the same work can cost, in one run on one machine.

  npm run bench -- [--quick | --smoke] [--json FILE] [--folder DIR] [FIGURE …]

  --quick        a few minutes; the figures are less steady
  --smoke        about a minute, for CI: shows that every figure runs, and says nothing about speed
  --vendure      measures Vendure beside the catalogue; the first time it is installed into var/peers/vendure (about 170 MB, some minutes)
  --json FILE    writes the results with what they were measured on; the file is written again after every figure
  --folder DIR   where the databases lie while it runs, on the disk that is to be measured (var/bench)
  FIGURE         ${FIGURE_NAMES.join(', ')}; all when none is named

A figure that fails does not stop the others; its message is printed and stands in the JSON. The exit code is then 1.
postgres needs a PostgreSQL server of Debian's package postgresql. Without one it is skipped; if it was named, the exit code is 1.
A missed target is printed and is no failure.
`

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      smoke: { type: 'boolean', default: false },
      json: { type: 'string' },
      vendure: { type: 'boolean', default: false },
      folder: { type: 'string', default: 'var/bench' },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  })
  if (values.help) return void process.stdout.write(HELP)
  const unknown = positionals.find((name) => !FIGURE_NAMES.includes(name))
  if (unknown !== undefined) throw new Error(`there is no figure ${unknown}; see --help`)
  if (values.quick && values.smoke) throw new Error('--quick and --smoke exclude each other: give one of them')
  const mode: Mode = values.smoke ? 'smoke' : values.quick ? 'quick' : 'full'
  const base = resolve(values.folder)
  mkdirSync(base, { recursive: true })
  const machine = describeMachine(base)
  const say = (text: string) => void process.stdout.write(`${text}\n`)
  const warn = (text: string) => void process.stderr.write(`${text}\n`)
  const { cpu, cores, node, sqlite, fileSystem, load } = machine
  say(`${cpu}, ${cores} cores, Node ${node}, SQLite ${sqlite}, ${fileSystem}, load ${load.toFixed(1)}\n`)
  if (fileSystem === 'tmpfs' && mode !== 'smoke')
    say('note   the databases lie in memory, where a durable commit costs nothing: give a folder on a disk\n')
  const keep = (outcome: Outcome) => {
    if (values.json === undefined) return
    const report: Report = { at: new Date().toISOString(), mode, machine, ...outcome }
    writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`)
  }
  const measure = (name: string) => measureIn(base, name, mode, values.vendure)
  const names = FIGURE_NAMES.filter((name) => positionals.length === 0 || positionals.includes(name))
  const { failures, skipped } = await runFigures({ names, mode, measure, keep, say, warn })
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
    // Programs of a figure that was killed may still write for a moment.
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

try {
  await main()
} catch (error) {
  process.stderr.write(`${String((error as Error).stack ?? error)}\n`)
  process.exitCode = 1
}
