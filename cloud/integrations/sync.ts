import { deadline } from '../../policy/platform.ts'
import { keyCaller } from '../foundation/caller.ts'
import { Failure, invalid } from '../foundation/failure.ts'
import { holderOf, sharedSlots } from '../foundation/shared-slots.ts'
import type { StepContext } from '../operations/operation.ts'
import { ownStore } from '../stores/own-store.ts'
import { applyBatch } from './apply-batch.ts'
import { storedCredentials, readCredentials, systemRules, type Credentials } from './connection.ts'
import { mapRecords } from './connectors/generic.ts'
import { findConnector } from './connectors.ts'
import type { Connector } from './connector.ts'
import { pullAll, type Pulled } from './pull.ts'
import { addCounts, freshState, type Counts } from './pull-state.ts'
import { findConnection, writeSealed } from './queries.ts'
import { beginRound, connectionOf, type Round } from './round.ts'
import { MOCK_CATEGORIES, MOCK_COUNTS, MOCK_PRICE_UPDATES, sandboxWarnings, tryRecords } from './sandbox.ts'
import type { SyncError } from './sync-error.ts'
import { canonical, DATA_TYPES, type DataType, type Side, type SystemName } from './systems.ts'
import { every15Seconds, vendorClient } from './vendor-client.ts'
import { failureOf, VendorFault } from './vendor-fault.ts'

export interface SyncInput {
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
export type EmitSynced = (
  call: Parameters<Parameters<StepContext['step']>[0]>[0],
  counts: ReadonlyMap<DataType, Counts>,
) => void

/** Time limit of a call, ms; the next call continues. */
const CALL_WITHIN_MS = 240_000
const BYTES_LIMIT = 256 * 1024 * 1024
/** Each read needs memory for some pages. */
const withSlot = sharedSlots(
  { atWork: 16, atWorkOfOne: 8, waiting: 0, waitingOfOne: 0 },
  { text: 'the server is already reading other systems; try again in 5 s', retryAfter: 5 },
)

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
  return withSlot(holderOf(work.caller), async () => {
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
        await round.reset(call)
        announce(call, pulled.counts)
      })
      return { isSandbox, ...pulled }
    } catch (error) {
      throw error instanceof VendorFault ? failureOf(error) : error
    } finally {
      await round.release()
    }
  })
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
