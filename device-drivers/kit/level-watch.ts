import { pause } from '../../policy/platform.ts'
import type { Timers } from '../../policy/platform.ts'

export interface LevelWatchOptions {
  readonly timers: Timers
  /** Ends the watch. */
  readonly over: AbortSignal
  /** Reads the level of the input; null if the reader did not answer. */
  read(): Promise<boolean | null>
  onLevel(level: boolean): void
  /** Called when the reader did not answer three times in a row. */
  onUnresponsive(): void
}

/**
 * Interval of the reads, ms. Readers also report changes by themselves. These reads find changes whose report was lost.
 */
const READ_EVERY_MS = 1_000
const MAX_MISSED = 3

/** Reads the level of an input every second until `over` aborts. */
export async function watchLevel({ timers, over, read, onLevel, onUnresponsive }: LevelWatchOptions): Promise<void> {
  for (let missed = 0; missed < MAX_MISSED;) {
    await pause(timers, READ_EVERY_MS, over).catch(() => {})
    if (over.aborted) return
    const level = await read()
    if (over.aborted) return
    missed = level === null ? missed + 1 : 0
    if (level !== null) onLevel(level)
  }
  onUnresponsive()
}
