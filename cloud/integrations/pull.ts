import type { StepContext } from '../operations/operation.ts'
import { applyBatch, BATCH_LIMIT } from './apply-batch.ts'
import type { Credentials } from './connection.ts'
import type { Connection, Page, Pull } from './connector.ts'
import { addCounts, freshState, addErrors, type Counts, type PullState } from './pull-state.ts'
import type { Round } from './round.ts'
import type { SyncError } from './sync-error.ts'
import type { DataType } from './systems.ts'
import type { VendorBudget } from './vendor-client.ts'
import { VendorFault } from './vendor-fault.ts'

/** Limits per call. If a limit ends a call, the next call continues. */
const PAGES_LIMIT = 1_000
const RECORDS_LIMIT = 100_000
/** Maximum number of records per page. */
const PAGE_LIMIT = 30_000
const CURSOR_LIMIT = 4_096

export interface Pulled {
  /** Counts over all calls of the round. */
  counts: ReadonlyMap<DataType, Counts>
  /** Errors of this call only. */
  errors: SyncError[]
  /** True if a limit ended the call early. */
  hasMore: boolean
  warnings: string[]
}

interface Reading {
  work: StepContext
  round: Round
  connection: Connection
  budget: VendorBudget
  /**
   * Credentials of this call. The cloud stores these credentials after the first page, because that page proves that
   * they work.
   */
  credentials: Credentials
  storesCredentials: boolean
}

/**
 * Reads all data types page by page. Stores the records of each page, and the cursor of the next page. Throws a
 * `VendorFault`; the pages that were stored before remain.
 */
export async function pullAll(reading: Reading): Promise<Pulled> {
  const { round, connection } = reading
  const pulled: Pulled & { counts: Map<DataType, Counts> } = {
    counts: new Map(),
    errors: [],
    hasMore: false,
    warnings: [],
  }
  const spent = { pages: 0, records: 0 }
  let absent: VendorFault | undefined
  for (const [dataType, state] of round.states) {
    const pull = connection.pull[dataType]
    if (!pull) continue
    try {
      const end = state.isDone ? state : await pullOne(reading, dataType, pull, state, pulled, spent)
      pulled.counts.set(dataType, end.counts)
      if (!end.isDone) return { ...pulled, hasMore: true }
    } catch (error) {
      // An ERP may lack some data types.
      const hasNone =
        error instanceof VendorFault && error.status === 404 && round.key.side === 'erp' && state.cursor === null
      if (!hasNone) throw error
      absent = error
      pulled.warnings.push(`${dataType}: the system does not have this data (404)`)
    }
  }
  if (absent && pulled.counts.size === 0) throw absent
  return pulled
}

async function pullOne(
  reading: Reading,
  dataType: DataType,
  pull: Pull,
  from: PullState,
  pulled: Pulled,
  spent: { pages: number; records: number },
): Promise<PullState> {
  const { work, budget } = reading
  let state = from
  let isFirst = true
  while (!state.isDone) {
    if (spent.pages >= PAGES_LIMIT || spent.records >= RECORDS_LIMIT || budget.bytes <= 0 || budget.signal.aborted)
      return state
    let page: Page
    try {
      page = checkPage(await pull(state.cursor), state.cursor)
    } catch (error) {
      if (!(error instanceof VendorFault)) throw error
      // The time limit ended this call after at least one page; the next call continues.
      if (budget.signal.aborted && spent.pages > 0) return state
      const isStale = isFirst && state.cursor !== null && error.code === 'system_refused'
      if (!isStale) throw error
      // The stored cursor has expired in the system.
      state = freshState(work.services.platform.clock.wall())
      continue
    } finally {
      isFirst = false
    }
    spent.pages++
    spent.records += page.records.length
    state = await storePage(reading, dataType, page, state, pulled)
    work.progress({ dataType, pages: spent.pages, records: state.counts.seen, errors: state.counts.failed })
  }
  return state

  function checkPage(page: Page, cursor: string | null): Page {
    const { records, next } = page
    if (records.length > PAGE_LIMIT)
      throw new VendorFault('answer_not_understood', `a page has over ${PAGE_LIMIT} records`)
    if (next === null) return page
    const isPossible =
      next.length > 0 && next.length <= CURSOR_LIMIT && !/[\u0000-\u001f\u007f]/.test(next) && next !== cursor
    if (!isPossible) throw new VendorFault('answer_not_understood', 'the next cursor is unchanged or too long')
    return page
  }
}

async function storePage(
  { round, credentials, storesCredentials }: Reading,
  dataType: DataType,
  page: Page,
  before: PullState,
  pulled: Pulled,
): Promise<PullState> {
  let state = before
  const { records, next } = page
  let at = 0
  do {
    const batch = records.slice(at, at + BATCH_LIMIT)
    const isLast = at + BATCH_LIMIT >= records.length
    state = await round.step(async (call, store) => {
      const done = await applyBatch(dataType, batch, {
        call,
        store,
        system: round.key.system,
        from: state.counts.seen,
        dryRun: false,
      })
      const counts = addCounts(state.counts, done)
      const after = isLast ? { ...state, counts, cursor: next, isDone: next === null } : { ...state, counts }
      // The cursor is stored with the last batch of a page. If a crash happens before that, the page is read again.
      // Writing its records twice does no harm.
      if (isLast) await round.storeState(call, store, dataType, after)
      if (isLast && storesCredentials) await round.storeCredentials(call, credentials)
      call.afterCommit(() => addErrors(pulled.errors, done.errors))
      return after
    })
    at += BATCH_LIMIT
  } while (at < records.length)
  return state
}
