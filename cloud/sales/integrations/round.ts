import { newId } from '../../../policy/ids.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import { hashOf } from '../../platform/operations/idempotency.ts'
import type { Call, StepContext } from '../../platform/operations/operation.ts'
import type { IntegrationConnectionRow } from '../../platform/persistence/tables/integrations.ts'
import type { StoreRow } from '../../platform/persistence/tables/stores.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { sealCredentials, type Credentials } from './connection.ts'
import { stateOf, type PullState } from './pull-state.ts'
import {
  deletePulls,
  endLease,
  ensureConnection,
  pullsOf,
  takeLease,
  writePull,
  writeSealed,
  type ConnectionKey,
} from './queries.ts'
import { DATA_TYPES, type DataType } from './systems.ts'

/**
 * Durable state of a round. A round reads a system once, in one or more calls. Each batch stores its records and renews
 * the lease in one transaction. The last batch of a page also stores the cursor, so that the next call continues an
 * interrupted round. The lease allows one reader at a time, because two readers would overwrite each other's cursor.
 */
export interface Round {
  readonly key: ConnectionKey
  readonly connectionId: string
  readonly states: ReadonlyMap<DataType, PullState>
  /** Runs one transaction that holds and renews the lease. Throws 409 if another call has taken over the lease. */
  step<T>(change: (call: Call, store: StoreRow) => Promise<T>): Promise<T>
  /** Stores the progress. Call it within a step. */
  storeState(call: Call, store: StoreRow, dataType: DataType, state: PullState): Promise<void>
  /** Stores the credentials; deletes them if `undefined`. Call it within a step. */
  storeCredentials(call: Call, credentials: Credentials | undefined): Promise<void>
  /** Deletes the progress, so that the next round starts at the first page. Call it within a step. */
  reset(call: Call): Promise<void>
  /** Ends the lease; never throws. */
  release(): Promise<void>
}

/** Lease time, ms. A reader that completes no step in this time is regarded as crashed. */
export const ROUND_LEASE_MS = 60_000

/** Starts a round or continues an interrupted one. Throws 409 `sync_in_progress` while another call reads. */
export async function beginRound(work: StepContext, which: ConnectionKey, sourceText: string): Promise<Round> {
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
    reset: (call) => deletePulls(call.db, which),
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
export function connectionOf(
  call: Call,
  store: StoreRow,
  { side, system }: ConnectionKey,
): Promise<IntegrationConnectionRow> {
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
