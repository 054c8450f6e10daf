import { parentPort, workerData } from 'node:worker_threads'
import type { TagRead } from '../../device-drivers/kit/device.ts'

/**
 * Simulated readers of several gates, in a separate thread. Each reader reports its reads every 10 ms. A reader reads
 * stationary tags near its gate, and sometimes a tag that leaves.
 */
export interface ReaderOptions {
  gates: number
  /** Reads per second and gate, without the reads of tags that leave. */
  readsPerSecond: number
  /** Number of stationary items near each gate. `firstItem` is the number of the first item. */
  stationary: number
  firstItem: number
  /** Interval at which one item leaves through one of the gates, ms. */
  leavesEveryMs: number
  forMs: number
}

/** One report of a reader. `sentNs`: send time on the clock of the machine. */
export interface ReaderReport {
  gate: number
  reads: Omit<TagRead, 'seenAtMs'>[]
  sentNs: bigint
  /** EPC of a tag that the outside antenna reads for the first time in this report, if any. */
  leaving: string | undefined
}

const REPORT_MS = 10

/** The EPC of the n-th item. */
export function epcOf(n: number): string {
  return `3034007D00011C40${n.toString(16).padStart(8, '0')}`.toUpperCase()
}

function run({ gates, readsPerSecond, stationary, firstItem, leavesEveryMs, forMs }: ReaderOptions): void {
  const perReport = Math.round((readsPerSecond * REPORT_MS) / 1_000)
  const started = process.hrtime.bigint()
  let reports = 0
  let left = 0
  let next = 0
  const elapsedMs = () => Number((process.hrtime.bigint() - started) / 1_000_000n)

  function report(gate: number): void {
    const reads: Omit<TagRead, 'seenAtMs'>[] = []
    for (let i = 0; i < perReport; i++)
      reads.push({
        tag: { epc: epcOf(firstItem + gate * stationary + (next++ % stationary)) },
        antenna: 1,
        rssiDbm: -60,
      })
    const isDue = elapsedMs() >= left * leavesEveryMs && left % gates === gate
    const leaving = isDue ? epcOf(firstItem + gates * stationary + left) : undefined
    if (leaving !== undefined) {
      left++
      const at = Math.floor(reads.length / 2)
      reads.splice(
        at,
        0,
        { tag: { epc: leaving }, antenna: 1, rssiDbm: -45 },
        { tag: { epc: leaving }, antenna: 2, rssiDbm: -45 },
      )
    }
    if (reads.length > 0)
      parentPort?.postMessage({ gate, reads, leaving, sentNs: process.hrtime.bigint() } satisfies ReaderReport, [])
  }

  const timer = setInterval(() => {
    if (elapsedMs() >= forMs) {
      clearInterval(timer)
      return parentPort?.postMessage('done', [])
    }
    // A busy machine may have delayed the timer, so all reports that are due are sent.
    for (; reports * REPORT_MS <= elapsedMs(); reports++) for (let gate = 0; gate < gates; gate++) report(gate)
  }, REPORT_MS / 2)
}

if (parentPort) run(workerData as ReaderOptions)
