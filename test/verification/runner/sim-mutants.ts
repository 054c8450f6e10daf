import { writeFileSync } from 'node:fs'
import { MUTANTS } from '../simulation/mutants/catalogue.ts'
import type { Mutant } from '../simulation/mutants/mutant.ts'
import { runWorker, type WorkerSeedResult } from './sim-worker.ts'

export interface MutantOptions {
  /** Maximum number of runs per mutant. */
  readonly seeds: number
  /** Names of mutants, separated by commas. Default: all mutants. */
  readonly only: string | undefined
  /** Number of parallel mutants. */
  readonly jobs: number
  /** File for the result. */
  readonly json: string | undefined
}

/**
 * Content of the JSON file (option `json`): the result of each mutant. Seeds start at 1, so `seed` is also the number
 * of runs until the mutant was found.
 */
export interface MutantsRecord {
  kind: 'bugs'
  bugs: { name: string; caughtBy: 'safety' | 'liveness' | null; seed: number | null; invariant: string | null }[]
}

interface MutantResult {
  readonly bug: Mutant
  readonly seed: number | undefined
  readonly invariant: string
  readonly detail: string
  readonly cpuSeconds: number
}

/**
 * Loads each mutant in a separate process and simulates until an invariant fails. Resolves to true if every mutant is
 * found.
 */
export async function runMutants({ seeds, only, jobs, json }: MutantOptions): Promise<boolean> {
  const wanted = MUTANTS.filter((bug) => only === undefined || only.split(',').includes(bug.name))
  if (wanted.length === 0)
    throw new Error(`unknown mutant ${only}; the catalogue has ${MUTANTS.map((b) => b.name).join(', ')}`)
  const waiting = [...wanted]
  const found: MutantResult[] = []
  const now = new Map<string, number>()
  const isShown = process.stderr.isTTY
  const show = () =>
    isShown &&
    process.stderr.write(
      `\r\x1b[K${found.length} of ${wanted.length} mutants; ${[...now].map(([name, n]) => `${name} ${n}`).join(', ')}`,
    )

  async function hunter(): Promise<void> {
    for (let bug = waiting.shift(); bug; bug = waiting.shift()) {
      const { name } = bug
      const result = await hunt(bug, seeds, (ran) => {
        now.set(name, ran.seed)
        show()
      })
      now.delete(name)
      found.push(result)
      process.stdout.write(`${isShown ? '\r\x1b[K' : ''}${lineOf(result)}\n`)
    }
  }

  await Promise.all(Array.from({ length: Math.min(jobs, wanted.length) }, hunter))
  const caught = found.filter((f) => f.seed !== undefined).length
  const inOrder = wanted.flatMap((bug) => found.filter((f) => f.bug === bug))
  const record: MutantsRecord = {
    kind: 'bugs',
    bugs: inOrder.map(({ bug, seed, invariant }) => ({
      name: bug.name,
      caughtBy: seed === undefined ? null : bug.liveness ? 'liveness' : 'safety',
      seed: seed ?? null,
      invariant: seed === undefined ? null : invariant,
    })),
  }
  if (json !== undefined) writeFileSync(json, `${JSON.stringify(record, null, 2)}\n`)
  process.stdout.write(`${isShown ? '\r\x1b[K' : ''}${caught} of ${found.length} mutants were found\n`)
  return caught === found.length
}

function lineOf({ bug, seed, invariant, detail, cpuSeconds }: MutantResult): string {
  const cpu = `${cpuSeconds.toFixed(1).padStart(6)} s`
  if (seed === undefined) return `${bug.name.padEnd(32)} NOT FOUND ${cpu}`
  return `${bug.name.padEnd(32)} ${String(seed).padStart(4)} runs ${cpu}  ${invariant.padEnd(8)} ${(detail.split('\n')[0] ?? '').slice(0, 100)}`
}

async function hunt(bug: Mutant, seeds: number, onSeed: (ran: WorkerSeedResult) => void): Promise<MutantResult> {
  let last: WorkerSeedResult | undefined
  const end = await runWorker(
    {
      first: 1,
      seeds,
      step: 1,
      liveness: bug.liveness === true,
      untilFirst: true,
      mutant: bug.name,
      faults: bug.faults,
    },
    (ran) => {
      last = ran
      onSeed(ran)
    },
  )
  const cpuSeconds = last?.cpuSeconds ?? 0
  if (last?.violation) return { bug, seed: last.seed, ...last.violation, cpuSeconds }
  if (last?.isNondeterministic)
    return { bug, seed: last.seed, invariant: 'determinism', detail: 'the second run differed', cpuSeconds }
  // A mutant that does not fit the code is an error of the catalogue.
  if (end.why?.includes('does not fit any more')) throw new Error(end.why)
  // A crash counts as found, because the same code would crash in a shop.
  if (end.why !== undefined) return { bug, seed: end.seed, invariant: 'fault', detail: end.why, cpuSeconds }
  return { bug, seed: undefined, invariant: '', detail: '', cpuSeconds }
}
