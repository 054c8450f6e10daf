import { readFileSync } from 'node:fs'

/** Memory of a process, MB (10^6 bytes). */
export interface Memory {
  /** What it holds now, resident. */
  rss: number
  /** The most it has held; the same as `rss` where the system does not say. */
  peak: number
}

/** Of this process. */
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
