import type { AnnouncedRelease } from '../../policy/documents/release-notice.ts'
import { extractReceiptToken } from '../../policy/receipts/receipt-token.ts'
import type { RequestContext, Grant } from './request.ts'

/**
 * Describes each unit of a confirmed release for the gates of the store. A description names the device, the tag if
 * known, and the receipt or token that proves the release. Returns an empty list for actions that release no tag, and
 * for overrides.
 */
export function announcedReleases(
  { request }: RequestContext,
  grant: Grant,
  claimed: readonly number[],
  nowMs: number,
): AnnouncedRelease[] {
  const { action: protectionAction, deviceId, identifiers } = request
  if (protectionAction !== 'deactivate_label' && protectionAction !== 'detach_hard_tag') return []
  const { epc, tagUid } = identifiers
  return claimed.flatMap((step) => {
    const proof = proofOf(request, grant, step)
    const named = { ...(epc !== undefined && { epc }), ...(tagUid !== undefined && { tagUid }) }
    return proof ? [{ deviceId, protectionAction, releasedS: Math.floor(nowMs / 1_000), ...named, proof }] : []
  })
}

/**
 * Returns the receipt if possible, because a receipt names the unit. A token names a unit only if it is for one item.
 */
function proofOf(
  { receipt, token }: RequestContext['request'],
  grant: Grant,
  step: number,
): AnnouncedRelease['proof'] | undefined {
  const text = receipt === undefined ? undefined : extractReceiptToken(receipt)
  const ordinal = grant.source === 'receipt' ? step : grant.receipt?.ordinals[step]
  if (text !== undefined && ordinal !== undefined) return { receipt: text, ordinal }
  const usedToken = grant.source === 'token' ? (grant.token ?? token) : undefined
  return usedToken === undefined ? undefined : { token: usedToken }
}
