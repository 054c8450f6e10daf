import type { IntegrationPullRow } from '../../platform/persistence/tables/integrations.ts'
import { SYNC_ERRORS_LIMIT, type SyncError } from './sync-error.ts'

/** Counts of one data type over all calls of a round. A round reads a system once from the first page to the last. */
export interface Counts {
  seen: number
  taken: number
  failed: number
  repriced: number
  /** Distinct names. */
  categories: string[]
}

/** Progress of one data type. */
export interface PullState {
  cursor: string | null
  isDone: boolean
  startedMs: number
  counts: Counts
}

/** Maximum number of distinct categories per round; further ones are not counted. */
const CATEGORIES_LIMIT = 1_000
/** Maximum age of a round, ms. After that time cursors may have expired, and the data may have changed. */
const ROUND_LIMIT_MS = 24 * 3_600_000

/** State before the first page. */
export function freshState(startedMs: number): PullState {
  return {
    cursor: null,
    isDone: false,
    startedMs,
    counts: { seen: 0, taken: 0, failed: 0, repriced: 0, categories: [] },
  }
}

/** Returns the stored state of a round. Returns a fresh state if the source differs or the round is too old. */
export function stateOf(row: IntegrationPullRow | undefined, source: string, nowMs: number): PullState {
  if (!row || row.source !== source || row.started_ms <= nowMs - ROUND_LIMIT_MS) return freshState(nowMs)
  return {
    cursor: row.next_cursor,
    isDone: row.is_done === 1,
    startedMs: row.started_ms,
    counts: JSON.parse(row.counts) as Counts,
  }
}

/** Counts of one batch. */
export interface BatchCounts {
  seen: number
  taken: number
  repriced?: number
  categories?: readonly string[]
  errors: readonly SyncError[]
  /** Number of records with errors. One record may have several errors. */
  failed: number
}

/** Adds the counts of a batch. */
export function addCounts(counts: Counts, batch: BatchCounts): Counts {
  return {
    seen: counts.seen + batch.seen,
    taken: counts.taken + batch.taken,
    failed: counts.failed + batch.failed,
    repriced: counts.repriced + (batch.repriced ?? 0),
    categories: batch.categories
      ? [...new Set([...counts.categories, ...batch.categories])].slice(0, CATEGORIES_LIMIT)
      : counts.categories,
  }
}

/** Adds errors up to the limit. */
export function addErrors(errors: SyncError[], more: readonly SyncError[]): void {
  errors.push(...more.slice(0, Math.max(0, SYNC_ERRORS_LIMIT - errors.length)))
}
