import type { Database, Db } from '../persistence/database.ts'
import { accountOf, type Caller, isAtLeast, type Package } from '../foundation/caller.ts'
import { holderOf, shares } from '../foundation/shared-slots.ts'
import { assertRights, performSteps, type ReportProgress } from './perform-steps.ts'
import { LeaseRecallNeeded } from './notifier.ts'
import { Failure } from '../foundation/failure.ts'
import { findStoredResponse, storeResponse, type StoredResponse, type RequestIdentity } from './idempotency.ts'
import {
  serializeChecked,
  identityOf,
  openCall,
  writeAudit,
  writeOutbox,
  type OperationResult,
  type OperationRequest,
  readSourceOf,
  writeFor,
} from './call-context.ts'
import { needsPackage, type Call, type Operation, type Services, type SettleTry } from './operation.ts'
import { storeErrorResponse, responseSealer, type ResponseSealer } from './stored-response.ts'
import { validate, type StreamedResponse } from './validation.ts'
import { assert } from '../../../policy/assert.ts'

/**
 * Performs every operation, over HTTP and MQTT (ADR requests). Validates the input and checks the package. Checks the
 * caller's rights again when it reads or changes data, because they may have ended since the request was admitted.
 *
 * If the operation changes data, runs `countTry` and `prepare`. One transaction then looks for a stored response, runs
 * the operation, writes audit row and outbox, and stores the response. Tasks run after the commit. `perform-steps.ts`
 * performs operations of several transactions.
 */
export async function perform(
  request: OperationRequest,
  database: Database,
  services: Services,
  report: ReportProgress = ignore,
): Promise<OperationResult> {
  const { operation } = request
  const form = request.isLegacyForm && operation.get ? operation.get : operation
  const input = await validateRequest(request, services)
  if (!operation.changes || form !== operation) {
    const read = readSourceOf(operation, database, holderOf(request.caller))
    const answer = await read(async (db) => {
      await assertRights(request, database.reads, services)
      return form.run(openCall(request, db, services).call, input)
    })
    return { status: 200, body: serializeChecked(form, answer, services), replayed: false }
  }
  if (operation.steps) return performSteps(request, input, database, services, report)
  return performChange(request, input, database, services)
}

/** Validates the input and checks the package of the account. Throws a `Failure`. */
async function validateRequest(
  { operation, caller, input, isLegacyForm }: OperationRequest,
  services: Services,
): Promise<unknown> {
  const form = isLegacyForm && operation.get ? operation.get : operation
  const valid = validate(form.request, input)
  checkAccountPackage(operation, caller)
  if (caller.kind !== 'anyone') await services.authority.ready(caller.tenant, caller.keyGeneration)
  return valid
}

const ignore: ReportProgress = () => undefined

function checkAccountPackage(operation: Operation, caller: Caller): void {
  if (caller.kind === 'anyone' || !needsPackage(operation, caller.mode)) return
  if (isAtLeast(caller.package, operation.minimumPackage)) return
  throw packageTooLow(operation, caller.package, 'account')
}

/** The account or the store whose package is too low. */
type PackageHolder = 'account' | 'store'

const TOO_LOW: Record<PackageHolder, (have: string, needed: Package) => string> = {
  account: (have, needed) =>
    `this account has ${have}, the highest package of its live stores. An administrator gives one of them ${needed} with setStorePackage`,
  store: (have, needed) =>
    `this store has ${have}. An administrator changes it with setStorePackage {storeId, package: "${needed.toLowerCase()}"}`,
}

/** 403 with the present package, the package that is needed, and how to change the package. */
export function packageTooLow(operation: Operation, have: string, holder: PackageHolder): Failure {
  return packageMissing(operation.name, operation.minimumPackage, have, holder)
}

/** Like `packageTooLow`, for a field or a part of an operation. */
export function packageMissing(what: string, needed: Package, have: string, holder: PackageHolder): Failure {
  return new Failure('permission-denied', `${what} needs the package ${needed}; ${TOO_LOW[holder](have, needed)}`, {
    reason: 'package_too_low',
    requiredUpgrade: needed,
    currentPackage: have,
  })
}

async function performChange(
  request: OperationRequest,
  input: unknown,
  database: Database,
  services: Services,
  mayRetry = true,
): Promise<OperationResult> {
  const { operation } = request
  const identity = identityOf(request)
  const stored = responseSealer(request, services)
  const replay = (response: StoredResponse): OperationResult => ({ replayed: true, ...response })
  const hasFirstSteps = operation.countTry !== undefined || operation.prepare !== undefined
  let after: (() => void | Promise<void>)[] = []
  let settleTry: SettleTry | undefined
  try {
    if (hasFirstSteps) await assertRights(request, database.reads, services)
    const known =
      hasFirstSteps && identity && (await findStored(database.reads, identity, stored, services.platform.clock.wall()))
    if (known) return replay(known)
    settleTry = await countTryFirst(request, input, database, services)
    const prepared = await operation.prepare?.(openCall(request, database.reads, services).call, input)
    const performed = await writeFor(database, request, async (db, isTogether) => {
      await assertRights(request, db, services)
      const nowMs = services.platform.clock.wall()
      const earlier = identity && (await findStored(db, identity, stored, nowMs))
      after = []
      await settleTry?.(db, !earlier)
      if (earlier) return replay(earlier)
      const opened = openCall(request, db, services, { mayRetry, isTogether })
      const answer: StoredResponse = {
        status: 200,
        body: serializeChecked(operation, await operation.run(opened.call, input, prepared), services),
      }
      if (operation.audited) await writeAudit(db, request, opened.entity(), nowMs, services)
      await writeOutbox(db, request, opened.events, nowMs, services)
      if (identity) await storeResponse(db, identity, stored.seal(answer), nowMs)
      after = opened.afterCommit
      return { replayed: false, ...answer }
    })
    await Promise.all(after.map((task) => task()))
    return performed
  } catch (error) {
    if (error instanceof LeaseRecallNeeded) {
      const wait = await database.write(error.recall)
      await wait(database.reads)
      return performChange(request, input, database, services, false)
    }
    const isWrong = error instanceof Failure && error.code === 'unauthenticated'
    if (!isWrong && settleTry) await database.write(async (db) => settleTry?.(db, false))
    return storeErrorResponse(await settleRefusal(error, database), identity, request, database, services)
  }
}

/** Counts a try of a secret, and commits that before the secret is compared. */
async function countTryFirst(
  request: OperationRequest,
  input: unknown,
  database: Database,
  services: Services,
): Promise<SettleTry | undefined> {
  const { countTry } = request.operation
  return (
    countTry &&
    writeFor(database, request, async (db) => {
      await assertRights(request, db, services)
      return countTry(openCall(request, db, services).call, input)
    })
  )
}

/** Runs `afterRefusal` of an error. Returns the error that the caller gets. */
async function settleRefusal(error: unknown, database: Database): Promise<unknown> {
  if (!(error instanceof Failure) || !error.extras.afterRefusal) return error
  const next = await database.write(error.extras.afterRefusal)
  if (next instanceof Failure) return next
  next?.()
  return error
}

/** Performs work of a job or a page in one transaction, with audit row and outbox like an API call. */
export async function performTask(
  who: Pick<OperationRequest, 'operation' | 'caller' | 'requestId'>,
  database: Database,
  services: Services,
  work: (call: Call) => Promise<void>,
): Promise<void> {
  const request: OperationRequest = { ...who, input: {}, isLegacyForm: false, idempotencyKey: undefined }
  if (who.caller.kind !== 'anyone') await services.authority.ready(who.caller.tenant)
  let after: (() => void | Promise<void>)[] = []
  const holder = who.caller.kind === 'anyone' ? {} : { holder: accountOf(who.caller.tenant) }
  const run = async (db: Db) => {
    const nowMs = services.platform.clock.wall()
    const opened = openCall(request, db, services)
    await work(opened.call)
    if (who.operation.audited) await writeAudit(db, request, opened.entity(), nowMs, services)
    await writeOutbox(db, request, opened.events, nowMs, services)
    after = opened.afterCommit
  }
  await database.write(run, holder)
  await Promise.all(after.map((task) => task()))
}

async function findStored(
  db: Db,
  identity: RequestIdentity,
  stored: ResponseSealer,
  nowMs: number,
): Promise<StoredResponse | undefined> {
  const sealed = await findStoredResponse(db, identity, nowMs)
  return sealed && stored.open(sealed)
}

/** Maximum number of responses that are being streamed: to one account, and to all. */
const STREAMS = { ofOne: 4, total: 64 }
const openStreams = shares(STREAMS)

/**
 * Performs an operation whose response is too long for memory. The first part is produced before the response starts,
 * because a later failure can only abort the body. The caller's rights are checked before each read. Throws 503 if
 * the account has too many streams.
 */
export async function performStream(
  request: OperationRequest,
  database: Database,
  services: Services,
): Promise<StreamedResponse & { close(): void }> {
  const { operation, caller } = request
  const { stream } = operation
  assert(stream !== undefined && !operation.changes, `${operation.name} does not stream its response`)
  const input = await validateRequest(request, services)
  // A response that has begun can only be aborted.
  await assertRights(request, database.reads, services)
  const close = openStreams(holderOf(caller))
  if (!close)
    throw new Failure('unavailable', 'too many exports are being sent: wait until one has ended', { retryAfter: 10 })
  try {
    const source = readSourceOf(operation, database, holderOf(caller))
    const { chunks, ...head } = await stream(
      {
        operation,
        caller,
        services,
        read: (look) =>
          source(async (db) => {
            await assertRights(request, database.reads, services)
            return look(openCall(request, db, services).call)
          }),
      },
      input,
    )
    const parts = chunks[Symbol.asyncIterator]()
    const first = await parts.next()
    return { ...head, chunks: rest(first, parts), close }
  } catch (error) {
    close()
    throw error
  }
}

async function* rest(first: IteratorResult<string>, parts: AsyncIterator<string>): AsyncGenerator<string> {
  try {
    for (let part = first; part.done !== true; part = await parts.next()) yield part.value
  } finally {
    await parts.return?.()
  }
}
