import { assert } from '../../../policy/assert.ts'
import type { Database, Db } from '../persistence/database.ts'
import {
  claimRequest,
  releaseRequest,
  findStoredResponse,
  hashOf,
  storeResponse,
  storeCheckpoint,
  renewRequestLease,
  lockCheckpoint,
  type StoredResponse,
  type RequestIdentity,
} from './idempotency.ts'
import { Failure } from '../foundation/failure.ts'
import { holderOf } from '../foundation/shared-slots.ts'
import { storeErrorResponse } from './stored-response.ts'
import {
  serializeChecked,
  identityOf,
  openCall,
  writeAudit,
  writeOutbox,
  type ChangedEntity,
  type CallContext,
  type OperationResult,
  type OperationRequest,
  writeFor,
} from './call-context.ts'
import type { Call, Checkpoint, Services, StepContext } from './operation.ts'
import { isDeepStrictEqual } from 'node:util'
import type { KnownCaller } from '../foundation/caller.ts'

/**
 * Performs an operation of several transactions. The first transaction finds the stored response or leases the
 * Idempotency-Key. Each step is a transaction. The last transaction writes the audit row and stores the response.
 *
 * The caller's rights are checked in each step until `once` has run. Then the rest is finished in any case, because
 * money may already be on its way.
 *
 * A second request with the same Idempotency-Key gets 409 while the first one runs. After a crash the lease expires.
 * The next attempt then runs all steps again, but reads the result of `once` from the database.
 */
export async function performSteps(
  request: OperationRequest,
  input: unknown,
  database: Database,
  services: Services,
  report: ReportProgress,
): Promise<OperationResult> {
  const { operation } = request
  assert(
    operation.steps !== undefined && !operation.secretResponse,
    `${operation.name} has no steps, or its response is secret`,
  )
  const identity = identityOf(request)
  const stored =
    identity &&
    (await database.write((db) => findOrClaim(db, request, identity, services), { holder: holderOf(request.caller) }))
  if (stored) return { replayed: true, ...stored }
  const { work, entity } = openWork(request, identity, database, services, report)
  try {
    const answer: StoredResponse = {
      status: 200,
      body: serializeChecked(operation, await operation.steps(work, input), services),
    }
    return await writeFor(database, request, async (db) => {
      const nowMs = services.platform.clock.wall()
      // False if the lease expired and another attempt has finished the request. Then the caller gets the response of
      // that attempt.
      const isOurs = identity === undefined || (await lockCheckpoint(db, identity, nowMs)) !== undefined
      const answered = isOurs ? undefined : await findStoredResponse(db, identity, nowMs)
      if (answered) return { replayed: true, ...answered }
      if (operation.audited) await writeAudit(db, request, entity(), nowMs, services)
      if (identity) await storeResponse(db, identity, answer, nowMs)
      return { replayed: false, ...answer }
    })
  } catch (error) {
    if (identity) await database.write((db) => releaseRequest(db, identity, services.platform.clock.wall()))
    return storeErrorResponse(error, identity, request, database, services)
  }
}

/** Receives progress reports. */
export type ReportProgress = (report: Readonly<Record<string, unknown>>) => void

async function findOrClaim(
  db: Db,
  request: OperationRequest,
  identity: RequestIdentity,
  services: Services,
): Promise<StoredResponse | undefined> {
  await assertRights(request, db, services)
  const nowMs = services.platform.clock.wall()
  const stored = await findStoredResponse(db, identity, nowMs)
  if (!stored) await claimRequest(db, identity, nowMs)
  return stored
}

function openWork(
  request: OperationRequest,
  identity: RequestIdentity | undefined,
  database: Database,
  services: Services,
  report: ReportProgress,
): { work: StepContext; entity(): ChangedEntity | undefined } {
  let entity: ChangedEntity | undefined
  let isDone = false
  const mayStillAct = async (db: Db) => {
    if (!isDone) await assertRights(request, db, services)
  }

  /**
   * One transaction. Only the change of `once` may run together with others, because the reasons in ADR database cover only
   * this change.
   */
  async function commit<T>(change: (opened: CallContext) => Promise<T>, mayRunTogether = false): Promise<T> {
    let after: CallContext['afterCommit'] = []
    const gated = mayRunTogether ? request : { ...request, operation: { ...request.operation, together: undefined } }
    const made = await writeFor(database, gated, async (db, isTogether) => {
      await mayStillAct(db)
      const nowMs = services.platform.clock.wall()
      const opened = openCall(request, db, services, { isTogether })
      const result = await change(opened)
      await writeOutbox(db, request, opened.events, nowMs, services)
      if (identity) await renewRequestLease(db, identity, nowMs)
      entity = opened.entity() ?? entity
      after = opened.afterCommit
      return result
    })
    await Promise.all(after.map((task) => task()))
    return made
  }

  async function once<T extends Checkpoint>(
    opened: CallContext,
    change: (call: Call) => Promise<T>,
    isStill?: (call: Call, made: T) => Promise<boolean>,
  ): Promise<T> {
    const { call } = opened
    if (!identity) return change(call)
    const checkpoint = await lockCheckpoint(call.db, identity, call.nowMs)
    if (checkpoint === undefined)
      throw new Failure('already-exists', 'the same request is still running: try again after Retry-After', {
        reason: 'idempotency_in_progress',
        retryAfter: 1,
      })
    const known = checkpoint === '' ? undefined : (JSON.parse(checkpoint) as { made: T; entity?: ChangedEntity })
    if (known && (isStill === undefined || (await isStill(call, known.made)))) {
      entity = known.entity
      return known.made
    }
    const made = await change(call)
    await storeCheckpoint(call.db, identity, JSON.stringify({ made, entity: opened.entity() }))
    return made
  }

  const work: StepContext = {
    operation: request.operation,
    caller: request.caller,
    services,
    repeatKey: identity && hashOf(`${identity.tenant}\0${identity.operation}\0${identity.keyHash}`),
    async read(look) {
      await mayStillAct(database.reads)
      return look(openCall(request, database.reads, services).call)
    },
    step: (change) => commit(({ call }) => change(call)),
    async once(change, isStill) {
      assert(!isDone, `${request.operation.name} calls once() twice`)
      const made = await commit((opened) => once(opened, change, isStill), true)
      isDone = true
      return made
    },
    release: (change) => database.write(change),
    progress: report,
  }
  return { work, entity: () => entity }
}

/**
 * Throws 401 if the rights of the caller have ended or changed since the request was admitted: bodies, uploads and long
 * operations take time. `db` is the transaction of the change, or committed data of the primary.
 */
export async function assertRights(
  { caller }: Pick<OperationRequest, 'caller'>,
  db: Db,
  { findCaller, platform }: Pick<Services, 'findCaller' | 'platform'>,
): Promise<void> {
  if (caller.kind === 'anyone') return
  const now = await findCaller(db, caller, platform.clock.wall())
  if (now && hasNoMore(now, caller) && hasNoMore(caller, now)) return
  throw new Failure(
    'unauthenticated',
    now
      ? 'the rights of this key or session changed while the request was on its way: send it again'
      : 'this key or session ended while the request was on its way',
  )
}

/** Fields of a caller that give no right. */
const NO_RIGHTS: ReadonlySet<string> = new Set(['keyGeneration', 'address'])

/** True if each right of `a` is a right of `b`. */
function hasNoMore(a: KnownCaller, b: KnownCaller): boolean {
  return Object.entries(a).every(([name, right]) => {
    const other: unknown = b[name as keyof KnownCaller]
    return right === other || NO_RIGHTS.has(name) || isDeepStrictEqual(right, other)
  })
}
