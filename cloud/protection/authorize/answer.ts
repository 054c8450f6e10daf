import type { Decision, DecisionFacts } from '../../../policy/decide.ts'
import { newId } from '../../../policy/ids.ts'
import type { ItemIdentifiers } from '../../../policy/identifiers.ts'
import type {
  AuthorizationState,
  DenyReason,
  ItemStatus,
  ProtectionAction,
  ScanSource,
} from '../../../policy/vocabulary.ts'
import { raiseForEvent } from '../../assistance/raise-for-event.ts'
import type { Call } from '../../operations/operation.ts'
import type { ProtectionAuthorizationRow, RedemptionRow } from '../../persistence/tables/protection.ts'
import { recordEvent } from '../records/events.ts'
import type { Asked, Metadata } from './asking.ts'
import { keepDecision } from '../records/decisions.ts'
import { tokenOf } from '../leases/authorizations.ts'
import { viewAuthorization } from '../leases/view.ts'

interface EventIds {
  requested: string
  /** That it was granted or denied. */
  decided: string
}

/** Ids for the two events of a decision. They are taken in at the same moment, and then listed by their ids: the question comes first. */
export function newEventIds({ services: { platform } }: Pick<Call, 'services'>): EventIds {
  const [requested, decided] = [newId('evt', platform), newId('evt', platform)].sort() as [string, string]
  return { requested, decided }
}

/** What a decision is about, for its events. */
export interface AskedAbout {
  eventIds: EventIds
  action: ProtectionAction
  identifiers: ItemIdentifiers
  itemStatus: ItemStatus | null
  purchaseId: string | null
  itemLineId: string | null
  scanSource: ScanSource | undefined
  metadata: Metadata
  /** What the decision rested on: one for each unit that was looked at; kept to try another policy on. */
  facts: readonly DecisionFacts[]
}

function eventFields(asked: Asked, about: AskedAbout) {
  const { device, store } = asked
  return {
    storeId: store?.store_id ?? 'unknown',
    protectionAction: about.action,
    deviceId: about.metadata.deviceId ?? null,
    deviceType: device?.facts.deviceType ?? null,
    workflowType: device?.facts.workflowType ?? null,
    zoneId: about.metadata.zoneId ?? device?.row.zone_id ?? null,
    laneId: about.metadata.laneId ?? device?.row.lane_id ?? null,
    gateId: about.metadata.gateId ?? device?.row.gate_id ?? null,
    firmwareVersion: about.metadata.firmwareVersion ?? device?.row.firmware_version ?? null,
    operatorId: asked.operatorId,
    scanSource: about.scanSource ?? null,
    purchaseId: about.purchaseId,
    itemLineId: about.itemLineId ?? about.identifiers.itemLineId ?? null,
    epc: about.identifiers.epc ?? null,
    tagUid: about.identifiers.tagUid ?? null,
    tagId: about.identifiers.tagId ?? null,
    itemStatus: about.itemStatus,
    occurredMs: asked.occurredMs,
  }
}

function scopeOf(call: Call, asked: Asked) {
  return { db: call.db, tenant: asked.caller.tenant, platform: call.services.platform, nowMs: call.nowMs }
}

/** Records that something was asked and refused; answers the event's id. */
export async function recordDenied(call: Call, asked: Asked, about: AskedAbout, reason: DenyReason): Promise<string> {
  const fields = eventFields(asked, about)
  await recordEvent(scopeOf(call, asked), {
    type: 'protection.authorization.requested',
    ...fields,
    eventId: about.eventIds.requested,
  })
  const denied = {
    type: 'protection.authorization.denied',
    ...fields,
    reason,
    eventId: about.eventIds.decided,
  } as const
  await raiseForEvent(scopeOf(call, asked), denied, asked.occurredMs)
  const eventId = await recordEvent(scopeOf(call, asked), denied)
  if (asked.store) await keepDecision(call.db, asked.store, { eventId, atMs: call.nowMs, reason, facts: about.facts })
  return eventId
}

/** Records that something was asked and granted; the event's id is the one that the token carries. */
export async function recordGranted(
  call: Call,
  asked: Asked,
  about: AskedAbout,
  row: ProtectionAuthorizationRow | undefined,
): Promise<string> {
  const fields = eventFields(asked, about)
  await recordEvent(scopeOf(call, asked), {
    type: 'protection.authorization.requested',
    ...fields,
    eventId: about.eventIds.requested,
  })
  const eventId = await recordEvent(scopeOf(call, asked), {
    type: 'protection.authorization.granted',
    ...fields,
    eventId: about.eventIds.decided,
    ...(row && { replayProtectedNonce: row.nonce, authorizationState: 'issued' as const }),
  })
  if (asked.store)
    await keepDecision(call.db, asked.store, { eventId, atMs: call.nowMs, reason: null, facts: about.facts })
  return eventId
}

/** The part of an answer that tells of an authorization. */
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

/** `redemptions`: what was used of it so far; nothing of a new one. */
export function describeAuthorization(
  call: Call,
  row: ProtectionAuthorizationRow,
  redemptions: readonly RedemptionRow[],
): AuthorizationAnswer {
  const { state, redeemedAtMs } = viewAuthorization(row, redemptions, call.nowMs)
  const usedSteps = new Set(redemptions.map((r) => r.step)).size
  call.restsOn({ kind: 'authorization', id: row.nonce, rev: row.rev })
  call.trueUntil(row.exp * 1_000)
  return {
    authorizationState: state,
    authorizationToken: tokenOf(row, call.services),
    expiresAt: new Date(row.exp * 1_000).toISOString(),
    redeemedAt: redeemedAtMs === null ? null : new Date(redeemedAtMs).toISOString(),
    replayProtectedNonce: row.nonce,
    itemCount: row.count - usedSteps,
  }
}

/** `trace[]` and `warnings[]`, where there is something to say. */
export function extras(asked: Asked, decision: Decision | undefined, explain: boolean | undefined) {
  return {
    ...(asked.warnings.length > 0 && { warnings: asked.warnings }),
    ...(explain === true && decision && { trace: decision.trace }),
  }
}
