import type { TagName } from '../../device-drivers/kit/device.ts'
import { RECEIPT_LIFE } from '../../policy/receipts/receipt-token.ts'
import { newId } from '../../policy/ids.ts'
import type { DenyReason } from '../../policy/vocabulary.ts'
import type { AuthorizeParts } from './authorize.ts'
import { judgeByCloud } from './by-cloud.ts'
import { assessItem } from './by-item.ts'
import { claimOf, type RequestContext } from './request.ts'

/** A unit of a receipt that lets a tag leave. `exp`: expiry of the receipt, s since 1970. */
export interface LeavingUnit {
  readonly cti: Uint8Array
  readonly ordinal: number
  readonly exp: number
}

/**
 * Uses up the exit right of a paid tag that left through a gate. The purchase becomes UNLOADED when all its goods have
 * left. The agent first applies its own policy. Then the agent requests a token from the cloud, because only the cloud
 * knows which unit has the tag. One commit claims and confirms the right. No device moves.
 *
 * A tag that left for a `unit` of a receipt uses the right of this unit, also offline: each unit lets one tag leave.
 */
export type ClaimExit = (
  deviceId: string,
  tag: TagName,
  leftMs: number,
  unit?: LeavingUnit,
) => Promise<'claimed' | 'refused' | 'later'>

/** Temporary denials: a later attempt may succeed. */
const TEMPORARY: ReadonlySet<DenyReason> = new Set(['authorization_outstanding', 'clock_untrusted'])

/** Makes the function that claims exit rights. That function throws only if the ledger throws. */
export function exitClaimer(
  parts: Pick<
    AuthorizeParts,
    'platform' | 'agentId' | 'ledger' | 'clock' | 'trust' | 'link' | 'items' | 'tokenVoider' | 'home'
  >,
): ClaimExit {
  const { platform, ledger, clock, trust, link, items, tokenVoider } = parts
  return async (deviceId, tag, leftMs, unit) => {
    const device = trust.policy?.devices.find((d) => d.deviceId === deviceId)
    if (!device || device.revoked || (device.agentId !== null && device.agentId !== parts.agentId)) return 'refused'
    if (unit) return claimUnit(parts, deviceId, tag, unit)
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
    // Without the cloud, the ledger knows the unit of a tag that this agent released.
    const own = link.isOnline || !('epc' in tag) ? undefined : ledger.claims.unitOfTag(tag.epc)
    if (own)
      return claimUnit(parts, deviceId, tag, {
        ...own,
        cti: Buffer.from(own.cti, 'hex'),
        exp: own.until - RECEIPT_LIFE,
      })
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

/** Uses up the exit right of a unit of a receipt: the goods have left, also if the cloud does not know it. */
async function claimUnit(
  { platform, ledger, clock, home }: Pick<AuthorizeParts, 'platform' | 'ledger' | 'clock' | 'home'>,
  deviceId: string,
  tag: TagName,
  { cti, ordinal, exp }: LeavingUnit,
): Promise<'claimed' | 'refused' | 'later'> {
  const right = { candidates: [ordinal], all: false, exp, rightClass: 'exit', deviceId } as const
  const nonce = Buffer.from(cti).toString('hex')
  const { claims } = ledger
  if ('epc' in tag && claims.hasLeft(nonce, tag.epc)) return 'claimed'
  if (!claims.isFree(nonce, 'exit', ordinal, clock.now().nowMs, false)) return 'refused'
  const answer = home.isElsewhere ? await home.request({ ...right, cti: nonce }) : undefined
  if (answer && 'refused' in answer) return 'later'
  // Another agent let a tag leave for this unit, and both have left.
  if (answer && 'reason' in answer && answer.reason) return 'refused'
  const granted = answer && 'ordinals' in answer ? answer.redemptionId : undefined
  const redemptionId = granted ?? newId('rdm', platform)
  const homeRequestId = answer?.redemptionId
  const request = { ...right, source: 'receipt', nonce, redemptionId, homeRequestId, nowMs: clock.now().nowMs } as const
  // A tag that left before, for another sale, does not keep this unit from being used up.
  const isNamed = claims.isTagFree({ ...request, tag })
  const claimed = await ledger.claim({ ...request, ...(isNamed && { tag }) }, () => undefined)
  if (!claimed.ok) return 'refused'
  await ledger.settle(redemptionId, 'confirmed', clock.now().nowMs)
  if (homeRequestId !== undefined) void home.reportOutcomes()
  return 'claimed'
}
