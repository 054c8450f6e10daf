import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { MUTANTS } from '../simulation/mutants/catalogue.ts'
import type { MutantsRecord } from '../runner/sim-mutants.ts'
import type { CampaignRecord } from '../runner/sim-many.ts'
import type { Chunk, ChunkResult, ProofPart } from './part.ts'

/** Parts that run `npm run sim` and read its JSON result. */

const MUTANT_SEEDS = 500
const STDERR_KEPT = 2_000

/** Runs the simulation on all cores. Resolves with the result of the simulation, even if an invariant failed. */
async function sim<T>(
  root: string,
  args: readonly string[],
  signal: AbortSignal,
  onDone?: (done: number) => void,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'untag-prove-'))
  const file = join(folder, 'result.json')
  try {
    const child = spawn(
      process.execPath,
      ['--max-semi-space-size=64', join(root, 'dist/test/verification/sim.js'), ...args, '--json', file],
      { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] },
    )
    child.on('message', ({ done }: { done: number }) => onDone?.(done))
    const stop = () => void child.kill()
    signal.addEventListener('abort', stop, { once: true })
    let err = ''
    child.stderr?.on('data', (chunk: Buffer) => void (err = (err + chunk.toString()).slice(-STDERR_KEPT)))
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    signal.removeEventListener('abort', stop)
    signal.throwIfAborted()
    // Exit code 0 means no violation, 1 a violation. With any other code the simulation could not run.
    if (code !== 0 && code !== 1) throw new Error(`sim ${args.join(' ')} ended with ${code}:\n${err}`)
    return JSON.parse(readFileSync(file, 'utf8')) as T
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runSeeds(
  root: string,
  { from, count, signal, onProgress }: Chunk,
  mode: readonly string[],
): Promise<ChunkResult> {
  const args = ['--seeds', String(count), '--first', String(from + 1), ...mode]
  const { violations, cpuSeconds } = await sim<CampaignRecord>(root, args, signal, onProgress)
  const again = `npm run sim --${mode.map((m) => ` ${m}`).join('')} --seed`
  return {
    violations: violations.map(
      ({ seed, invariant, detail }) => `seed ${seed}: ${invariant}: ${detail} (${again} ${seed})`,
    ),
    figures: { cpuSeconds },
  }
}

/** Runs with random faults at any time. */
export const safety = (root: string): ProofPart => ({
  name: 'safety',
  title: 'Simulated runs with faults at any time',
  unit: 'runs',
  of: { ci: 2_000, night: 100_000 },
  chunk: { ci: 250, night: 2_000 },
  concurrency: 'alone',
  run: (chunk) => runSeeds(root, chunk, []),
})

/** Runs with longer faults. After the last fault, the store must recover. */
export const liveness = (root: string): ProofPart => ({
  name: 'liveness',
  title: 'Simulated runs with longer faults; everything must recover within half an hour',
  unit: 'runs',
  of: { ci: 300, night: 10_000 },
  chunk: { ci: 50, night: 400 },
  concurrency: 'alone',
  run: (chunk) => runSeeds(root, chunk, ['--liveness']),
})

/** Every mutant of the catalogue must be found. */
export const mutants = (root: string): ProofPart => ({
  name: 'bugs',
  title: 'Mutants, each to be found within 500 runs',
  unit: 'mutants',
  of: { ci: MUTANTS.length, night: MUTANTS.length },
  chunk: { ci: 4, night: 4 },
  concurrency: 'alone',
  isSameList: ({ rows = [] }, { from }) => rows.every(({ bug }, i) => bug === MUTANTS[from + i]?.name),
  async run({ from, count, signal, onProgress }) {
    const wanted = MUTANTS.slice(from, from + count)
    const { bugs: hunted } = await sim<MutantsRecord>(
      root,
      ['--bugs', '--seeds', String(MUTANT_SEEDS), '--only', wanted.map((b) => b.name).join(',')],
      signal,
    )
    onProgress(count)
    const what = new Map(MUTANTS.map((bug) => [bug.name, bug.what]))
    return {
      violations: hunted.filter((b) => b.seed === null).map((b) => `${b.name} was not found in ${MUTANT_SEEDS} runs`),
      rows: hunted.map(({ name, seed, invariant }) => ({
        bug: name,
        what: what.get(name) ?? '',
        worlds: seed ?? 0,
        invariant: invariant ?? '',
      })),
    }
  },
})
