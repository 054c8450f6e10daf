import type { DecisionFacts } from '../../../policy/decide.ts'
import { newId } from '../../../policy/ids.ts'
import type { DenyReason } from '../../../policy/vocabulary.ts'
import { raiseForEvent } from '../../assistance/raise-for-event.ts'
import { canonicalJson, hashOf } from '../../operations/idempotency.ts'
import type { Call } from '../../operations/operation.ts'
import type { ProtectionAuthorizationRow } from '../../persistence/tables/protection.ts'
import { keepDecision } from '../records/decisions.ts'
import { recordEvent } from '../records/events.ts'
import type { Question } from './question.ts'
import type { Subject } from './subject.ts'

/** A question with its subject, for its two events: `requested`, then `granted` or `denied`. */
export interface Asking {
  question: Question
  subject: Pick<Subject, 'purchase' | 'itemStatus' | 'lineId'>
  /** The facts of the decision, one for each unit. `simulateProtectionPolicy` tries other policies on them. */
  facts: readonly DecisionFacts[]
  /** A token carries the second one. Both events have the same time and are listed by id, so the first sorts first. */
  eventIds: { requested: string; decided: string }
}

/**
 * Ids for the two events of a question. A record of something past is identified by its device, time, action and item: a device that
 * sends it twice adds nothing.
 */
export function eventIdsOf({ services: { platform } }: Pick<Call, 'services'>, question: Question): Asking['eventIds'] {
  const { asked, action, identifiers, purchase, metadata } = question
  if (asked.isPast) {
    const past = [asked.caller.tenant, metadata.deviceId, asked.occurredMs, action, identifiers, purchase?.purchase_id]
    const name = `evt_${hashOf(canonicalJson(past))}`
    return { requested: `${name}-1`, decided: `${name}-2` }
  }
  const [requested, decided] = [newId('evt', platform), newId('evt', platform)].sort() as [string, string]
  return { requested, decided }
}

/** Records a denied question; returns the id of the second event. */
export async function recordDenied(call: Call, asking: Asking, reason: DenyReason): Promise<string> {
  const { asked } = asking.question
  const fields = await recordRequested(call, asking)
  const denied = {
    type: 'protection.authorization.denied',
    ...fields,
    reason,
    eventId: asking.eventIds.decided,
  } as const
  await raiseForEvent(scopeOf(call, asking), denied, asked.occurredMs)
  await recordEvent(scopeOf(call, asking), denied)
  await keepFacts(call, asking, reason)
  return asking.eventIds.decided
}

/** Records a granted question, with or without a token; returns the id of the second event, which the token carries. */
export async function recordGranted(
  call: Call,
  asking: Asking,
  authorization: ProtectionAuthorizationRow | undefined,
): Promise<string> {
  const fields = await recordRequested(call, asking)
  await recordEvent(scopeOf(call, asking), {
    type: 'protection.authorization.granted',
    ...fields,
    eventId: asking.eventIds.decided,
    ...(authorization && { replayProtectedNonce: authorization.nonce, authorizationState: 'issued' as const }),
  })
  await keepFacts(call, asking, null)
  return asking.eventIds.decided
}

async function recordRequested(call: Call, asking: Asking) {
  const fields = eventFields(asking)
  await recordEvent(scopeOf(call, asking), {
    type: 'protection.authorization.requested',
    ...fields,
    eventId: asking.eventIds.requested,
  })
  return fields
}

async function keepFacts({ db, nowMs }: Call, { question, facts, eventIds }: Asking, reason: DenyReason | null) {
  const { store } = question.asked
  if (store) await keepDecision(db, store, { eventId: eventIds.decided, atMs: nowMs, reason, facts })
}

function scopeOf(call: Call, { question: { asked } }: Asking) {
  return { db: call.db, tenant: asked.caller.tenant, platform: call.services.platform, nowMs: call.nowMs }
}

function eventFields({ question, subject }: Asking) {
  const { asked, action, identifiers, metadata, scanSource } = question
  const { device, store } = asked
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
    operatorId: asked.operatorId,
    scanSource: scanSource ?? null,
    purchaseId: subject.purchase?.purchase_id ?? null,
    itemLineId: subject.lineId ?? identifiers.itemLineId ?? null,
    epc: identifiers.epc ?? null,
    tagUid: identifiers.tagUid ?? null,
    tagId: identifiers.tagId ?? null,
    itemStatus: subject.itemStatus,
    occurredMs: asked.occurredMs,
  }
}
