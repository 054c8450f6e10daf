import { join } from 'node:path'
import { agentRound } from './agent-round.ts'
import type { FaultPoint, RoundResult } from './aim.ts'
import { cloudRound, prepareCloudRound } from './cloud-round.ts'
import { boardsReady, openFaultStore, type FaultStore } from './rig.ts'

/**
 * Fails each disk system call once: the first, the second and so on, until a run ends before the fault. After each run
 * all guarantees must hold.
 */
export interface SweepOptions {
  /** Which calls fail where; all of them, until a run does not come to them, when left out. */
  sample?: readonly SweepPoint[]
  /** Only these kinds of run, the calls of each until a run does not come to them. */
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
  /** Runs in which the call was reached and failed. */
  hit: number
  /** Runs in which the process ended without a signal from the test, as required after an I/O error. */
  ended: number
  /** How far each kind of run went: the number of calls that could fail. */
  reached: Record<string, number>
  violations: { point: SweepPoint; broken: string[] }[]
}

type SweepPart = 'agent' | 'cloud'

/** Strace answers instead of the kernel and writes nothing. So a short write must return 0 bytes to be true. */
const FAULTS = {
  'flush fails': { calls: 'fsync,fdatasync', fault: 'error=EIO' },
  'disk full': { calls: 'pwrite64', fault: 'error=ENOSPC' },
  'write fails': { calls: 'pwrite64', fault: 'error=EIO' },
  'write is short': { calls: 'pwrite64', fault: 'retval=0' },
  'truncate fails': { calls: 'ftruncate', fault: 'error=EIO' },
} as const
export type FaultName = keyof typeof FAULTS

/** Every kind of run: what runs, when its calls fail, and how. */
export const SWEEP_KINDS: readonly SweepKind[] = (['agent', 'cloud'] as const).flatMap((part) =>
  (['starting', 'working'] as const).flatMap((mode) =>
    (Object.keys(FAULTS) as FaultName[]).map((fault) => ({ part, mode, fault })),
  ),
)

/** More calls than any run makes. */
const CALLS_LIMIT = 2_000

/** Sweeps the agent (scan, claim, pulse, outcome, acknowledgement) and the cloud (checkout, verify, redeem). Needs strace. */
export async function syscallSweep({
  sample,
  kinds = SWEEP_KINDS,
  signal,
  onProgress,
}: SweepOptions = {}): Promise<SweepResult> {
  const rig = await openFaultStore()
  const result: SweepResult = { runs: 0, hit: 0, ended: 0, reached: {}, violations: [] }
  try {
    await boardsReady(rig)
    const till = await prepareCloudRound(rig)
    const run = async (point: SweepPoint): Promise<boolean> => {
      const aim = faultPointOf(rig, point, result.runs)
      const name = `s${result.runs}`
      const round = await (
        point.part === 'agent' ? agentRound(rig, aim, name) : cloudRound(rig, till, aim, name)
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
  } finally {
    await rig.close()
  }
  return result
}

/** Lets the first call fail, the second, … until a run does not come to it; how many did. */
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
