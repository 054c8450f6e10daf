import { writeFileSync } from 'node:fs'
import { fewestTroubles } from '../simulation/campaign.ts'
import { runSeed } from '../simulation/run-seed.ts'
import type { Trouble } from '../simulation/troubles/troubles.ts'
import { describeSeed } from './sim-texts.ts'
import { openShops, runWorker, type RanSeed } from './sim-worker.ts'

export interface Many {
  readonly seeds: number
  readonly first: number
  readonly liveness: boolean
  /** Processes at once. */
  readonly jobs: number
  readonly troubles: Trouble[] | undefined
  /** A file for the result. */
  readonly json: string | undefined
}

/** What is written down of a campaign, for reports. */
export interface CampaignRecord {
  kind: 'safety' | 'liveness'
  seeds: number
  from: number
  /** `detail`: one line, its beginning. */
  violations: { seed: number; invariant: string; detail: string }[]
  cpuSeconds: number
  worldsPerCpuSecond: number
}

const LAST_LINES = 60
const DETAIL_LENGTH = 200
/** Worlds that are told of one by one; more say nothing new. */
const SHOWN_LIMIT = 20

/** Runs worlds with consecutive seeds in as many processes as there may be. True when all held that must hold. */
export async function runMany({ seeds, first, liveness, jobs, troubles, json }: Many): Promise<boolean> {
  const workers = Math.min(jobs, seeds)
  const cpu: number[] = []
  const failed: { seed: number; invariant: string; detail: string }[] = []
  let [done, steps, virtualMs, ranTwice] = [0, 0, 0, 0]
  const isShown = process.stderr.isTTY
  const began = Date.now()

  function fail(seed: number, invariant: string, detail: string): void {
    failed.push({ seed, invariant, detail })
    if (failed.length <= SHOWN_LIMIT)
      process.stderr.write(`${isShown ? '\n' : ''}seed ${seed}: ${invariant}: ${detail}\n`)
  }

  function took(worker: number, ran: RanSeed): void {
    done++
    steps += ran.steps
    virtualMs += ran.virtualMs
    if (ran.ranTwice) ranTwice++
    cpu[worker] = ran.cpuSeconds
    if (ran.violation) fail(ran.seed, ran.violation.invariant, ran.violation.detail)
    if (ran.isUnlike) fail(ran.seed, 'determinism', 'its second run was another one')
    // To a prover that has started this.
    process.send?.({ done })
    if (isShown)
      process.stderr.write(
        `\r${done} of ${seeds} worlds, ${failed.length} failed, ${Math.round((Date.now() - began) / 1_000)} s `,
      )
  }

  async function runOne(worker: number): Promise<void> {
    const last = first + seeds - 1
    // A world that ends its process is one that failed; the others of this worker go on in another.
    for (let seed = first + worker; seed <= last;) {
      const end = await runWorker(
        {
          first: seed,
          seeds: Math.floor((last - seed) / workers) + 1,
          step: workers,
          liveness,
          untilFirst: false,
          troubles,
        },
        (ran) => took(worker, ran),
      )
      if (end.why === undefined) return
      done++
      fail(end.seed, 'fault', end.why)
      seed = end.seed + workers
    }
  }

  await Promise.all(Array.from({ length: workers }, (_, worker) => runOne(worker)))
  if (isShown) process.stderr.write('\n')
  const cpuSeconds = cpu.reduce((sum, s) => sum + s, 0)
  const worldsPerCpuSecond = Math.round((done / Math.max(cpuSeconds, 0.001)) * 100) / 100
  failed.sort((a, b) => a.seed - b.seed)
  const record: CampaignRecord = {
    kind: liveness ? 'liveness' : 'safety',
    seeds: done,
    from: first,
    violations: failed.map(({ detail, ...world }) => ({
      ...world,
      detail: detail.split('\n', 1).join('').slice(0, DETAIL_LENGTH),
    })),
    cpuSeconds: Math.round(cpuSeconds * 10) / 10,
    worldsPerCpuSecond,
  }
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(record, null, 2)}\n`)
  process.stdout.write(
    [
      `${done} worlds, ${steps} steps, ${(virtualMs / 3_600_000).toFixed(1)} hours of their time; ${worldsPerCpuSecond.toFixed(1)} worlds per second of CPU time, ${Math.round((Date.now() - began) / 1_000)} s in ${workers} processes`,
      `${ranTwice} ran twice${failed.some((f) => f.invariant === 'determinism') ? '' : ', each the same both times'}`,
      failed.length === 0
        ? 'everything held that must hold'
        : `${failed.length} worlds failed; see one with --seed ${failed[0]?.seed ?? 0}${liveness ? ' --liveness' : ''} --trace`,
      '',
    ].join('\n'),
  )
  const worst = failed.find((f) => f.invariant !== 'determinism' && f.invariant !== 'fault')
  if (worst) await showSmallest(worst.seed, liveness, troubles)
  return failed.length === 0
}

async function showSmallest(seed: number, liveness: boolean, troubles: Trouble[] | undefined): Promise<void> {
  const shops = openShops()
  try {
    const again = await runSeed(shops, { seed, liveness, keepLines: LAST_LINES, ...(troubles && { troubles }) })
    const smallest = await fewestTroubles(shops, again, liveness, LAST_LINES)
    process.stdout.write(
      `\n${describeSeed(smallest)}with the fewest troubles (--troubles ${smallest.troubles.join(',') || 'none'}):\n${smallest.lines.join('\n')}\n`,
    )
  } finally {
    await shops.remove()
  }
}
