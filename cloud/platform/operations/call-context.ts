import { BrokenInvariant } from '../../../policy/assert.ts'
import { newId } from '../../../policy/ids.ts'
import type { Db, Database, WriteScope } from '../persistence/database.ts'
import { insertChunks, fieldsOf, prepared, preparedInsert } from '../persistence/prepared.ts'
import type { Row } from '../persistence/schema.ts'
import { LeaseRecallNeeded } from './notifier.ts'
import { actorOf, type Caller, type KnownCaller, type Tenant } from '../foundation/caller.ts'
import { canonicalJson, hashOf, hashOfBytes, type RequestIdentity } from './idempotency.ts'
import type { Call, Operation, OutgoingEvent, Services } from './operation.ts'
import { serializeResponse } from './raw-json.ts'
import { UploadedFile } from './validation.ts'
import { holderOf } from '../foundation/shared-slots.ts'

/** A request to an operation, over HTTP or MQTT. */
export interface OperationRequest {
  readonly operation: Operation
  readonly caller: Caller
  /** The parsed body, or the query of the legacy GET form. */
  readonly input: unknown
  readonly isLegacyForm: boolean
  readonly idempotencyKey: string | undefined
  readonly requestId: string
}

export interface OperationResult {
  readonly status: number
  readonly body: string
  readonly replayed: boolean
}

const NO_TENANT = '-'

/** Identifies a request by its Idempotency-Key; undefined if the request has no such key. */
export function identityOf({
  operation,
  caller,
  input,
  idempotencyKey,
}: OperationRequest): RequestIdentity | undefined {
  if (idempotencyKey === undefined || (caller.kind === 'anyone' && !operation.proofInBody)) return undefined
  const requestHash = hashOf(canonicalJson(withHashes(input)))
  // Callers without an account share one tenant. The request hash includes the secret in the body, so callers with
  // different secrets get different key hashes.
  if (caller.kind === 'anyone')
    return {
      tenant: NO_TENANT,
      operation: operation.name,
      requestHash,
      keyHash: hashOf(`body\0${requestHash}\0${idempotencyKey}`),
    }
  const scope = { tenant: caller.tenant, operation: operation.name, requestHash }
  const who = callerScope(caller)
  // Secret keys of the whole account use a hash without a scope, so that responses stored before scopes existed are
  // still found.
  return { keyHash: hashOf(who === 'secret' ? `key\0${idempotencyKey}` : `key\0${who}\0${idempotencyKey}`), ...scope }
}

/**
 * Callers with the same scope share stored responses. Keys of one kind and the same stores have equal rights, so a
 * rolled key or a second server may repeat a call. Each agent and each user has its own scope, because a stored
 * response may contain a secret.
 */
function callerScope(caller: KnownCaller): string {
  if (caller.kind === 'agent') return caller.agentId
  if (caller.kind === 'user') return `user ${caller.keyId}`
  return caller.storeIds === null ? caller.kind : [caller.kind, ...new Set([...caller.storeIds].sort())].join(' ')
}

/** Replaces uploaded files by the hash of their content. */
function withHashes(input: unknown): unknown {
  if (typeof input !== 'object' || input === null) return input
  const fields = Object.entries(input).map(([name, value]) => [
    name,
    value instanceof UploadedFile ? hashOfBytes(value.bytes) : (value as unknown),
  ])
  return Object.fromEntries(fields) as unknown
}

/** The changed entity. `owner` is the tenant that owns the entity, if that tenant is not the caller's. */
export interface ChangedEntity {
  id: string
  owner: Tenant | undefined
}

/** A call with the events, tasks and audit entity that its operation requested. */
export interface CallContext {
  call: Call
  events: OutgoingEvent[]
  afterCommit: (() => void | Promise<void>)[]
  entity(): ChangedEntity | undefined
}

/**
 * Creates the `Call` of a request in this transaction. If `mayRetry`, the operation can run again after a lease recall.
 * If `isTogether`, the transaction runs at the same time as others of its gate (ADR database).
 */
export function openCall(
  { operation, caller, requestId }: OperationRequest,
  db: Db,
  services: Services,
  { mayRetry = false, isTogether = false }: { mayRetry?: boolean; isTogether?: boolean } = {},
): CallContext {
  const events: OutgoingEvent[] = []
  const area = operation.refreshesPages ? operation.area : undefined
  const storeIds = new Set<string>()
  const afterCommit: (() => void | Promise<void>)[] = [
    () => services.changes.publish(caller, { area, storeIds, events }),
  ]
  let entity: ChangedEntity | undefined
  const call: Call = {
    operation,
    caller,
    db,
    nowMs: services.platform.clock.wall(),
    requestId,
    services,
    emit(event) {
      if (events.push(event) === 1) afterCommit.push(services.webhooks.wake)
    },
    changed: (id, owner) => void (entity = { id, owner }),
    concerns: (storeId) => void storeIds.add(storeId),
    afterCommit: (task) => void afterCommit.push(task),
    recallLeaseAndRetry(recall) {
      if (mayRetry) throw new LeaseRecallNeeded(recall)
    },
    requireAlone() {
      if (isTogether) throw new AloneNeeded('the operation must run alone')
    },
  }
  return { call, events, afterCommit, entity: () => entity }
}

/** Serializes a response. With the setting `checkAnswers` (tests), validates the response against its schema. */
export function serializeChecked(
  { response }: Pick<Operation, 'response'>,
  made: object,
  { config }: Services,
): string {
  const body = serializeResponse(made)
  if (config.checkAnswers) response.parse(JSON.parse(body))
  return body
}

const insertAudit = prepared((db, p: Omit<Row<'audit_entry'>, 'seq' | 'prev_hash' | 'hash'>) =>
  db
    .insertInto('audit_entry')
    .values(fieldsOf(p, ['entry_id', 'tenant', 'at_ms', 'actor', 'operation', 'entity_id', 'request_id'])),
)

/** Writes the audit row of a change, in the transaction of the change. */
export async function writeAudit(
  db: Db,
  request: OperationRequest,
  entity: ChangedEntity | undefined,
  nowMs: number,
  { platform }: Services,
): Promise<void> {
  const { caller, operation, requestId } = request
  const tenant = caller.kind === 'anyone' ? NO_TENANT : caller.tenant
  const what = { operation: operation.name, entity_id: entity?.id ?? null, request_id: requestId }
  // If an administrator changes another account, the audit logs of both accounts show the change.
  for (const log of new Set([tenant, entity?.owner ?? tenant])) {
    await insertAudit(db, {
      entry_id: newId('aud', platform),
      tenant: log,
      at_ms: nowMs,
      actor: actorOf(caller),
      ...what,
    })
  }
}

/**
 * Throws in tests. In production a missing declaration is only logged, and the cloud still sends the event, so that no
 * refund or release is rolled back.
 */
function reportUndeclared(name: string, event: string, { config, log }: Services): void {
  const fault = new BrokenInvariant(`${name} emitted "${event}": add it to \`emits\` of ${name}`)
  if (config.checkAnswers) throw fault
  log.error({ err: fault, operation: name, event }, 'an operation emitted an event that it does not declare')
}

const insertEvents = preparedInsert((db, rows: readonly Omit<Row<'outbox_event'>, 'seq' | 'webhook_id'>[]) =>
  db.insertInto('outbox_event').values(rows),
)

/** The operation, or the job, that emits events. */
interface EventSource {
  readonly operation: Pick<Operation, 'name' | 'emits'>
  readonly caller: Caller
}

/** Stores events in the outbox, in the transaction of the change. */
export async function writeOutbox(
  db: Db,
  { operation, caller }: EventSource,
  events: readonly OutgoingEvent[],
  nowMs: number,
  services: Services,
): Promise<void> {
  const { platform, config, webhooks } = services
  for (const { type } of events) if (!operation.emits.includes(type)) reportUndeclared(operation.name, type, services)
  if (config.checkAnswers) events.forEach(webhooks.assertEvent)
  if (events.length === 0 || caller.kind === 'anyone') return
  const rows = events.map(({ storeId, type, data }) => ({
    event_id: newId('whe', platform),
    tenant: caller.tenant,
    at_ms: nowMs,
    store_id: storeId,
    type,
    data: JSON.stringify(data),
  }))
  for (const chunk of insertChunks(rows)) await insertEvents(db, chunk)
}

/**
 * Thrown to roll back a transaction that runs at the same time as others of its gate. The work of the transaction then
 * runs again, alone.
 */
class AloneNeeded extends Error {
  override name = 'AloneNeeded'
}

/**
 * Scope of transactions that run alone. Changes of the catalogue do not wait for operations of the gate `sales` (ADR
 * database).
 */
function aloneScope({ area }: Pick<Operation, 'area'>): WriteScope {
  return area === 'catalogue' ? { alone: ['catalogue'] } : {}
}

/**
 * Runs `work` in one transaction. If the operation has a gate, the transaction runs at the same time as others of this
 * gate, else alone. If `work` throws `AloneNeeded`, `work` runs again, alone. The accounts of callers take turns.
 */
export async function writeFor<T>(
  database: Database,
  { operation, caller }: { readonly operation: Operation; readonly caller: Caller },
  work: (db: Db, isTogether: boolean) => Promise<T>,
): Promise<T> {
  const { together } = operation
  const holder = holderOf(caller)
  if (together !== undefined) {
    try {
      return await database.write((db) => work(db, true), { together, holder })
    } catch (error) {
      if (!(error instanceof AloneNeeded)) throw error
    }
  }
  return database.write((db) => work(db, false), { ...aloneScope(operation), holder })
}

/** Runs one read of an operation. The read may run twice. */
type ReadSource = <T>(look: (db: Db) => Promise<T>) => Promise<T>

/**
 * Reads of one call. If the operation has `mayBeStale`, reads go to the replica while the replica is fresh enough. If a
 * read of the replica fails, the primary repeats the read, for example because the replica lacks a new store. After the
 * first read from the primary, all later reads of the call use the primary, so that they return no older data. The
 * accounts of callers (`holder`) take turns.
 */
export function readSourceOf({ mayBeStale }: Operation, database: Database, holder: string): ReadSource {
  let replica = mayBeStale ? database.replica : undefined
  return (look) => database.readInTurn(holder, () => readOnce(look))

  async function readOnce<T>(look: (db: Db) => Promise<T>): Promise<T> {
    const db = replica?.reads()
    if (db !== undefined) {
      try {
        return await look(db)
      } catch (error) {
        replica?.failed(error)
      }
    }
    replica = undefined
    return look(database.reads)
  }
}
