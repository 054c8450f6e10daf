import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { realPlatform } from '../bin/platform.ts'
import { catalogueSize } from './catalogue/catalogue-size.ts'
import { memory } from './catalogue/memory.ts'
import { productByEan } from './catalogue/product-by-ean.ts'
import { productImport } from './catalogue/product-import.ts'
import { productInsert } from './catalogue/product-insert.ts'
import { productPage } from './catalogue/product-page.ts'
import { analyticsRead } from './retail/analytics-read.ts'
import { checkoutJourney } from './retail/checkout-journey.ts'
import { salesExport } from './retail/sales-export.ts'
import { webhookFanOut } from './retail/webhook-fan-out.ts'
import type { Figure, Result } from './figure.ts'
import { drain } from './drain.ts'
import { gate } from './gate.ts'
import { grantToRelay } from './grant-to-relay.ts'
import { describeMachine } from './machine.ts'
import { recovery } from './recovery.ts'
import { storeDay } from './store-day.ts'
import { asText } from './report.ts'
import { tagReads } from './tag-reads.ts'
import { verifyAndRedeem } from './verify-and-redeem.ts'
import { verifyProtectedItem } from './verify-protected-item.ts'
import { verifyToken } from './verify-token.ts'

const AUTHORIZATION = [verifyToken, verifyAndRedeem, verifyProtectedItem]
const CATALOGUE = [productPage, productByEan, productInsert, memory, catalogueSize, productImport]
const RETAIL = [checkoutJourney, webhookFanOut, analyticsRead, salesExport]
const DOOR = [gate, tagReads, grantToRelay, recovery, drain, storeDay]
const FIGURES: readonly Figure[] = [...AUTHORIZATION, ...CATALOGUE, ...RETAIL, ...DOOR]

const HELP = `Measures untag beside the least that the same work can cost, in one run on one machine.

  npm run bench -- [--quick] [--json FILE] [--folder DIR] [FIGURE …]

  --quick        a minute or two, for CI; the figures are less steady
  --vendure      measures Vendure beside the catalogue; the first time it is installed into var/peers/vendure (about 170 MB, some minutes)
  --json FILE    writes the result with what it was measured on
  --folder DIR   where the databases lie while it runs, on the disk that is to be measured (var/bench)
  FIGURE         ${FIGURES.map((f) => f.name).join(', ')}; all when none is named

A missed target is printed and is no failure: the exit code is 1 only when something did not run.
`

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'string' },
      vendure: { type: 'boolean', default: false },
      folder: { type: 'string', default: 'var/bench' },
      help: { type: 'boolean', default: false },
    },
    allowPositionals: true,
  })
  if (values.help) return void process.stdout.write(HELP)
  const unknown = positionals.find((name) => !FIGURES.some((f) => f.name === name))
  if (unknown !== undefined) throw new Error(`there is no figure ${unknown}; see --help`)
  const base = resolve(values.folder)
  mkdirSync(base, { recursive: true })
  const machine = describeMachine(base)
  const say = (text: string) => void process.stdout.write(`${text}\n`)
  const { cpu, cores, node, sqlite, fileSystem, load } = machine
  say(`${cpu}, ${cores} cores, Node ${node}, SQLite ${sqlite}, ${fileSystem}, load ${load.toFixed(1)}\n`)
  if (fileSystem === 'tmpfs')
    say('note   the databases lie in memory, where a durable commit costs nothing: give a folder on a disk\n')
  const { random } = realPlatform()
  const note = (text: string) => void process.stderr.write(`… ${text}\n`)
  const results: Record<string, Result> = {}
  for (const figure of FIGURES.filter((f) => positionals.length === 0 || positionals.includes(f.name))) {
    const folder = join(base, `${figure.name}-${process.pid}`)
    mkdirSync(folder)
    try {
      const result = await figure.run({ quick: values.quick, vendure: values.vendure, folder, random, note })
      results[figure.name] = result
      say(asText(result))
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  if (values.json === undefined) return
  const whole = { at: new Date().toISOString(), quick: values.quick, machine, figures: results }
  writeFileSync(values.json, `${JSON.stringify(whole, null, 2)}\n`)
}

try {
  await main()
} catch (error) {
  process.stderr.write(`${String((error as Error).stack ?? error)}\n`)
  process.exitCode = 1
}
