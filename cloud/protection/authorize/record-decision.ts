import type { DecisionFacts } from '../../../policy/decide.ts'
import { newId } from '../../../policy/ids.ts'
import type { DenyReason } from '../../../policy/vocabulary.ts'
import { raiseForEvent } from '../../shop/assistance/raise-for-event.ts'
import { canonicalJson, hashOf } from '../../platform/operations/idempotency.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { ProtectionAuthorizationRow } from '../../platform/persistence/tables/protection.ts'
import { storeDecision } from '../records/decision-records.ts'
import { recordEvents } from '../records/record-event.ts'
import type { AuthorizationRequest } from './authorization-request.ts'
import type { AuthorizationTarget } from './authorization-target.ts'

/** A request with its target and facts. Each decision has two events: `requested`, then `granted` or `denied`. */
export interface DecisionContext {
  request: AuthorizationRequest
  target: Pick<AuthorizationTarget, 'purchase' | 'itemStatus' | 'lineId'>
  /** One entry per unit. `simulateProtectionPolicy` applies other policies to these facts. */
  facts: readonly DecisionFacts[]
  /**
   * The token contains the id `decided`. `requested` has the lower id, because lists sort events of the same time by
   * id.
   */
  eventIds: { requested: string; decided: string }
}

/**
 * Creates the ids of the two events. For a past request, the ids derive from the content of the request, so that a
 * repeated report adds no events.
 */
export function eventIdsOf(
  { services: { platform } }: Pick<Call, 'services'>,
  request: AuthorizationRequest,
): DecisionContext['eventIds'] {
  const { context, action, identifiers, purchase, metadata } = request
  if (context.isPast) {
    const past = [
      context.caller.tenant,
      metadata.deviceId,
      context.occurredMs,
      action,
      identifiers,
      purchase?.purchase_id,
    ]
    const name = `evt_${hashOf(canonicalJson(past))}`
    return { requested: `${name}-1`, decided: `${name}-2` }
  }
  const [requested, decided] = [newId('evt', platform), newId('evt', platform)].sort() as [string, string]
  return { requested, decided }
}

/** Records a denial. Returns the id of the `denied` event. */
export async function recordDenied(call: Call, decisionContext: DecisionContext, reason: DenyReason): Promise<string> {
  const { context } = decisionContext.request
  const scope = scopeOf(call, decisionContext)
  const fields = eventFields(decisionContext)
  const denied = {
    type: 'protection.authorization.denied',
    ...fields,
    reason,
    eventId: decisionContext.eventIds.decided,
  } as const
  await raiseForEvent(scope, denied, context.occurredMs)
  await recordEvents(scope, [requestedEvent(decisionContext, fields), denied])
  await storeFacts(call, decisionContext, reason)
  return decisionContext.eventIds.decided
}

/** Records a grant with or without a token. Returns the id of the `granted` event. */
export async function recordGranted(
  call: Call,
  decisionContext: DecisionContext,
  authorization: ProtectionAuthorizationRow | undefined,
): Promise<string> {
  const fields = eventFields(decisionContext)
  const granted = {
    type: 'protection.authorization.granted',
    ...fields,
    eventId: decisionContext.eventIds.decided,
    ...(authorization && { replayProtectedNonce: authorization.nonce, authorizationState: 'issued' as const }),
  } as const
  await recordEvents(scopeOf(call, decisionContext), [requestedEvent(decisionContext, fields), granted])
  await storeFacts(call, decisionContext, null)
  return decisionContext.eventIds.decided
}

function requestedEvent({ eventIds }: DecisionContext, fields: ReturnType<typeof eventFields>) {
  return { type: 'protection.authorization.requested', ...fields, eventId: eventIds.requested } as const
}

async function storeFacts(
  { db, nowMs }: Call,
  { request, facts, eventIds }: DecisionContext,
  reason: DenyReason | null,
) {
  const { store } = request.context
  if (store) await storeDecision(db, store, { eventId: eventIds.decided, atMs: nowMs, reason, facts })
}

function scopeOf(call: Call, { request: { context } }: DecisionContext) {
  return { db: call.db, tenant: context.caller.tenant, platform: call.services.platform, nowMs: call.nowMs }
}

function eventFields({ request, target }: DecisionContext) {
  const { context, action, identifiers, metadata, scanSource } = request
  const { device, store } = context
  return {
    storeId: store?.store_id ?? 'unknown',
    protectionAction: action,
    deviceId: metadata.deviceId ?? null,
    deviceType: device?.facts.deviceType ?? null,
    workflowType: device?.facts.workflowType ?? null,
    zoneId: metadata.zoneId ?? device?.row.zone_id ?? null,
    laneId: metadata.laneId ?? device?.row.lane_id ?? null,
    gateId: metadata.gateId ?? device?.row.gate_id ?? null,
    firmwareVersion: metadata.firmwareVersion ?? device?.row.firmware_version ?? null,
    operatorId: context.operatorId,
    scanSource: scanSource ?? null,
    purchaseId: target.purchase?.purchase_id ?? null,
    itemLineId: target.lineId ?? identifiers.itemLineId ?? null,
    epc: identifiers.epc ?? null,
    tagUid: identifiers.tagUid ?? null,
    tagId: identifiers.tagId ?? null,
    itemStatus: target.itemStatus,
    occurredMs: context.occurredMs,
  }
}
