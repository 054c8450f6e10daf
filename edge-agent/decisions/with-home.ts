import { rightClass, type DenyReason } from '../../policy/vocabulary.ts'
import type { Home } from '../peers/home.ts'
import type { HomeWish } from '../peers/home-requester.ts'
import { ledgerDoubt } from '../trust/revocation/untrusted-ledger.ts'
import { decideByReceipt, type HomeView, type ReceiptParts } from './by-receipt.ts'
import { FOR_STAFF, type Ask, type Grant, type Verdict } from './request.ts'

/**
 *   receipt ─ am I the home? ─▶ decided here        another is ─ asked ─▶ it gives the rights        it cannot be asked ─▶ the isolated rules
 *
 * Receipts while the cloud is out of reach.
 */
export interface WithHome {
  /** The home gives the rights, or nobody does: only when it cannot be asked the isolated rules hold. */
  decide(ask: Ask, receipt: string): Promise<Verdict>
  /**
   * Whether a receipt is still decided by who decided. Between that and the claim the home may have moved, whose successor waits for
   * what was used before this agent knew; or the cloud may have said that this ledger does not know all.
   */
  stillHolds(grant: Grant): boolean
}

export interface WithHomeParts extends ReceiptParts {
  agentId: string
  /** The other agent where receipts are redeemed, if so. */
  home: Pick<Home, 'isElsewhere' | 'lastAnswerMs' | 'ask'>
}

/** Decides about receipts, alone or with the home's word. */
export function withHome(parts: WithHomeParts): WithHome {
  const { trust, clock, ledger, agentId, home } = parts

  const doubt = () => ledgerDoubt(ledger, clock.now().nowMs)

  function view(): HomeView {
    const isHome = trust.policy?.policy.home === agentId
    const { nowMs } = clock.now()
    // An answer that is later than now was heard in a time that was wrong, and set back since.
    const heardMs = Math.max(trust.lastContactMs, home.lastAnswerMs > nowMs ? 0 : home.lastAnswerMs)
    return { isHome, isOwn: isHome, isolatedSeconds: Math.max(0, (nowMs - heardMs) / 1_000) }
  }

  return {
    async decide(ask, receipt) {
      // While the home was asked the cloud may have said that this ledger does not know all.
      const alone = () => (doubt() ? FOR_STAFF : decideByReceipt(parts, view(), ask, receipt))
      if (!home.isElsewhere) return alone()
      // As the home would see it; what the home itself says of the rights comes on top.
      const verdict = decideByReceipt(parts, { isHome: true, isolatedSeconds: 0 }, ask, receipt)
      if (!verdict.granted || verdict.grant === null) return verdict
      const answer = await home.ask(wishOf(ask, verdict.grant))
      if ('unreachable' in answer) return underAsk(alone(), answer.redemptionId)
      if ('refused' in answer) return refusal(answer.refused, verdict.grant)
      if (answer.reason) return refusal(answer.reason, verdict.grant)
      const { redemptionId, ordinals, remaining } = answer
      return {
        granted: true,
        grant: {
          ...verdict.grant,
          candidates: ordinals,
          all: true,
          homeAsk: redemptionId,
          homeRedemption: redemptionId,
          remaining,
        },
      }
    },
    stillHolds({ home: decider }) {
      const policy = trust.policy?.policy
      return (
        decider === undefined ||
        (policy?.home === decider.agentId && policy.homeEpoch === decider.epoch && doubt() === undefined)
      )
    },
  }
}

function refusal(reason: DenyReason, { unknownFacts }: Grant): Verdict {
  return { granted: false, reason, ...(unknownFacts && { unknownFacts }) }
}

/** The home may have given what was asked for, and only its answer is lost: then it is used for this. */
function underAsk(verdict: Verdict, homeAsk: string | undefined): Verdict {
  return verdict.granted && verdict.grant && homeAsk !== undefined
    ? { granted: true, grant: { ...verdict.grant, homeAsk } }
    : verdict
}

function wishOf({ request, device }: Ask, { nonce, candidates, all, exp }: Grant): HomeWish {
  return {
    cti: nonce,
    rightClass: rightClass(request.action) ?? 'release',
    candidates,
    all,
    exp,
    deviceId: device.deviceId,
  }
}
