import { rightClassOf, type DenyReason } from '../../policy/vocabulary.ts'
import type { Home } from '../peers/home.ts'
import type { HomeWish } from '../peers/home-requester.ts'
import { ledgerDoubt } from '../trust/revocation/untrusted-ledger.ts'
import { decideByReceipt, type HomeRole, type ReceiptParts } from './by-receipt.ts'
import { NEEDS_STAFF, type RequestContext, type Grant, type Verdict } from './request.ts'

/**
 *   receipt ─ am I the home? ─▶ decided here        another is ─ asked ─▶ it gives the rights        it cannot be asked ─▶ the isolated rules
 *
 * Receipts while the cloud is out of reach.
 */
export interface OfflineReceipts {
  /** The home gives the rights, or nobody does: only when it cannot be asked the isolated rules hold. */
  decide(context: RequestContext, receipt: string): Promise<Verdict>
  /**
   * Whether a receipt is still decided by who decided. Between that and the claim the home may have moved, whose successor waits for
   * what was used before this agent knew; or the cloud may have said that this ledger does not know all.
   */
  stillHolds(grant: Grant): boolean
}

export interface OfflineReceiptsParts extends ReceiptParts {
  agentId: string
  /** The other agent where receipts are redeemed, if so. */
  home: Pick<Home, 'isElsewhere' | 'lastAnswerMs' | 'ask'>
}

/** Decides about receipts, alone or with the home's word. */
export function offlineReceipts(parts: OfflineReceiptsParts): OfflineReceipts {
  const { trust, clock, ledger, agentId, home } = parts

  const doubt = () => ledgerDoubt(ledger, clock.now().nowMs)

  function role(): HomeRole {
    const isHome = trust.policy?.policy.home === agentId
    const { nowMs } = clock.now()
    // An answer that is later than now was heard in a time that was wrong, and set back since.
    const lastContactMs = Math.max(trust.lastContactMs, home.lastAnswerMs > nowMs ? 0 : home.lastAnswerMs)
    return { decidesAsHome: isHome, isThisAgent: isHome, isolatedSeconds: Math.max(0, (nowMs - lastContactMs) / 1_000) }
  }

  return {
    async decide(context, receipt) {
      // While the home was asked the cloud may have said that this ledger does not know all.
      const decideAlone = () => (doubt() ? NEEDS_STAFF : decideByReceipt(parts, role(), context, receipt))
      if (!home.isElsewhere) return decideAlone()
      // As the home would see it; what the home itself says of the rights comes on top.
      const verdict = decideByReceipt(parts, { decidesAsHome: true, isolatedSeconds: 0 }, context, receipt)
      if (!verdict.granted || verdict.grant === null) return verdict
      const answer = await home.ask(homeRequestOf(context, verdict.grant))
      if ('unreachable' in answer) return withHomeRequest(decideAlone(), answer.redemptionId)
      if ('refused' in answer) return denial(answer.refused, verdict.grant)
      if (answer.reason) return denial(answer.reason, verdict.grant)
      const { redemptionId, ordinals, remaining } = answer
      return {
        granted: true,
        grant: {
          ...verdict.grant,
          candidates: ordinals,
          all: true,
          homeRequestId: redemptionId,
          homeRedemptionId: redemptionId,
          remaining,
        },
      }
    },
    stillHolds({ home: decidingHome }) {
      const policy = trust.policy?.policy
      return (
        decidingHome === undefined ||
        (policy?.home === decidingHome.agentId && policy.homeEpoch === decidingHome.epoch && doubt() === undefined)
      )
    },
  }
}

function denial(reason: DenyReason, { unknownFacts }: Grant): Verdict {
  return { granted: false, reason, ...(unknownFacts && { unknownFacts }) }
}

/** The home may have given what was asked for, and only its answer is lost: then it is used for this. */
function withHomeRequest(verdict: Verdict, homeRequestId: string | undefined): Verdict {
  return verdict.granted && verdict.grant && homeRequestId !== undefined
    ? { granted: true, grant: { ...verdict.grant, homeRequestId } }
    : verdict
}

function homeRequestOf({ request, device }: RequestContext, { nonce, candidates, all, exp }: Grant): HomeWish {
  return {
    cti: nonce,
    rightClass: rightClassOf(request.action) ?? 'release',
    candidates,
    all,
    exp,
    deviceId: device.deviceId,
  }
}
