import type { ProtectionEvent } from '../../policy/events.ts'
import type { Scope } from './requests.ts'
import { requestForDenial } from './requests.ts'

/** Who stood there five minutes ago has been helped, or has left. */
const STILL_THERE_MS = 5 * 60_000

type DeniedEvent = Pick<ProtectionEvent, 'type' | 'storeId'> & {
  [K in 'reason' | 'deviceId' | 'purchaseId' | 'itemLineId' | 'epc' | 'tagUid' | 'tagId']?: string | null | undefined
}

/** Calls staff when an event says that a tag was denied for want of them, just now. */
export async function raiseForDenial(
  scope: Scope & { tenant: string },
  event: DeniedEvent,
  occurredMs: number,
): Promise<void> {
  if (event.type !== 'protection.authorization.denied' || event.reason !== 'manual_assistance_required') return
  if (Math.abs(scope.nowMs - occurredMs) > STILL_THERE_MS) return
  await requestForDenial(scope, {
    tenant: scope.tenant,
    storeId: event.storeId,
    deviceId: event.deviceId ?? null,
    purchaseId: event.purchaseId ?? null,
    item: event.itemLineId ?? event.epc ?? event.tagUid ?? event.tagId ?? null,
  })
}
