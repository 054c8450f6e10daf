import { readFileSync } from 'node:fs'

/** Memory of a process, MB (10^6 bytes). */
export interface Memory {
  /** Current resident memory. */
  rss: number
  /** Peak memory; equals `rss` if the system does not report a peak. */
  peak: number
}

/** Memory of this process. */
export function memoryOf(): Memory {
  const rss = process.memoryUsage.rss() / 1e6
  return { rss, peak: peakOf() ?? rss }
}

function peakOf(): number | undefined {
  try {
    const kB = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]
    return kB === undefined ? undefined : (Number(kB) * 1_024) / 1e6
  } catch {
    return undefined
  }
}
