import { readdirSync, readFileSync } from 'node:fs'
import { pause, type Platform } from '../../../policy/platform.ts'

/** Counters of a process, as Linux has them in /proc. */
interface Counters {
  /** CPU time of all threads, ns. */
  readonly cpuNs: number
  /** Bytes that the process had written to block devices, without the file system's own journal. */
  readonly writtenBytes: number
}

/** What a process used in a measured time. */
export interface Costs {
  readonly seconds: number
  readonly cpuSeconds: number
  readonly writtenBytes: number
  /** Median of the resident memory in that time, MB (10^6 bytes). */
  readonly rssMb: number
  /** Highest resident memory of the process since its start, MB. */
  readonly peakMb: number
}

const SAMPLE_MS = 500

/** Measures the process while `work` runs, and at least `forMs`. */
export async function costsOf(
  pid: number,
  forMs: number,
  { clock, timers }: Platform,
  work: () => Promise<void>,
): Promise<Costs> {
  const before = countersOf(pid)
  const startMs = clock.elapsed()
  let isWorking = true
  const working = work().finally(() => (isWorking = false))
  // Without this, a failure before the last sample would be an unhandled rejection.
  working.catch(() => {})
  const memory: number[] = []
  do {
    memory.push(kilobytesOf(pid, 'VmRSS'))
    await pause(timers, Math.min(SAMPLE_MS, forMs))
  } while (isWorking || clock.elapsed() - startMs < forMs)
  await working
  const after = countersOf(pid)
  const middle = memory.toSorted((a, b) => a - b)[Math.floor(memory.length / 2)] ?? Number.NaN
  return {
    seconds: (clock.elapsed() - startMs) / 1_000,
    cpuSeconds: (after.cpuNs - before.cpuNs) / 1e9,
    writtenBytes: after.writtenBytes - before.writtenBytes,
    rssMb: (middle * 1_024) / 1e6,
    peakMb: (kilobytesOf(pid, 'VmHWM') * 1_024) / 1e6,
  }
}

function countersOf(pid: number): Counters {
  // `schedstat` counts nanoseconds. The ticks of 10 ms in `stat` are too coarse for an idle process.
  const threads = readdirSync(`/proc/${pid}/task`)
  const cpuNs = threads.map((thread) => Number(read(`${pid}/task/${thread}/schedstat`).split(' ')[0]))
  return {
    cpuNs: cpuNs.reduce((sum, ns) => sum + ns, 0),
    writtenBytes: numberIn(read(`${pid}/io`), /^write_bytes: (\d+)$/m),
  }
}

function kilobytesOf(pid: number, name: string): number {
  return numberIn(read(`${pid}/status`), new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm'))
}

function read(path: string): string {
  return readFileSync(`/proc/${path}`, 'utf8')
}

function numberIn(text: string, pattern: RegExp): number {
  return Number(pattern.exec(text)?.[1])
}
