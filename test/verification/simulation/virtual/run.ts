import { mkdtempSync, rmSync } from 'node:fs'
import type { Chance } from './chance.ts'
import type { Core, Violation } from './core.ts'
import { scheduler } from './scheduler.ts'
import { newTrace } from './trace.ts'

/** One run: its core and its violations. The run ends at the first violation. */
export interface Run {
  readonly core: Core
  readonly violations: readonly Violation[]
  isOver(): boolean
  /** Removes the folder of the run. */
  close(): void
}

export interface RunParts {
  chance: Chance
  startMs: number
  /** Time that counts as 0 in the trace and in violations. */
  zeroMs: number
  /** Path prefix of the folder. */
  folderPrefix: string
  /** Number of trace lines to keep. Default: 60. */
  keepLines: number | undefined
}

const KEPT_LINES = 60

/** Opens a run in a new folder. No event is scheduled yet. */
export function openRun({ chance, startMs, zeroMs, folderPrefix, keepLines = KEPT_LINES }: RunParts): Run {
  const violations: Violation[] = []
  const clock = scheduler(startMs, chance.fork('scheduler'))
  const trace = newTrace(() => clock.nowMs, zeroMs, keepLines)
  const folder = mkdtempSync(folderPrefix)
  const core: Core = {
    scheduler: clock,
    chance,
    trace,
    folder,
    violate(invariant, detail) {
      trace.add('VIOLATED', `${invariant}: ${detail}`)
      violations.push({ invariant, detail, atMs: clock.nowMs - zeroMs })
    },
    crashRate: 0,
  }
  return {
    core,
    violations,
    isOver: () => violations.length > 0,
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}
