import { foldText } from '../../../policy/fold-text.ts'
import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import { GATE_BEHAVIOUR } from '../../../policy/item-status.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import type { Scope } from './requests.ts'
import { openRequestForDenial } from './requests.ts'

/** Maximum age of an event that opens a request, ms. After that time the shopper has left or got help. */
const RECENT_MS = 5 * 60_000

type TagEvent = Pick<ProtectionEvent, 'type' | 'storeId'> & {
  [
    K in
      | 'reason'
      | 'protectionAction'
      | 'itemStatus'
      | 'deviceId'
      | 'purchaseId'
      | 'itemLineId'
      | 'epc'
      | 'tagUid'
      | 'tagId'
  ]?: string | null | undefined
}

/** Opens an assistance request if a recent event means that a tag needs staff. */
export async function raiseForEvent(
  scope: Scope & { tenant: string },
  event: TagEvent,
  occurredMs: number,
): Promise<void> {
  const reason = isHeldAtGate(event)
    ? 'exception_hold'
    : isDeniedForStaff(event)
      ? 'manual_assistance_required'
      : undefined
  if (!reason) return
  if (Math.abs(scope.nowMs - occurredMs) > RECENT_MS) return
  await openRequestForDenial(scope, {
    tenant: scope.tenant,
    storeId: event.storeId,
    reason,
    deviceId: event.deviceId ?? null,
    purchaseId: event.purchaseId ?? null,
    item: event.itemLineId ?? event.epc ?? event.tagUid ?? (event.tagId ? foldText(event.tagId) : null),
  })
}

function isDeniedForStaff({ type, reason }: TagEvent): boolean {
  return type === 'protection.authorization.denied' && reason === 'manual_assistance_required'
}

/**
 * True if a gate alarmed for an item on hold, or the cloud denied its exit. The specification requires "alarm plus
 * staff notification" (itemStatus table).
 */
function isHeldAtGate({ type, reason, protectionAction, itemStatus }: TagEvent): boolean {
  if (!itemStatus || GATE_BEHAVIOUR[itemStatus as ItemStatus] !== 'alarm_and_staff') return false
  return type === 'protection.exception.raised'
    ? reason === 'gate_alarm'
    : type === 'protection.authorization.denied' && protectionAction === 'authorize_exit'
}
