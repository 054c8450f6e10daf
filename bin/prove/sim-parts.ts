import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { BUGS } from '../../simulators/world/bug-bank.ts'
import type { Chunk, Found, Part } from './part.ts'

/** Parts that are simulated: `npm run sim` with its result as JSON, as somebody would run it by hand. */

/** What `sim --json` says of many worlds. */
interface Worlds {
  seeds: number
  virtualMs?: number
  cpuSeconds: number
  violations?: { seed: number; invariant: string }[]
  failed?: { seed: number; violations: { invariant: string }[] }[]
  unlike?: number[]
}

/** What `sim --bugs --json` says. */
interface Bugs {
  bugs: { bug: string; what: string; worlds?: number; invariant: string }[]
}

const BUG_SEEDS = 500
const STDERR_KEPT = 2_000

/** Runs the simulation; resolves with its result also when it found something. */
function sim<T>(root: string, args: readonly string[], { signal, onSeen }: { signal: AbortSignal; onSeen?(text: string): void }): Promise<T> {
  const child = spawn(process.execPath, ['--max-semi-space-size=64', join(root, 'dist/bin/sim.js'), ...args, '--json'], { stdio: ['ignore', 'pipe', 'pipe'] })
  const stop = () => void child.kill()
  signal.addEventListener('abort', stop, { once: true })
  let out = ''
  let err = ''
  child.stdout.on('data', (chunk: Buffer) => void (out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => {
    err = (err + chunk.toString()).slice(-STDERR_KEPT)
    onSeen?.(chunk.toString())
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => {
      signal.removeEventListener('abort', stop)
      if (signal.aborted) return reject(signal.reason as Error)
      // 0: everything held; 1: something did not; anything else: it did not run.
      if (code !== 0 && code !== 1) return reject(new Error(`sim ${args.join(' ')} ended with ${code}:\n${err}`))
      resolve(JSON.parse(out) as T)
    })
  })
}

async function worlds(root: string, { from, count, signal, onProgress }: Chunk, mode: readonly string[]): Promise<Found> {
  const args = ['--seeds', String(count), '--first', String(from + 1), ...mode]
  const ran = await sim<Worlds>(root, args, { signal })
  onProgress(count)
  const again = `npm run sim --${mode.map((m) => ` ${m}`).join('')} --seed`
  const broken = ran.violations ?? ran.failed?.map(({ seed, violations }) => ({ seed, invariant: violations[0]?.invariant ?? '' })) ?? []
  const unlike = (ran.unlike ?? []).map((seed) => `seed ${seed} is another world when it runs again (${again} ${seed})`)
  return {
    violations: [...broken.map(({ seed, invariant }) => `seed ${seed}: ${invariant} (${again} ${seed})`), ...unlike],
    figures: { cpuSeconds: ran.cpuSeconds, ...(ran.virtualMs !== undefined && { virtualHours: ran.virtualMs / 3_600_000 }) },
  }
}

/** Worlds in which anything may go wrong. */
export const safety = (root: string): Part => ({
  name: 'safety',
  title: 'Simulated worlds, anything may go wrong at any time',
  unit: 'worlds',
  of: { ci: 2_000, night: 100_000 },
  chunk: { ci: 50, night: 500 },
  side: 'by side',
  run: (chunk) => worlds(root, chunk, []),
})

/** Worlds in which all must come right by itself. */
export const liveness = (root: string): Part => ({
  name: 'liveness',
  title: 'Simulated worlds, longer trouble, then everything must come right within half an hour',
  unit: 'worlds',
  of: { ci: 300, night: 10_000 },
  chunk: { ci: 10, night: 100 },
  side: 'by side',
  run: (chunk) => worlds(root, chunk, ['--liveness']),
})

/** Each planted bug must be found. */
export const bugs = (root: string): Part => ({
  name: 'bugs',
  title: 'Planted bugs, each to be found within 500 worlds',
  unit: 'bugs',
  of: { ci: BUGS.length, night: BUGS.length },
  chunk: { ci: 1, night: 1 },
  side: 'by side',
  async run({ from, count, signal, onProgress }) {
    const wanted = BUGS.slice(from, from + count)
    const ran = await sim<Bugs>(root, ['--bugs', '--seeds', String(BUG_SEEDS), '--only', wanted.map((b) => b.name).join(',')], { signal })
    onProgress(count)
    return {
      violations: ran.bugs.filter((b) => b.worlds === undefined).map((b) => `${b.bug} was not found in ${BUG_SEEDS} worlds`),
      rows: ran.bugs.map(({ bug, what, worlds: took, invariant }) => ({ bug, what, worlds: took ?? 0, invariant: invariant || 'two runs of one seed differ' })),
    }
  },
})
