// @module-tag extended
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { boardsReady, openFaultStore, type FaultStore } from '../verification/disk-faults/fault-store.ts'
import { fullDisk } from '../verification/disk-faults/full-disk.ts'
import { syscallSweep, type SweepPoint } from '../verification/disk-faults/syscall-sweep.ts'
import { SOME_CALLS } from '../verification/prove/disk-parts.ts'
import { ensureBuilt } from '../support/built.ts'
import { bundledCommand } from '../support/bundled-command.ts'
import { IS_FULL_SIZE } from '../support/full-size.ts'
import { NO_STRACE } from '../support/strace.ts'

const kindOf = ({ part, mode, fault }: SweepPoint) => `${part} ${mode}: ${fault}`
/** The first call of each kind of process, phase and fault. In full size, also later calls. */
const CALLS = SOME_CALLS.filter(
  (call, i) => IS_FULL_SIZE || SOME_CALLS.findIndex((each) => kindOf(each) === kindOf(call)) === i,
)

describe.skipIf(NO_STRACE)(`a disk that fails${NO_STRACE ? ` (${NO_STRACE})` : ''}`, () => {
  let store: FaultStore
  beforeAll(async () => {
    ensureBuilt()
    vi.stubEnv('UNTAG_TEST_COMMAND', await bundledCommand())
    store = await openFaultStore()
    await boardsReady(store)
  })
  afterAll(async () => {
    await store.close()
    vi.unstubAllEnvs()
  })

  it('breaks no promise when a system call fails', async () => {
    const result = await syscallSweep(store, { sample: CALLS })
    expect(result.violations).toEqual([])
    expect(result.hit).toBe(CALLS.length)
    // After a failed flush the process must end, because a retry may report success for lost data.
    const flushes = CALLS.filter(({ mode, fault }) => mode === 'working' && fault === 'flush fails')
    expect(result.ended).toBeGreaterThanOrEqual(flushes.length)
  }, 600_000)

  it('makes agent and cloud reject requests while it is full, without a release or a restart', async () => {
    const { agent, cloud, violations } = await fullDisk(store)
    expect(violations).toEqual([])
    expect(agent).toMatchObject({ refusedWith: '503 ledger_full', pulsesWhileFull: 0, sameProcess: true })
    expect(cloud).toMatchObject({
      refusedWith: '503 disk_full',
      readsAnswered: true,
      sameProcess: true,
      answersKept: true,
    })
  })
})
