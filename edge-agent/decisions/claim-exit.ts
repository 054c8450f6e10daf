import type { TagName } from '../../device-drivers/kit/device.ts'
import { newId } from '../../policy/ids.ts'
import type { DenyReason } from '../../policy/vocabulary.ts'
import type { AuthorizeParts } from './authorize.ts'
import { judgeByCloud } from './by-cloud.ts'
import { assessItem } from './by-item.ts'
import { claimOf, type RequestContext } from './request.ts'

/**
 * Uses up the exit right of a paid tag that left through a gate. The purchase becomes UNLOADED when all its goods have
 * left. The agent first applies its own policy. Then the agent requests a token from the cloud, because only the cloud
 * knows which unit has the tag. One commit claims and confirms the right. No device moves.
 */
export type ClaimExit = (deviceId: string, tag: TagName, leftMs: number) => Promise<'claimed' | 'refused' | 'later'>

/** Temporary denials: a later attempt may succeed. */
const TEMPORARY: ReadonlySet<DenyReason> = new Set(['authorization_outstanding', 'clock_untrusted'])

/** Makes the function that claims exit rights. That function throws only if the ledger throws. */
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
    // A denial in the cloud may alert staff, although the shopper has left. So the agent sends no request that its own
    // policy denies.
    const { refusal } = assessItem(parts, items, context)
    if (refusal !== undefined) return TEMPORARY.has(refusal) ? 'later' : 'refused'
    if (!link.isOnline) return 'later'
    const verdict = await judgeByCloud(parts, link, context)
    if (!verdict) return 'later'
    if (!verdict.granted) return TEMPORARY.has(verdict.reason) ? 'later' : 'refused'
    if (!verdict.grant) return 'refused'
    const { nonce, acknowledgedSeq } = verdict.grant
    tokenVoider.voidUnlessUsedSoon(nonce)
    const claimed = await ledger.claimAndConfirm({
      ...claimOf(verdict.grant),
      redemptionId: newId('rdm', platform),
      rightClass: 'exit',
      deviceId,
      nowMs: clock.now().nowMs,
    })
    if (claimed.ok) return 'claimed'
    // The cloud may not know yet that this ledger used the right or voided the token. Once the cloud has the journal
    // rows, the cloud may choose another unit.
    const isAheadOfCloud = acknowledgedSeq !== undefined && ledger.journal.head.seq > acknowledgedSeq
    await tokenVoider.voidIfUnused(nonce)
    return isAheadOfCloud ? 'later' : 'refused'
  }
}
