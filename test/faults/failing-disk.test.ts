import { beforeAll, describe, expect, it } from 'vitest'
import { fullDisk } from '../../verification/disk-faults/full-disk.ts'
import { syscallSweep } from '../../verification/disk-faults/syscall-sweep.ts'
import { SOME_CALLS } from '../../verification/prove/disk-parts.ts'
import { ensureBuilt } from '../support/built.ts'
import { NO_STRACE } from '../support/strace.ts'

describe.skipIf(NO_STRACE)(`a disk that fails${NO_STRACE ? ` (${NO_STRACE})` : ''}`, () => {
  beforeAll(ensureBuilt)

  it('breaks no promise when a system call fails', async () => {
    const result = await syscallSweep({ sample: SOME_CALLS })
    expect(result.violations).toEqual([])
    expect(result.hit).toBe(SOME_CALLS.length)
    // After a failed flush the process must end, because a retry may report success for lost data.
    expect(result.ended).toBeGreaterThanOrEqual(5)
  }, 600_000)

  it('makes agent and cloud reject requests while it is full, without a release or a restart', async () => {
    const { agent, cloud, violations } = await fullDisk()
    expect(violations).toEqual([])
    expect(agent).toMatchObject({ refusedWith: '503 ledger_full', pulsesWhileFull: 0, sameProcess: true })
    expect(cloud).toMatchObject({
      refusedWith: '503 disk_full',
      readsAnswered: true,
      sameProcess: true,
      answersKept: true,
    })
  }, 300_000)
})
