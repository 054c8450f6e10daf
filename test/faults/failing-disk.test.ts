import { beforeAll, describe, expect, it } from 'vitest'
import { fullDisk } from '../../bin/faults/full-disk.ts'
import { syscallSweep, type SweepPoint } from '../../bin/faults/syscall-sweep.ts'
import { ensureBuilt } from '../support/built.ts'
import { NO_STRACE } from '../support/strace.ts'

/** Of every kind some; all of them are in the whole sweep (bin/faults.ts). */
const SAMPLE: readonly SweepPoint[] = [
  ...[1, 2, 3].map((n): SweepPoint => ({ part: 'agent', mode: 'working', fault: 'flush fails', n })),
  ...[1, 6].map((n): SweepPoint => ({ part: 'agent', mode: 'working', fault: 'disk full', n })),
  { part: 'agent', mode: 'working', fault: 'write fails', n: 4 },
  { part: 'agent', mode: 'working', fault: 'write is short', n: 3 },
  { part: 'agent', mode: 'starting', fault: 'flush fails', n: 2 },
  ...[1, 4].map((n): SweepPoint => ({ part: 'cloud', mode: 'working', fault: 'flush fails', n })),
  { part: 'cloud', mode: 'working', fault: 'disk full', n: 5 },
  { part: 'cloud', mode: 'working', fault: 'write is short', n: 9 },
]

describe.skipIf(NO_STRACE)(`a disk that fails${NO_STRACE ? ` (${NO_STRACE})` : ''}`, () => {
  beforeAll(ensureBuilt)

  it('breaks no promise, whichever call it is that fails', async () => {
    const result = await syscallSweep({ sample: SAMPLE })
    expect(result.violations).toEqual([])
    expect(result.hit).toBe(SAMPLE.length)
    // A flush that failed is never tried again by the same process.
    expect(result.ended).toBeGreaterThanOrEqual(5)
  }, 600_000)

  it('is full: both parts say so, move nothing, stay up, and go on when there is room', async () => {
    const { agent, cloud, violations } = await fullDisk()
    expect(violations).toEqual([])
    expect(agent).toMatchObject({ refusedWith: '503 ledger_full', pulsesWhileFull: 0, sameProcess: true })
    expect(cloud).toMatchObject({ refusedWith: '503 disk_full', readsAnswered: true, sameProcess: true, answersKept: true })
  }, 300_000)
})
