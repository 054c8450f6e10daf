import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { campaign } from '../simulation/campaign.ts'
import { shopsIn, type Shops } from '../simulation/nodes/shops.ts'
import { signQuickly } from '../simulation/virtual/quick-signatures.ts'
import type { Fault } from '../simulation/faults/fault-kinds.ts'
import { renderPlainly } from '../../../host/http-server.ts'

/**
 * Options of a worker process. Seeds run in separate processes, so that a crash, a hang or a mutant affects only one
 * process. The worker prints a JSON line per run.
 */
export interface WorkerOptions {
  readonly first: number
  readonly seeds: number
  /** Distance between two seeds of this worker, which equals the number of workers. */
  readonly step: number
  readonly liveness: boolean
  readonly untilFirst: boolean
  readonly faults?: readonly Fault[] | undefined
  /** Name of the mutant to load. */
  readonly mutant?: string
}

/** Result of one run. */
export interface WorkerSeedResult {
  readonly seed: number
  readonly steps: number
  readonly virtualMs: number
  /** True if a second run of the same seed gave another result. */
  readonly isNondeterministic: boolean
  readonly ranTwice: boolean
  readonly violation?: { readonly invariant: string; readonly detail: string }
  /** CPU time of the worker so far, without the creation of the shop, s. */
  readonly cpuSeconds: number
}

/** How a worker ended. `why` is undefined if the worker has finished its seeds. */
export interface WorkerEnd {
  readonly why: string | undefined
  /** Seed of the last run. */
  readonly seed: number
}

const TWICE_EVERY = 100
/** Time without output after which a worker counts as hung, ms. A run takes about 1,000 ms. */
const SILENCE_MS = 300_000
const STDERR_KEPT = 2_000

/** Prepares the process before it creates its first key or page. */
export function prepareToSimulate(): void {
  renderPlainly()
  signQuickly()
}

/** Opens the shops for simulated runs. */
export function openShops(): Shops {
  prepareToSimulate()
  return shopsIn(existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
}

/** Runs the seeds of this worker and prints a JSON line for each. */
export async function runWorkerSeeds({
  first,
  seeds,
  step,
  liveness,
  untilFirst,
  faults,
}: WorkerOptions): Promise<void> {
  const shops = openShops()
  const began = process.cpuUsage()
  try {
    await campaign(shops, {
      firstSeed: first,
      seeds,
      step,
      liveness,
      twiceEvery: TWICE_EVERY,
      untilFirst,
      faults,
      onSeed({ seed, steps, virtualMs, violations }, { isNondeterministic, ranTwice }) {
        const used = process.cpuUsage(began)
        const [violation] = violations
        const line: WorkerSeedResult = {
          seed,
          steps,
          virtualMs,
          isNondeterministic,
          ranTwice,
          cpuSeconds: (used.user + used.system) / 1e6,
          ...(violation && { violation: { invariant: violation.invariant, detail: violation.detail } }),
        }
        process.stdout.write(`${JSON.stringify(line)}\n`)
      },
    })
  } finally {
    await shops.remove()
  }
}

/** Starts a worker and calls `onSeed` after each run. Never rejects: `why` describes a crash or a hang. */
export function runWorker(options: WorkerOptions, onSeed: (ran: WorkerSeedResult) => void): Promise<WorkerEnd> {
  const child = spawn(process.execPath, argumentsOf(options), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...(options.mutant !== undefined && { UNTAG_SIM_BUG: options.mutant }) },
  })
  let seed = options.first
  let rest = ''
  let err = ''
  let why: string | undefined
  let silence = setTimeout(giveUp, SILENCE_MS)

  function giveUp(): void {
    why = `no output for ${SILENCE_MS / 1_000} s`
    child.kill('SIGKILL')
  }

  child.stdout.on('data', (chunk: Buffer) => {
    clearTimeout(silence)
    silence = setTimeout(giveUp, SILENCE_MS)
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const ran = JSON.parse(line) as WorkerSeedResult
      seed = ran.seed + options.step
      onSeed(ran)
    }
  })
  child.stderr.on('data', (chunk: Buffer) => void (err = (err + chunk.toString()).slice(-STDERR_KEPT)))
  return new Promise((resolve) => {
    const end = (code: number | null, error?: Error) => {
      clearTimeout(silence)
      if (code !== 0) why ??= error?.message ?? `the process ended: ${err.trim() || `code ${code}`}`
      resolve({ why, seed })
    }
    child.once('error', (error) => end(null, error))
    child.once('close', (code) => end(code))
  })
}

function argumentsOf({ first, seeds, step, liveness, untilFirst, faults, mutant }: WorkerOptions): string[] {
  return [
    '--max-semi-space-size=64',
    ...(mutant === undefined ? [] : ['--import', new URL('../load-mutant.js', import.meta.url).href]),
    fileURLToPath(new URL('../sim.js', import.meta.url)),
    '--worker',
    '--first',
    String(first),
    '--seeds',
    String(seeds),
    '--step',
    String(step),
    ...(liveness ? ['--liveness'] : []),
    ...(untilFirst ? ['--until-first'] : []),
    ...(faults === undefined ? [] : ['--troubles', faults.join(',') || 'none']),
  ]
}
