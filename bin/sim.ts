import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { campaign, fewestTroubles, type CampaignResult } from '../simulators/world/campaign.ts'
import { INVARIANTS } from '../simulators/world/core.ts'
import { makeShop, type Shop } from '../simulators/world/genesis.ts'
import { askCryptoOnce } from '../simulators/world/pure-crypto.ts'
import { runSeed, type SeedResult } from '../simulators/world/run-seed.ts'
import { isTrouble, TROUBLES, type Trouble } from '../simulators/world/troubles.ts'
import { huntBugs } from './sim-bugs.ts'

const HELP = `Runs the real cloud and real agents in simulated worlds, where everything fails that can, and checks what must always hold.

  npm run sim -- [--seeds N] [--first N] [--liveness] [--troubles LIST] [--json]
  npm run sim -- --seed N [--trace] [--liveness] [--troubles LIST]
  npm run sim -- --bugs [--seeds N] [--only NAME]

  --seeds N       how many worlds (200); with --bugs: at most for each bug (500)
  --first N       the first seed (1)
  --seed N        this world alone
  --trace         everything that happened in it
  --troubles LIST what may go wrong, instead of what the seed says: none, or of ${TROUBLES.join(',')}
  --liveness      longer trouble; once all is well everything must arrive within half an hour
  --bugs          plants known bugs, one after the other, and tells with which seed each was found
  --json          the result as JSON on stdout

Exit code 1 when anything that must hold did not.
`

const LAST_LINES = 60
const ALL_LINES = 1_000_000
const TWICE_EVERY = 100

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string' },
      first: { type: 'string', default: '1' },
      seed: { type: 'string' },
      trace: { type: 'boolean', default: false },
      troubles: { type: 'string' },
      liveness: { type: 'boolean', default: false },
      bugs: { type: 'boolean', default: false },
      only: { type: 'string' },
      'until-first': { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const { liveness, json, trace } = values
  if (values.help) {
    process.stdout.write(HELP)
    return true
  }
  if (values.bugs) return huntBugs({ seeds: numberOf(values.seeds, 500), only: values.only, json })
  askCryptoOnce()
  const shop = await makeShop(existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
  try {
    const troubles = values.troubles?.split(',').filter((name) => isTrouble(name))
    if (values.seed !== undefined) {
      const result = await runSeed(shop, { seed: numberOf(values.seed, 1), liveness, keepLines: trace ? ALL_LINES : LAST_LINES, ...(troubles && { troubles }) })
      if (trace) process.stdout.write(`${result.lines.join('\n')}\n`)
      process.stdout.write(json ? `${JSON.stringify(result)}\n` : describeSeed(result))
      return result.violations.length === 0
    }
    return await runMany(shop, { seeds: numberOf(values.seeds, 200), first: numberOf(values.first, 1), liveness, json, untilFirst: values['until-first'], troubles })
  } finally {
    shop.remove()
  }
}

interface Many {
  seeds: number
  first: number
  liveness: boolean
  json: boolean
  untilFirst: boolean
  troubles: Trouble[] | undefined
}

async function runMany(shop: Shop, { seeds, first, liveness, json, untilFirst, troubles }: Many): Promise<boolean> {
  const began = process.cpuUsage()
  const isShown = process.stderr.isTTY
  const ran = await campaign(shop, {
    firstSeed: first,
    seeds,
    liveness,
    twiceEvery: TWICE_EVERY,
    untilFirst,
    troubles,
    onSeed(result, count) {
      if (isShown) process.stderr.write(`\r${count} of ${seeds} worlds, seed ${result.seed} `)
      if (result.violations.length > 0) process.stderr.write(`${isShown ? '\n' : ''}${describeSeed(result)}`)
    },
  })
  if (isShown) process.stderr.write('\n')
  const used = process.cpuUsage(began)
  const cpuSeconds = (used.user + used.system) / 1e6
  // What a bug is found by is enough for who plants it; a person wants to see how it came to that.
  const worst = untilFirst ? undefined : ran.failed[0]
  const smallest = worst && (await fewestTroubles(shop, worst, liveness, LAST_LINES))
  if (json) process.stdout.write(`${JSON.stringify({ ...ran, failed: ran.failed.map((result) => ({ ...result, lines: result.lines.slice(-LAST_LINES) })), cpuSeconds, mode: liveness ? 'liveness' : 'safety' })}\n`)
  else process.stdout.write(describeCampaign(ran, cpuSeconds))
  if (smallest && !json) process.stdout.write(`\nseed ${smallest.seed} with the fewest troubles (--troubles ${smallest.troubles.join(',') || 'none'}):\n${smallest.lines.join('\n')}\n`)
  return ran.failed.length === 0 && ran.unlike.length === 0
}

function describeSeed({ seed, hash, steps, virtualMs, violations, troubles }: SeedResult): string {
  const head = `seed ${seed}  ${hash}  ${steps} steps, ${Math.round(virtualMs / 1_000)} s of its time, troubles: ${troubles.join(',') || 'none'}\n`
  return head + violations.map((v) => `  ${v.invariant} (${INVARIANTS[v.invariant]}) at ${v.atMs / 1_000} s: ${v.detail}\n`).join('')
}

function describeCampaign({ seeds, steps, virtualMs, failed, unlike, ranTwice }: CampaignResult, cpuSeconds: number): string {
  const speed = `${(seeds / Math.max(cpuSeconds, 0.001)).toFixed(1)} worlds per second of CPU time`
  const lines = [
    `${seeds} worlds, ${steps} steps, ${(virtualMs / 3_600_000).toFixed(1)} hours of their time; ${speed}`,
    `${ranTwice} ran twice, ${unlike.length === 0 ? 'each the same both times' : `not the same: seeds ${unlike.join(', ')}`}`,
    failed.length === 0 ? 'everything held that must hold' : `${failed.length} worlds failed; see one with --seed ${failed[0]?.seed ?? 0} --trace`,
  ]
  return `${lines.join('\n')}\n`
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
