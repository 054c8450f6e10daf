import type { AnonymousCaller, Mode, UserCaller } from '../../platform/foundation/caller.ts'
import { PLATFORM_ROLE, tenantOf } from '../../platform/foundation/caller.ts'
import { Failure } from '../../platform/foundation/failure.ts'
import type { OperationResult } from '../../platform/operations/call-context.ts'
import { readIdempotencyKey } from '../../platform/operations/idempotency.ts'
import type { Operation, Services } from '../../platform/operations/operation.ts'
import { perform, performStream } from '../../platform/operations/perform.ts'
import type { OperationRequest } from '../../platform/operations/call-context.ts'
import type { Database } from '../../platform/persistence/database.ts'
import type { OperationLimits } from './operation-limits.ts'
import { pickCaller } from './pick-caller.ts'

/** A call of a page. */
interface PageCall {
  readonly operation: Operation
  /** The fields, as in the body of an HTTP request. */
  readonly input: Record<string, unknown>
  /** Makes a repeated form post harmless. Forms contain it in a hidden field. */
  readonly idempotencyKey: string | undefined
  readonly requestId: string
}

/**
 * Performs an operation for a page of the console, in this process. Makes the same checks as an HTTP call: role, rate
 * limit, fields and package; writes the same audit row. A page counts as one request, whatever it reads
 * (`OperationLimits.takePage`). Throws a `Failure`.
 */
export type PerformAs = (caller: UserCaller | AnonymousCaller, call: PageCall) => Promise<OperationResult>

/** Makes the function for this process. `limits` are the limits of the API. */
export function performerForPages(database: Database, services: Services, limits: OperationLimits): PerformAs {
  return (caller, call) => perform(admitted(caller, call, limits), database, services)
}

/** Like `performerForPages`, for operations that stream a file. */
export function streamerForPages(
  database: Database,
  services: Services,
  limits: OperationLimits,
): (caller: UserCaller, call: PageCall) => ReturnType<typeof performStream> {
  return (caller, call) => performStream(admitted(caller, call, limits), database, services)
}

function admitted(
  caller: Parameters<PerformAs>[0],
  { operation, input, idempotencyKey, requestId }: PageCall,
  limits: OperationLimits,
): OperationRequest {
  const user = caller.kind === 'user' ? caller : undefined
  const address = caller.kind === 'anyone' ? caller.address : ''
  // `takePage` has counted what a page reads.
  if (!user || operation.changes || operation.stream) limits.take(user, operation, address, {})
  return {
    operation,
    caller: pickCaller(user, operation, address),
    input,
    isLegacyForm: false,
    idempotencyKey: operation.changes ? readIdempotencyKey(idempotencyKey) : undefined,
    requestId,
  }
}

/** The same user in another mode. Throws 403 if the session may use sandbox data only, or live data only. */
export function userInMode(user: UserCaller, mode: Mode): UserCaller {
  if (mode === 'test' && user.role === PLATFORM_ROLE)
    throw new Failure('permission-denied', 'people who run the cloud have no sandbox', { reason: 'user_not_allowed' })
  if (mode === 'live' && !user.mayUseLive)
    throw new Failure('permission-denied', 'this session may use sandbox data only: add a second factor', {
      reason: 'second_factor_needed',
    })
  return { ...user, mode, tenant: tenantOf(user.accountId, mode) }
}
