import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runOutage } from './outage/run.ts'

/** The project folder. This file runs as dist/test/verification/till-outage.js. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

const HELP = `Sells at an agent while its cloud is away, kills the agent meanwhile, and compares what the cloud has at the end.

  node dist/test/verification/till-outage.js [--sales N] [--hours N] [--kills N] [--seed N] [--folder DIR]

  --sales   sales of ten tills during the outage (100000)
  --hours   its length; the time jumps from sale to sale (72)
  --kills   kills of the agent by SIGKILL (20)
  --seed    chooses their times (1); what the agent does just then differs in each run
  --folder  folder for ledger and database, on the disk to measure (the folder for temporary files)

Exit code 1 if a sale is lost, doubled or wrong, or a sold tag is not paid. In full size it takes about 12 minutes.
`

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      sales: { type: 'string', default: '100000' },
      hours: { type: 'string', default: '72' },
      kills: { type: 'string', default: '20' },
      seed: { type: 'string', default: '1' },
      folder: { type: 'string', default: tmpdir() },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(HELP)
    return true
  }
  const folder = resolve(values.folder)
  mkdirSync(folder, { recursive: true })
  const result = await runOutage({
    root: ROOT,
    folder,
    sales: numberOf('--sales', values.sales, 10, 250_000),
    hours: numberOf('--hours', values.hours, 1, 72),
    kills: numberOf('--kills', values.kills, 0, 1_000),
    seed: numberOf('--seed', values.seed, 0, 999_999_999),
    onProgress: (text) => void process.stderr.write(`… ${text}\n`),
  })
  process.stdout.write(`${JSON.stringify(result, null, 2)}\n`)
  const { lost, doubled, wrong, unpaidTags } = result
  return lost + doubled + wrong + unpaidTags === 0
}

function numberOf(option: string, text: string, min: number, max: number): number {
  const value = Number(text)
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new Error(`${option} must be a whole number from ${min} to ${max}`)
}

try {
  process.exitCode = (await main()) ? 0 : 1
} catch (error) {
  process.stderr.write(`${String((error as Error).stack ?? error)}\n`)
  process.exitCode = 1
}
