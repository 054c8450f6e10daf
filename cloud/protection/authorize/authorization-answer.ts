import type { Decision } from '../../../policy/decide.ts'
import type { AuthorizationState } from '../../../policy/vocabulary.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { viewAuthorization } from '../leases/authorizations.ts'
import type { RequestContext } from './request-context.ts'

/** Fields of a response that describe the authorization. */
export interface AuthorizationAnswer {
  authorizationState: AuthorizationState | null
  authorizationToken: string | null
  expiresAt: string | null
  redeemedAt: string | null
  replayProtectedNonce: string | null
  itemCount: number
}

export const NO_AUTHORIZATION: AuthorizationAnswer = {
  authorizationState: null,
  authorizationToken: null,
  expiresAt: null,
  redeemedAt: null,
  replayProtectedNonce: null,
  itemCount: 0,
}

/** Describes an issued authorization. `redemptions`: redemptions of the authorization so far; empty if it is new. */
export function describeAuthorization(
  call: Call,
  row: Row<'protection_authorization'>,
  authorizationToken: string,
  redemptions: readonly Row<'redemption'>[],
): AuthorizationAnswer {
  const { state, redeemedAtMs } = viewAuthorization(row, redemptions, call.nowMs)
  const usedSteps = new Set(redemptions.map((r) => r.step)).size
  return {
    authorizationState: state,
    authorizationToken,
    expiresAt: new Date(row.exp * 1_000).toISOString(),
    redeemedAt: redeemedAtMs === null ? null : new Date(redeemedAtMs).toISOString(),
    replayProtectedNonce: row.nonce,
    itemCount: row.count - usedSteps,
  }
}

/** Adds `warnings[]` if there are any, and `trace[]` if the caller sent `explain`. */
export function traceAndWarnings(
  context: RequestContext,
  decision: Decision | undefined,
  explain: boolean | undefined,
) {
  return {
    ...(context.warnings.length > 0 && { warnings: context.warnings }),
    ...(explain === true && decision && { trace: decision.trace }),
  }
}
