import type { Replica } from '../../items/replica.ts'
import type { ScanResult } from '../scan-result.ts'
import { tagNameOf } from './tags/gate-tag.ts'
import type { TagAssessment } from './assess-tag.ts'

/** Makes the result that the gate's display shows for an alarm, in the form of a denied request. */
export function alarmResult(
  tag: string,
  { severity, item }: TagAssessment,
  {
    offline,
    eventId,
    items,
  }: { offline: boolean; eventId: string | undefined; items: Pick<Replica, 'productOf' | 'pictureOf'> },
): ScanResult {
  const name = tagNameOf(tag)
  const product = 'epc' in name ? items.productOf('epc', name.epc) : items.productOf('tagUid', name.tagUid)
  const picture = 'epc' in name ? items.pictureOf('epc', name.epc) : items.pictureOf('tagUid', name.tagUid)
  const isLoud = severity === 'siren'
  return {
    kind: 'decision',
    item: 'epc' in name ? name.epc : name.tagUid,
    ...(product !== undefined && { product }),
    ...(picture !== undefined && { picture }),
    ...(eventId !== undefined && { alarmId: eventId }),
    answer: {
      authorized: false,
      action: 'authorize_exit',
      expiresAt: null,
      itemCount: 0,
      remaining: 0,
      eventId: null,
      reason: item?.recalled ? 'recalled' : isLoud ? 'item_not_paid' : 'item_unknown',
      offline,
      outcome: null,
      ...(isLoud && item && { itemStatus: item.status }),
    },
  }
}
