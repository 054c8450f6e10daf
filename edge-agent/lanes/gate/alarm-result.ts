import type { ScanResult } from '../scan-result.ts'
import { tagNameOf } from './tags/gate-tag.ts'
import type { TagAssessment } from './assess-tag.ts'

/** Makes the result that the gate's display shows for an alarm, in the form of a denied request. */
export function alarmResult(tag: string, { severity, item }: TagAssessment, offline: boolean): ScanResult {
  const name = tagNameOf(tag)
  const isLoud = severity === 'siren'
  return {
    kind: 'decision',
    item: 'epc' in name ? name.epc : name.tagUid,
    answer: {
      authorized: false,
      action: 'authorize_exit',
      expiresAt: null,
      itemCount: 0,
      remaining: 0,
      eventId: null,
      reason: isLoud ? 'item_not_paid' : 'item_unknown',
      offline,
      outcome: null,
      ...(isLoud && item && { itemStatus: item.status }),
    },
  }
}
