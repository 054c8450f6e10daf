import { rightClassOf, type DenyReason } from '../../policy/vocabulary.ts'
import type { Home } from '../peers/home.ts'
import type { RightsRequest } from '../peers/home-requester.ts'
import { untrustedReason } from '../trust/revocation/untrusted-ledger.ts'
import { decideByReceipt, type HomeRole, type ReceiptParts } from './by-receipt.ts'
import { NEEDS_STAFF, type RequestContext, type Grant, type Verdict } from './request.ts'

/**
 *   receipt ─┬─ this agent is the receipt home ─▶ decide here
 *            └─ another agent is ─▶ home request ─┬─▶ home grant or denial
 *                                                 └─ unreachable ─▶ isolated rules
 *
 * Decides about receipts while the agent is offline (ADR 0012).
 */
export interface OfflineReceipts {
  /**
   * If another agent is the receipt home, this agent requests the rights from that agent. The isolated rules apply only
   * if the receipt home is unreachable.
   */
  decide(context: RequestContext, receipt: string): Promise<Verdict>
  /**
   * Checks at the claim that the decision is still valid. Since the decision the receipt home may have moved, or the
   * cloud may have reported that this ledger is untrusted.
   */
  stillHolds(grant: Grant): boolean
}

export interface OfflineReceiptsParts extends ReceiptParts {
  agentId: string
  /** The receipt home, if it is another agent. */
  home: Pick<Home, 'isElsewhere' | 'lastAnswerMs' | 'request'>
}

/** Makes the offline decisions about receipts. */
export function offlineReceipts(parts: OfflineReceiptsParts): OfflineReceipts {
  const { trust, clock, ledger, agentId, home } = parts

  const distrustReason = () => untrustedReason(ledger, clock.now().nowMs)

  function role(): HomeRole {
    const isHome = trust.policy?.policy.home === agentId
    const { nowMs } = clock.now()
    // Ignores an answer with a future time: the clock was wrong when the answer arrived.
    const lastContactMs = Math.max(trust.lastContactMs, home.lastAnswerMs > nowMs ? 0 : home.lastAnswerMs)
    return { decidesAsHome: isHome, isThisAgent: isHome, isolatedSeconds: Math.max(0, (nowMs - lastContactMs) / 1_000) }
  }

  return {
    async decide(context, receipt) {
      // During the home request the cloud may have reported that this ledger is untrusted.
      const decideAlone = () => (distrustReason() ? NEEDS_STAFF : decideByReceipt(parts, role(), context, receipt))
      if (!home.isElsewhere) return decideAlone()
      // This agent first applies the rules as if it were the receipt home. Then the receipt home grants or refuses the
      // rights.
      const verdict = decideByReceipt(parts, { decidesAsHome: true, isolatedSeconds: 0 }, context, receipt)
      if (!verdict.granted || verdict.grant === null) return verdict
      const answer = await home.request(homeRequestOf(context, verdict.grant))
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
        (policy?.home === decidingHome.agentId &&
          policy.homeEpoch === decidingHome.epoch &&
          distrustReason() === undefined)
      )
    },
  }
}

function denial(reason: DenyReason, { unknownFacts }: Grant): Verdict {
  return { granted: false, reason, ...(unknownFacts && { unknownFacts }) }
}

/**
 * Adds the id of the home request to the grant. Although no answer arrived, the receipt home may have granted the
 * rights.
 */
function withHomeRequest(verdict: Verdict, homeRequestId: string | undefined): Verdict {
  return verdict.granted && verdict.grant && homeRequestId !== undefined
    ? { granted: true, grant: { ...verdict.grant, homeRequestId } }
    : verdict
}

function homeRequestOf({ request, device }: RequestContext, { nonce, candidates, all, exp }: Grant): RightsRequest {
  return {
    cti: nonce,
    rightClass: rightClassOf(request.action) ?? 'release',
    candidates,
    all,
    exp,
    deviceId: device.deviceId,
  }
}
