import type { TagName } from '../../device-drivers/drivers/device.ts'
import { newId } from '../../policy/ids.ts'
import type { DenyReason } from '../../policy/vocabulary.ts'
import type { AuthorizeParts } from './authorize.ts'
import { assessItem } from './by-item.ts'
import { decideOnline } from './online.ts'
import type { RequestContext } from './request.ts'

/**
 *   gone ─ would it be granted? ─▶ the cloud: which unit is it? ─▶ its exit right, used up and confirmed in one commit
 *
 * A paid tag has left a gate: the exit right of its unit is used up, as if it had been asked for, so that the
 * purchase whose goods are all gone becomes UNLOADED. Nothing moves, so nothing waits for it; that the tag was
 * seen leaving is told in an event of its own. Which unit a tag belongs to only the cloud knows.
 */
export type ClaimExit = (deviceId: string, tag: TagName, leftMs: number) => Promise<'claimed' | 'refused' | 'later'>

/** Reasons that may pass by themselves. */
const TEMPORARY: ReadonlySet<DenyReason> = new Set(['authorization_outstanding', 'clock_untrusted'])

/** Never throws but when the ledger does. */
export function exitClaimer(
  parts: Pick<AuthorizeParts, 'platform' | 'agentId' | 'ledger' | 'clock' | 'trust' | 'link' | 'items' | 'tokenVoider'>,
): ClaimExit {
  const { platform, ledger, clock, trust, link, items, tokenVoider } = parts
  return async (deviceId, tag, leftMs) => {
    const device = trust.policy?.devices.find((d) => d.deviceId === deviceId)
    if (!device || device.revoked || (device.agentId !== null && device.agentId !== parts.agentId)) return 'refused'
    const context: RequestContext = {
      device,
      request: {
        deviceId,
        action: 'authorize_exit',
        identifiers: tag,
        scanSource: 'exit_gate',
        occurredAt: new Date(leftMs).toISOString(),
      },
    }
    // What would be refused need not be asked: a refusal may call staff, and nobody stands there any more.
    const { refusal } = assessItem(parts, items, context)
    if (refusal !== undefined) return TEMPORARY.has(refusal) ? 'later' : 'refused'
    if (!link.isOnline) return 'later'
    const verdict = await decideOnline(parts, link, context)
    if (!verdict) return 'later'
    if (!verdict.granted) return TEMPORARY.has(verdict.reason) ? 'later' : 'refused'
    if (!verdict.grant) return 'refused'
    const { source, nonce, candidates, all, exp, receipt, issuedS, acknowledgedSeq } = verdict.grant
    tokenVoider.voidUnlessUsedSoon(nonce)
    const claimed = await ledger.useUp({
      redemptionId: newId('rdm', platform),
      source,
      nonce,
      rightClass: 'exit',
      candidates,
      all,
      exp,
      deviceId,
      receipt,
      issuedS,
      heardSeq: acknowledgedSeq,
      nowMs: clock.now().nowMs,
    })
    if (claimed.ok) return 'claimed'
    // The ledger knew of a use, or had given the token up, and the cloud had not heard of it: it may choose another once it has.
    const isAheadOfCloud = acknowledgedSeq !== undefined && ledger.journal.head.seq > acknowledgedSeq
    await tokenVoider.voidIfUnused(nonce)
    return isAheadOfCloud ? 'later' : 'refused'
  }
}
