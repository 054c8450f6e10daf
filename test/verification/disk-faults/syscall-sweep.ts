import { join } from 'node:path'
import { agentRound } from './agent-round.ts'
import type { FaultPoint, RoundResult } from './fault-point.ts'
import { cloudRound, prepareCloudRound } from './cloud-round.ts'
import type { FaultStore } from './fault-store.ts'

/**
 * Options of a sweep. In run n, the n-th system call fails. A sweep ends at the first run with fewer than n calls.
 * After each run all guarantees must hold.
 */
export interface SweepOptions {
  /** Runs only these points. By default, the sweep covers all calls. */
  sample?: readonly SweepPoint[]
  /** Runs the sweep only for these kinds, with all calls of each kind. */
  kinds?: readonly SweepKind[]
  signal?: AbortSignal
  onProgress?: (done: number, what: string) => void
}

export interface SweepKind {
  part: SweepPart
  mode: FaultPoint['mode']
  fault: FaultName
}

export interface SweepPoint extends SweepKind {
  n: number
}

export interface SweepResult {
  runs: number
  /** Number of runs in which strace made the call fail. */
  hit: number
  /** Number of runs in which the process ended by itself, as it must after an I/O error. */
  ended: number
  /** Number of calls that could fail, by kind of run. */
  reached: Record<string, number>
  violations: { point: SweepPoint; broken: string[] }[]
}

type SweepPart = 'agent' | 'cloud'

/** strace replaces the call, so no byte reaches the disk. A short write must therefore report 0 bytes. */
const FAULTS = {
  'flush fails': { calls: 'fsync,fdatasync', fault: 'error=EIO' },
  'disk full': { calls: 'pwrite64', fault: 'error=ENOSPC' },
  'write fails': { calls: 'pwrite64', fault: 'error=EIO' },
  'write is short': { calls: 'pwrite64', fault: 'retval=0' },
  'truncate fails': { calls: 'ftruncate', fault: 'error=EIO' },
} as const
export type FaultName = keyof typeof FAULTS

/** Every combination of process, phase and fault. */
export const SWEEP_KINDS: readonly SweepKind[] = (['agent', 'cloud'] as const).flatMap((part) =>
  (['starting', 'working'] as const).flatMap((mode) =>
    (Object.keys(FAULTS) as FaultName[]).map((fault) => ({ part, mode, fault })),
  ),
)

/** Upper limit of calls in a run. */
const CALLS_LIMIT = 2_000

/** Runs the sweeps: a release at the agent, and a purchase with redemption at the cloud. Needs strace. */
export async function syscallSweep(
  store: FaultStore,
  { sample, kinds = SWEEP_KINDS, signal, onProgress }: SweepOptions,
): Promise<SweepResult> {
  const result: SweepResult = { runs: 0, hit: 0, ended: 0, reached: {}, violations: [] }
  const till = await prepareCloudRound(store)
  const run = async (point: SweepPoint): Promise<boolean> => {
    const faultPoint = faultPointOf(store, point, result.runs)
    const name = `s${result.runs}`
    const round = await (
      point.part === 'agent' ? agentRound(store, faultPoint, name) : cloudRound(store, till, faultPoint, name)
    ).catch((error: unknown): RoundResult => ({ hit: true, ended: false, broken: [String(error)] }))
    result.runs++
    if (round.hit) result.hit++
    if (round.ended) result.ended++
    if (round.broken.length > 0) result.violations.push({ point, broken: round.broken })
    onProgress?.(result.runs, `${point.part} ${point.mode}: ${point.fault} at ${point.n}`)
    return round.hit
  }
  if (sample) for (const point of sample) await run(point)
  else
    for (const kind of kinds)
      result.reached[`${kind.part} ${kind.mode}: ${kind.fault}`] = await untilNone(kind, run, signal)
  return result
}

/**
 * Makes the first call fail, then the second, and so on, until a run makes fewer calls. Returns the number of calls
 * that failed.
 */
async function untilNone(
  kind: SweepKind,
  run: (point: SweepPoint) => Promise<boolean>,
  signal: AbortSignal | undefined,
): Promise<number> {
  let n = 1
  while (n < CALLS_LIMIT && signal?.aborted !== true && (await run({ ...kind, n }))) n++
  return n - 1
}

function faultPointOf({ folder }: FaultStore, { mode, fault, n }: SweepPoint, run: number): FaultPoint {
  return { mode, injections: [{ ...FAULTS[fault], when: String(n) }], log: join(folder, `sweep-${run}.strace`) }
}
