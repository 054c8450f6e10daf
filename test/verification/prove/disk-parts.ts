import { inFaultStore } from '../disk-faults/fault-store.ts'
import { fullDisk } from '../disk-faults/full-disk.ts'
import { powerLoss as loseThePower } from '../disk-faults/power-loss/power-loss.ts'
import { whyNoStrace } from '../disk-faults/strace.ts'
import { SWEEP_KINDS, syscallSweep, type SweepPoint } from '../disk-faults/syscall-sweep.ts'
import type { ProofPart } from './part.ts'

/** Parts that run real processes whose disks fail. */

/** Checks the disk states that a power cut can leave. */
export const powerLoss: ProofPart = {
  name: 'power-loss',
  title:
    'Power cuts at every disk change of a recorded run, after which none, all or some of the unflushed writes survive, or one is torn',
  unit: 'states',
  of: { ci: 5_000, night: 500_000 },
  chunk: { ci: 5_000, night: 10_000 },
  concurrency: 'alone',
  whyImpossible: whyNoStrace,
  async run({ from, count, signal, onProgress }) {
    const { violations } = await loseThePower({
      states: count,
      seed: from + 1,
      signal,
      onProgress: (done) => onProgress(done),
    })
    return {
      violations: violations.map(
        ({ part, after, loss, broken }) =>
          `${part}, seed ${from + 1}, after event ${after}, ${loss}: ${broken.join('; ')}`,
      ),
    }
  },
}

const points = (
  part: SweepPoint['part'],
  mode: SweepPoint['mode'],
  fault: SweepPoint['fault'],
  ...numbers: number[]
): SweepPoint[] => numbers.map((n) => ({ part, mode, fault, n }))

/** A sample of each kind of run, for the short size. */
export const SOME_CALLS: readonly SweepPoint[] = [
  ...points('agent', 'working', 'flush fails', 1, 2, 3),
  ...points('agent', 'working', 'disk full', 1, 6),
  ...points('agent', 'working', 'write fails', 4),
  ...points('agent', 'working', 'write is short', 3),
  ...points('agent', 'starting', 'flush fails', 2),
  ...points('cloud', 'working', 'flush fails', 1, 4),
  ...points('cloud', 'working', 'disk full', 5),
  ...points('cloud', 'working', 'write is short', 9),
]

/**
 * Makes each disk call fail once, by kind of run and of failure. In the short size, only a sample of the calls fails.
 */
export const failingCalls: ProofPart = {
  name: 'failing-calls',
  title:
    'A release and a sale in which the n-th disk call fails, for every n: flush, write, short write, full disk, truncation',
  unit: 'sweeps',
  of: { ci: 1, night: SWEEP_KINDS.length },
  chunk: { ci: 1, night: 1 },
  concurrency: 'alone',
  whyImpossible: whyNoStrace,
  async run({ size, from, count, signal, onProgress }) {
    const { runs, hit, violations } = await inFaultStore((store) =>
      syscallSweep(store, {
        ...(size === 'ci' ? { sample: SOME_CALLS } : { kinds: SWEEP_KINDS.slice(from, from + count) }),
        signal,
        onProgress: (_, at) => onProgress(0, at),
      }),
    )
    // A stopped chunk stores no result, so a later run repeats the chunk.
    signal.throwIfAborted()
    onProgress(count)
    return {
      violations: violations.map(({ point, broken }) => `${JSON.stringify(point)}: ${broken.join('; ')}`),
      figures: { runs, callsThatFailed: hit },
    }
  },
}

/** Fills both disks while the processes run, then frees them. */
export const fullDisks: ProofPart = {
  name: 'full-disks',
  title: 'Disks that fill up while agent and cloud run, and are then freed',
  unit: 'rounds',
  of: { ci: 1, night: 20 },
  chunk: { ci: 1, night: 1 },
  concurrency: 'alone',
  whyImpossible: whyNoStrace,
  async run({ onProgress }) {
    const { violations } = await inFaultStore(fullDisk)
    onProgress(1)
    return { violations }
  },
}
