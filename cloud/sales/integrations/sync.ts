import { deadline } from '../../../policy/platform.ts'
import { keyCaller } from '../../platform/foundation/caller.ts'
import { Failure, invalid } from '../../platform/foundation/failure.ts'
import { holderOf, sharedSlots, shares } from '../../platform/foundation/shared-slots.ts'
import type { StepContext, Call } from '../../platform/operations/operation.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { applyBatch, BATCH_LIMIT } from './apply-batch.ts'
import {
  storedCredentials,
  readCredentials,
  systemRules,
  type Credentials,
  type SyncError,
  addCounts,
  freshState,
  type Counts,
  addErrors,
  type PullState,
  sealCredentials,
  stateOf,
} from './connection.ts'
import { mapRecords } from './connectors/generic.ts'
import { findConnector } from './connectors.ts'
import {
  type Connector,
  type Connection,
  type Page,
  type Pull,
  canonical,
  DATA_TYPES,
  type DataType,
  type Side,
  type SystemName,
} from './connector.ts'
import {
  findConnection,
  writeSealed,
  endPulls,
  endLease,
  ensureConnection,
  pullsOf,
  takeLease,
  writePull,
  type ConnectionKey,
} from './queries.ts'
import { MOCK_CATEGORIES, MOCK_COUNTS, MOCK_PRICE_UPDATES, sandboxWarnings, tryRecords } from './sandbox.ts'
import { every15Seconds, PAGE_LIMIT, vendorClient, type VendorBudget, failureOf, VendorFault } from './vendor-client.ts'
import { newId } from '../../../policy/ids.ts'
import { hashOf } from '../../platform/operations/idempotency.ts'
import type { Row } from '../../platform/persistence/schema.ts'

/**
 * Durable state of a round. A round reads a system once, in one or more calls. Each batch stores its records and renews
 * the lease in one transaction. The last batch of a page also stores the cursor, so that the next call continues an
 * interrupted round. The lease allows one reader at a time, because two readers would overwrite each other's cursor.
 */
interface Round {
  readonly key: ConnectionKey
  readonly connectionId: string
  readonly states: ReadonlyMap<DataType, PullState>
  /** Runs one transaction that holds and renews the lease. Throws 409 if another call has taken over the lease. */
  step<T>(change: (call: Call, store: Row<'store'>) => Promise<T>): Promise<T>
  /** Stores the progress. Call it within a step. */
  storeState(call: Call, store: Row<'store'>, dataType: DataType, state: PullState): Promise<void>
  /** Stores the credentials; deletes them if `undefined`. Call it within a step. */
  storeCredentials(call: Call, credentials: Credentials | undefined): Promise<void>
  /** Ends the round, so that the next one starts at the first page. Call it within a step. */
  end(call: Call): Promise<void>
  /** Ends the lease; never throws. */
  release(): Promise<void>
}

/** Lease time, ms. A reader that completes no step in this time is regarded as crashed. */
const ROUND_LEASE_MS = 60_000

/** Starts a round or continues an interrupted one. Throws 409 `sync_in_progress` while another call reads. */
async function beginRound(work: StepContext, which: ConnectionKey, sourceText: string): Promise<Round> {
  const source = hashOf(sourceText)
  const leaseId = newId('lse', work.services.platform)
  const { connection, states } = await work.step(async (call) => {
    const store = await ownStore(call, which.storeId)
    const row = await connectionOf(call, store, which)
    await holdLease(call, row.connection_id, leaseId)
    call.changed(row.connection_id)
    const rows = new Map((await pullsOf(call.db, which)).map((pull) => [pull.data_type, pull]))
    const types: readonly DataType[] = DATA_TYPES[which.side]
    return {
      connection: row,
      states: new Map(types.map((type) => [type, stateOf(rows.get(type), source, call.nowMs)])),
    }
  })
  const connectionId = connection.connection_id
  return {
    key: which,
    connectionId,
    states,
    step: (change) =>
      work.step(async (call) => {
        const store = await ownStore(call, which.storeId)
        await holdLease(call, connectionId, leaseId)
        return change(call, store)
      }),
    storeState: (call, store, dataType, { cursor, isDone, counts, startedMs }) =>
      writePull(call.db, {
        store_id: store.store_id,
        side: which.side,
        system: which.system,
        data_type: dataType,
        tenant: store.tenant,
        source,
        next_cursor: cursor,
        is_done: Number(isDone),
        counts: JSON.stringify(counts),
        started_ms: startedMs,
        updated_ms: call.nowMs,
      }),
    storeCredentials: (call, credentials) =>
      writeSealed(
        call.db,
        connectionId,
        credentials ? sealCredentials(call.services, connectionId, credentials) : null,
        call.nowMs,
      ),
    end: (call) => endPulls(call.db, which),
    release: () =>
      work
        .release((db) => endLease(db, connectionId, leaseId))
        .catch((error: unknown) =>
          work.services.log.error({ err: error, connectionId }, 'a lease could not be ended; it expires by itself'),
        ),
  }
}

async function holdLease({ db, nowMs }: Call, connectionId: string, leaseId: string): Promise<void> {
  if (await takeLease(db, connectionId, { id: leaseId, untilMs: nowMs + ROUND_LEASE_MS, nowMs })) return
  throw new Failure('already-exists', 'another call is reading this system: wait until it ends', {
    reason: 'sync_in_progress',
    retryAfter: 5,
  })
}

/** Connection of a store to a system; created if necessary. */
function connectionOf(
  call: Call,
  store: Row<'store'>,
  { side, system }: ConnectionKey,
): Promise<Row<'integration_connection'>> {
  const { db, nowMs, services } = call
  return ensureConnection(db, {
    connection_id: newId('con', services.platform),
    tenant: store.tenant,
    store_id: store.store_id,
    side,
    system,
    sealed: null,
    lease_id: null,
    lease_until_ms: 0,
    updated_ms: nowMs,
  })
}

/** Limits per call. If a limit ends a call, the next call continues. */
const PAGES_LIMIT = 1_000
const RECORDS_LIMIT = 100_000
const CURSOR_LIMIT = 4_096

interface Pulled {
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
async function pullAll(reading: Reading): Promise<Pulled> {
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

interface SyncInput {
  system: SystemName
  storeId: string
  credentials?: Credentials | undefined
  records?: readonly unknown[] | undefined
  dataType?: DataType | undefined
  remember?: boolean | undefined
}

export interface Synced {
  isSandbox: boolean
  counts: ReadonlyMap<DataType, Counts>
  errors: SyncError[]
  hasMore: boolean
  warnings: string[]
}

/** Emits the event of a whole round. The function runs within the step that ends the round. */
type EmitSynced = (
  call: Parameters<Parameters<StepContext['step']>[0]>[0],
  counts: ReadonlyMap<DataType, Counts>,
) => void

/** Time limit of a call, ms; the next call continues. */
const CALL_WITHIN_MS = 240_000
const BYTES_LIMIT = 256 * 1024 * 1024
/** Each read needs memory for some pages. */
const BUSY = { text: 'the server is already reading other systems; try again in 5 s', retryAfter: 5 }
const withSlot = sharedSlots({ atWork: 16, atWorkOfOne: 8, waiting: 0, waitingOfOne: 0 }, BUSY)
/** Many accounts may have a system of one vendor, and it may be slow. */
const takeSystem = shares({ ofOne: 8, total: 16 })

/** Reads a till or ERP system into a store. The records come from the request, or page by page from the system. */
export async function sync(work: StepContext, side: Side, input: SyncInput, announce: EmitSynced): Promise<Synced> {
  const isSandbox = keyCaller(work.caller).mode === 'test'
  const connector = findConnector(input.system, side)
  if (isSandbox) return syncSandbox(work, side, input, connector, announce)
  if (!connector) throw invalid('system', `${input.system} is not available yet`, 'system_not_built')
  const which = { storeId: input.storeId, side, system: canonical(input.system) }
  const kept = await work.read(async (call) => {
    await ownStore(call, input.storeId)
    return input.credentials ?? storedCredentials(call.services, await findConnection(call.db, which))
  })
  if (input.records) return syncRecords(work, side, { ...input, records: input.records }, connector, announce)
  if (!kept) throw missingCredentials()
  const read = readCredentials(connector, kept, work.services.config)
  const leave = takeSystem(new URL(connector.addressOf(read)).host)
  if (!leave) throw new Failure('unavailable', BUSY.text, { retryAfter: BUSY.retryAfter })
  const reading = withSlot(holderOf(work.caller), async () => {
    const round = await beginRound(work, which, connector.sourceOf(read))
    try {
      const pulled = await pullWith(work, side, round, connector, {
        written: kept,
        read,
        remember: input.remember !== false,
      })
      await round.step(async (call) => {
        if (input.remember === false) await round.storeCredentials(call, undefined)
        if (pulled.hasMore) return
        await round.end(call)
        announce(call, pulled.counts)
      })
      return { isSandbox, ...pulled }
    } catch (error) {
      throw error instanceof VendorFault ? failureOf(error) : error
    } finally {
      await round.release()
    }
  })
  return reading.finally(leave)
}

function missingCredentials(): Failure {
  return new Failure('invalid-argument', 'credentials is missing: send an object', {
    details: [
      {
        path: 'credentials',
        code: 'missing',
        message: 'credentials is missing: send an object, because none are stored for this system',
      },
    ],
  })
}

async function pullWith(
  work: StepContext,
  side: Side,
  round: Round,
  connector: Connector,
  credentials: { written: Credentials; read: unknown; remember: boolean },
): Promise<Pulled> {
  const { platform, outgoing, config } = work.services
  const time = deadline(platform.timers, CALL_WITHIN_MS)
  const budget = { bytes: BYTES_LIMIT, signal: time.signal }
  const beat = every15Seconds(platform, () => round.step(async () => undefined))
  try {
    const client = vendorClient(connector.addressOf(credentials.read), {
      outgoing,
      platform,
      rules: systemRules(config),
      budget,
      beat,
    })
    const connection = connector.connect(credentials.read, client, side)
    return await pullAll({
      work,
      round,
      connection,
      budget,
      credentials: credentials.written,
      storesCredentials: credentials.remember,
    })
  } finally {
    time.done()
  }
}

function typeOfRecords(side: Side, dataType: DataType | undefined): DataType {
  return dataType ?? DATA_TYPES[side][0]
}

/** Writes the records of the request without using the system. */
async function syncRecords(
  work: StepContext,
  side: Side,
  input: SyncInput & { records: readonly unknown[] },
  connector: Connector,
  announce: EmitSynced,
): Promise<Synced> {
  const { credentials, records, remember } = input
  const dataType = typeOfRecords(side, input.dataType)
  if (credentials) readCredentials(connector, credentials, work.services.config)
  const mapping = credentials?.['mapping']
  const mapped = mapRecords(records, dataType, typeof mapping === 'object' ? mapping : undefined)
  const which = { storeId: input.storeId, side, system: canonical(input.system) }
  return work.step(async (call) => {
    const store = await ownStore(call, input.storeId)
    const { connection_id: connectionId } = await connectionOf(call, store, which)
    if (remember === false) await writeSealed(call.db, connectionId, null, call.nowMs)
    call.changed(connectionId)
    const done = await applyBatch(dataType, mapped, { call, store, system: which.system, from: 0, dryRun: false })
    const counts = new Map([[dataType, addCounts(freshState(call.nowMs).counts, done)]])
    announce(call, counts)
    return { isSandbox: false, counts, errors: [...done.errors], hasMore: false, warnings: [] }
  })
}

/** Returns invented counts. Writes only the event. */
function syncSandbox(
  work: StepContext,
  side: Side,
  input: SyncInput,
  connector: Connector | undefined,
  announce: EmitSynced,
): Promise<Synced> {
  const { credentials, records } = input
  return work.step(async (call) => {
    const store = await ownStore(call, input.storeId)
    if (!credentials && !records) throw missingCredentials()
    const warnings = sandboxWarnings(connector, input.system, credentials, call)
    const counts = new Map<DataType, Counts>()
    const blank = freshState(call.nowMs).counts
    const errors: SyncError[] = []
    if (records) {
      const dataType = typeOfRecords(side, input.dataType)
      const tried = await tryRecords(call, store, dataType, records, credentials?.['mapping'])
      counts.set(dataType, {
        ...blank,
        taken: tried.taken,
        failed: records.length - tried.taken,
        categories: Array.from({ length: tried.categories }, (_, i) => `${i}`),
      })
      errors.push(...tried.errors)
    } else {
      const categories = Array.from({ length: MOCK_CATEGORIES }, (_, i) => `${i}`)
      for (const dataType of DATA_TYPES[side])
        counts.set(dataType, { ...blank, taken: MOCK_COUNTS[dataType], repriced: MOCK_PRICE_UPDATES, categories })
    }
    call.changed(store.store_id)
    announce(call, counts)
    return { isSandbox: true, counts, errors, hasMore: false, warnings }
  })
}
