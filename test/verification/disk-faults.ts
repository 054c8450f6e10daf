import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { inFaultStore } from './disk-faults/fault-store.ts'
import { fullDisk } from './disk-faults/full-disk.ts'
import { powerLoss, type PowerLossOptions } from './disk-faults/power-loss/power-loss.ts'
import { whyNoStrace } from './disk-faults/strace.ts'
import { syscallSweep } from './disk-faults/syscall-sweep.ts'

const HELP = `Runs the real programs on failing disks and checks the promises. Needs strace.

  node dist/test/verification/disk-faults.js power-loss [--states N] [--purchases N] [--seed N] [--json FILE]
  node dist/test/verification/disk-faults.js sweep [--json FILE]
  node dist/test/verification/disk-faults.js full-disk [--json FILE]

  power-loss  records writes and flushes, simulates a power cut at every moment, and opens the result
  sweep       fails each system call to the disk once, in the agent and in the cloud
  full-disk   fills both disks during a run, and frees them again

Exit code 1 if a promise was broken.
`

async function main(): Promise<boolean> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      states: { type: 'string', default: '5000' },
      purchases: { type: 'string', default: '30' },
      seed: { type: 'string', default: '1' },
      json: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  })
  const [what] = positionals
  if (values.help || what === undefined) {
    process.stdout.write(HELP)
    return values.help
  }
  const missing = whyNoStrace()
  if (missing !== undefined) throw new Error(missing)
  const result = await run(what, {
    states: numberOf(values.states),
    purchases: numberOf(values.purchases),
    seed: numberOf(values.seed),
  })
  if (process.stderr.isTTY) process.stderr.write('\n')
  const text = `${JSON.stringify(result, null, 2)}\n`
  if (values.json === undefined) process.stdout.write(text)
  else writeFileSync(values.json, text)
  return result.violations.length === 0
}

function run(what: string, options: PowerLossOptions): Promise<{ violations: readonly unknown[] }> {
  const show = (text: string) => void (process.stderr.isTTY && process.stderr.write(`\r${text.padEnd(60)}`))
  if (what === 'power-loss')
    return powerLoss({ ...options, onProgress: (done, total) => show(`${done} of ${total} states`) })
  if (what === 'sweep')
    return inFaultStore((store) => syscallSweep(store, { onProgress: (done, point) => show(`${done} runs, ${point}`) }))
  if (what === 'full-disk') return inFaultStore(fullDisk)
  throw new Error(`unknown command ${what}: --help lists the commands`)
}

function numberOf(text: string): number {
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
