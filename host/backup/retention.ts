import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { flush, hasManifest } from './files.ts'
import type { Platform } from '../../policy/platform.ts'

/** Pause before a failed backup is repeated, ms. */
const RETRY_MS = 15 * 60_000

/** What a schedule of backups needs. */
interface ScheduleParts {
  readonly everyMs: number
  readonly clock: Pick<Platform['clock'], 'wall'>
  readonly timers: Platform['timers']
  /** Time of the newest backup, ms; undefined if there is none. */
  newest(): number | undefined
  backUp(): Promise<void>
  onFailure(error: unknown, retryMs: number): void
}

/**
 * Makes a backup each time `everyMs` have passed since the newest one, also if this process was not running meanwhile.
 * Returns a function that ends the schedule, and waits for a backup that is in progress.
 */
export function startSchedule(parts: ScheduleParts): () => Promise<void> {
  const { everyMs, clock, timers, newest, backUp, onFailure } = parts
  let isStopping = false
  let running = Promise.resolve()
  let cancel = timers.after(untilDue(), () => void (running = run()))

  /** A clock that was set back delays a backup by at most one period. */
  function untilDue(): number {
    const last = newest()
    return last === undefined ? 0 : Math.min(everyMs, Math.max(0, last + everyMs - clock.wall()))
  }

  async function run(): Promise<void> {
    let pauseMs = everyMs
    try {
      await backUp()
      pauseMs = untilDue()
    } catch (error) {
      pauseMs = Math.min(RETRY_MS, everyMs)
      onFailure(error, pauseMs)
    }
    if (!isStopping) cancel = timers.after(pauseMs, () => void (running = run()))
  }

  return () => {
    isStopping = true
    cancel()
    return running
  }
}

const DAY_MS = 86_400_000
/** Incomplete backups that are older than this time belong to no running command, ms. */
const INCOMPLETE_MS = DAY_MS
const NAME = /^untag-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d)-(\d{3})Z(\.partial)?$/

/** Backups that stay: the newest `keep`, and those of the last `keepDays` days. With 0 for both, all stay. */
interface Retention {
  readonly keep: number
  readonly keepDays: number
}

/** A folder in the folder of all backups. */
export interface StoredBackup {
  readonly name: string
  readonly madeMs: number
  readonly isComplete: boolean
}

/** Name of the folder of a backup. */
export function backupName(madeAt: string): string {
  return `untag-${madeAt.replaceAll(/[:.]/g, '-')}`
}

/** Lists the backups in a folder, newest first. Ignores everything that `untag backup` did not name. */
export function storedBackups(folder: string): StoredBackup[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .flatMap((name) => {
      const [found, day, hour, minute, second, ms, partial] = NAME.exec(name) ?? []
      const madeMs = found === undefined ? NaN : Date.parse(`${day}T${hour}:${minute}:${second}.${ms}Z`)
      if (Number.isNaN(madeMs)) return []
      return [{ name, madeMs, isComplete: partial === undefined && hasManifest(join(folder, name)) }]
    })
    .sort((a, b) => b.madeMs - a.madeMs)
}

/** The backups that no rule keeps. The newest complete backup always stays. */
export function obsoleteBackups(
  backups: readonly StoredBackup[],
  { keep, keepDays }: Retention,
  nowMs: number,
): StoredBackup[] {
  if (keep === 0 && keepDays === 0) return []
  const isRecent = ({ madeMs }: StoredBackup) => nowMs - madeMs <= keepDays * DAY_MS
  const complete = backups.filter(({ isComplete }) => isComplete)
  const abandoned = backups.filter(({ isComplete, madeMs }) => !isComplete && nowMs - madeMs > INCOMPLETE_MS)
  return [...complete.slice(Math.max(1, keep)).filter((backup) => !isRecent(backup)), ...abandoned]
}

/** Deletes the backups that no rule keeps. Returns their names. */
export function deleteObsolete(folder: string, retention: Retention, nowMs: number): string[] {
  const names = obsoleteBackups(storedBackups(folder), retention, nowMs).map(({ name }) => name)
  for (const name of names) rmSync(join(folder, name), { recursive: true, force: true })
  if (names.length > 0) flush(folder)
  return names
}
