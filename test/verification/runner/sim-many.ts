import { writeFileSync } from 'node:fs'
import { fewestFaults } from '../simulation/campaign.ts'
import { runSeed } from '../simulation/run-seed.ts'
import type { Fault } from '../simulation/faults/fault-kinds.ts'
import { describeSeed } from './describe-seed.ts'
import { openShops, runWorker, type WorkerSeedResult } from './sim-worker.ts'

export interface ManyRunsOptions {
  readonly seeds: number
  readonly first: number
  readonly liveness: boolean
  /** Number of parallel processes. */
  readonly jobs: number
  readonly faults: Fault[] | undefined
  /** File for the result. */
  readonly json: string | undefined
}

/** Content of the JSON file (option `json`): the result of many runs. */
export interface CampaignRecord {
  kind: 'safety' | 'liveness'
  seeds: number
  from: number
  /** `detail` is the first line of the violation, shortened. */
  violations: { seed: number; invariant: string; detail: string }[]
  cpuSeconds: number
  worldsPerCpuSecond: number
}

const LAST_LINES = 60
const DETAIL_LENGTH = 200
/** Maximum number of failed runs in the output. */
const SHOWN_LIMIT = 20

/** Runs consecutive seeds in parallel processes. Returns true if there was no violation. */
export async function runMany(many: ManyRunsOptions): Promise<boolean> {
  const { failed } = await new Campaign(many).run()
  const worst = failed.find((f) => f.invariant !== 'determinism' && f.invariant !== 'fault')
  if (worst) await showSmallest(worst.seed, many.liveness, many.faults)
  return failed.length === 0
}

class Campaign {
  readonly #many: ManyRunsOptions
  readonly #workers: number
  /** CPU time of each worker, s. */
  readonly #cpu: number[] = []
  readonly #isShown = process.stderr.isTTY
  readonly #began = Date.now()
  readonly failed: { seed: number; invariant: string; detail: string }[] = []
  #done = 0
  #steps = 0
  #virtualMs = 0
  #ranTwice = 0

  constructor(many: ManyRunsOptions) {
    this.#many = many
    this.#workers = Math.min(many.jobs, many.seeds)
  }

  /** Runs all workers and prints the report. */
  async run(): Promise<this> {
    await Promise.all(Array.from({ length: this.#workers }, (_, worker) => this.#runOne(worker)))
    if (this.#isShown) process.stderr.write('\n')
    this.failed.sort((a, b) => a.seed - b.seed)
    this.#report()
    return this
  }

  async #runOne(worker: number): Promise<void> {
    const { first, seeds, liveness, faults } = this.#many
    const step = this.#workers
    const last = first + seeds - 1
    // A run that ends its process counts as failed. After such a run, a new process continues with the next seed of
    // this worker.
    for (let seed = first + worker; seed <= last;) {
      const rest = Math.floor((last - seed) / step) + 1
      const end = await runWorker({ first: seed, seeds: rest, step, liveness, untilFirst: false, faults }, (ran) =>
        this.#took(worker, ran),
      )
      if (end.why === undefined) return
      this.#done++
      this.#fail(end.seed, 'fault', end.why)
      seed = end.seed + step
    }
  }

  #took(worker: number, ran: WorkerSeedResult): void {
    this.#done++
    this.#steps += ran.steps
    this.#virtualMs += ran.virtualMs
    if (ran.ranTwice) this.#ranTwice++
    this.#cpu[worker] = ran.cpuSeconds
    if (ran.violation) this.#fail(ran.seed, ran.violation.invariant, ran.violation.detail)
    if (ran.isNondeterministic) this.#fail(ran.seed, 'determinism', 'the second run differed')
    // If `npm run prove` started this process, reports the progress to it.
    process.send?.({ done: this.#done })
    if (this.#isShown)
      process.stderr.write(
        `\r${this.#done} of ${this.#many.seeds} runs, ${this.failed.length} failed, ${this.#seconds()} s `,
      )
  }

  #fail(seed: number, invariant: string, detail: string): void {
    this.failed.push({ seed, invariant, detail })
    if (this.failed.length <= SHOWN_LIMIT)
      process.stderr.write(`${this.#isShown ? '\n' : ''}seed ${seed}: ${invariant}: ${detail}\n`)
  }

  #seconds(): number {
    return Math.round((Date.now() - this.#began) / 1_000)
  }

  #report(): void {
    const { liveness, first, json } = this.#many
    const cpuSeconds = this.#cpu.reduce((sum, s) => sum + s, 0)
    const worldsPerCpuSecond = Math.round((this.#done / Math.max(cpuSeconds, 0.001)) * 100) / 100
    const record: CampaignRecord = {
      kind: liveness ? 'liveness' : 'safety',
      seeds: this.#done,
      from: first,
      violations: this.failed.map(({ detail, ...world }) => ({
        ...world,
        detail: detail.split('\n', 1).join('').slice(0, DETAIL_LENGTH),
      })),
      cpuSeconds: Math.round(cpuSeconds * 10) / 10,
      worldsPerCpuSecond,
    }
    if (json !== undefined) writeFileSync(json, `${JSON.stringify(record, null, 2)}\n`)
    process.stdout.write(
      [
        `${this.#done} runs, ${this.#steps} steps, ${(this.#virtualMs / 3_600_000).toFixed(1)} hours of virtual time; ${worldsPerCpuSecond.toFixed(1)} runs per second of CPU time, ${this.#seconds()} s in ${this.#workers} processes`,
        `${this.#ranTwice} ran twice${this.failed.some((f) => f.invariant === 'determinism') ? '' : ', each with equal results'}`,
        this.failed.length === 0
          ? 'no violation'
          : `${this.failed.length} runs failed; see one with --seed ${this.failed[0]?.seed ?? 0}${liveness ? ' --liveness' : ''} --trace`,
        '',
      ].join('\n'),
    )
  }
}

async function showSmallest(seed: number, liveness: boolean, faults: Fault[] | undefined): Promise<void> {
  const shops = openShops()
  try {
    const again = await runSeed(shops, { seed, liveness, keepLines: LAST_LINES, ...(faults && { faults }) })
    const smallest = await fewestFaults(shops, again, liveness, LAST_LINES)
    process.stdout.write(
      `\n${describeSeed(smallest)}with the fewest faults (--troubles ${smallest.faults.join(',') || 'none'}):\n${smallest.lines.join('\n')}\n`,
    )
  } finally {
    await shops.remove()
  }
}
