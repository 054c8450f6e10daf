import { decide, rightUsedFor, type DecisionFacts } from '../../policy/decide.ts'
import { ITEM_IDENTIFIER_KINDS } from '../../policy/item-identifiers.ts'
import type { Platform } from '../../policy/platform.ts'
import type { ProtectionPolicy } from '../../policy/store-policy.ts'
import { drivesOutput, type DenyReason, type RightClass } from '../../policy/vocabulary.ts'
import { findByIdentifiers, STALE_SECONDS, type Replica } from '../items/replica.ts'
import type { TokenParts } from './by-token.ts'
import type { RequestContext, Denial, Grant, ItemInfo, Verdict } from './request.ts'

/** Lifetime of an approval, s. The agent uses the approval at once. */
const APPROVAL_SECONDS = 60

/**
 * Result of the policy for a named item, with the item's status for the answer. `refusal` is undefined if the policy
 * allows the action. `rightClass`: right that the action uses; null if it uses none.
 */
type ItemAssessment = { status: ItemInfo } & (
  | { refusal: DenyReason }
  | { refusal?: undefined; policy: ProtectionPolicy; rightClass: RightClass | null }
)

/**
 * Applies the policy to a named item, using the replica. The result alone authorizes nothing, because the replica does
 * not know which rights are used.
 */
export function assessItem(
  { trust, clock }: Pick<TokenParts, 'trust' | 'clock'>,
  items: Pick<Replica, 'find' | 'confirmedMs'>,
  { request, device }: RequestContext,
): ItemAssessment {
  const policy = trust.policy?.policy
  if (!policy) return { refusal: 'policy_stale', status: {} }
  const found = findByIdentifiers(items, request.identifiers)
  const item = found === 'several' ? undefined : found
  const facts: DecisionFacts = {
    action: request.action,
    storeId: device.storeId,
    device,
    clockTrusted: clock.now().trust !== 'none',
    stage: trust.stage(),
    item: item ?? null,
    identifiedBy: ITEM_IDENTIFIER_KINDS.filter((kind) => request.identifiers[kind] !== undefined),
    right: 'free',
    hasOperator: request.operatorId !== undefined,
  }
  const decision = decide(facts, policy)
  const ageSeconds = Math.round((clock.now().nowMs - items.confirmedMs) / 1_000)
  const status: ItemInfo = {
    ...(item && { itemStatus: item.status }),
    ...(item && ageSeconds > STALE_SECONDS && { statusAgeSeconds: ageSeconds }),
    ...(decision.unknownFacts.length > 0 && { unknownFacts: decision.unknownFacts }),
  }
  return decision.allowed
    ? { policy, status, rightClass: item ? rightUsedFor(request.action, item) : null }
    : { refusal: decision.reason, status }
}

/**
 * Judges a named item, using the replica. The replica knows whether the item is paid, but not whether its rights
 * are unused. So an action that drives an output needs a receipt, a token or an operator. What an operator approves
 * counts as an override. It uses the right of the tag at this agent, and the cloud finds the unit. Staff open a fixture
 * without a right if the goods are not paid, or if the right is used. `isSoldHere`: a till sold the tag, and this agent
 * recorded the sale, so no operator is needed.
 */
export function judgeByItem(
  parts: StaffParts,
  items: Pick<Replica, 'find' | 'confirmedMs'>,
  context: RequestContext,
  isSoldHere = false,
): Verdict {
  const { action, operatorId, identifiers: tag } = context.request
  const { status, ...assessment } = assessItem(parts, items, context)
  if (assessment.refusal !== undefined) return { granted: false, reason: assessment.refusal, ...status }
  if (!drivesOutput(action)) return { granted: true, grant: null, eventId: null, ...status }
  if (operatorId === undefined && !isSoldHere)
    return { granted: false, reason: 'manual_assistance_required', ...status }
  const { policy, rightClass } = assessment
  const { nowMs } = parts.clock.now()
  const isFree =
    rightClass !== null && parts.ledger.claims.isTagFree({ tag, source: 'item', rightClass, operatorId, nowMs })
  if (!isFree && action !== 'unlock_fixture') return { granted: false, reason: 'already_redeemed', ...status }
  const grant: Grant = {
    ...(operatorId === undefined ? ownGrant(parts) : staffGrant(parts, operatorId, policy)),
    source: isFree ? 'item' : 'override',
    ...(status.itemStatus && { itemStatus: status.itemStatus }),
    ...(status.unknownFacts && { unknownFacts: status.unknownFacts }),
  }
  return { granted: true, grant }
}

/**
 * Judges a denied request about a receipt at a fixture. Staff open a fixture whatever the receipt covers: by the item,
 * or once more if the receipt's rights are used.
 */
export function openByStaff(
  parts: StaffParts,
  items: Pick<Replica, 'find' | 'confirmedMs'>,
  context: RequestContext,
  denial: Denial,
): Verdict {
  const { action, operatorId } = context.request
  const policy = parts.trust.policy?.policy
  if (action !== 'unlock_fixture' || operatorId === undefined || !policy) return denial
  const byItem = judgeByItem(parts, items, context)
  if (byItem.granted || denial.reason !== 'already_redeemed') return byItem.granted ? byItem : denial
  return { granted: true, grant: staffGrant(parts, operatorId, policy) }
}

type StaffParts = TokenParts & { platform: Pick<Platform, 'random'> }

/** Grant by an operator that uses no right. It counts as an override. */
function staffGrant(parts: StaffParts, operatorId: string, policy: ProtectionPolicy): Grant {
  return { ...ownGrant(parts), approval: { operatorId, limit: policy.operatorOverridesPerHour } }
}

function ownGrant({ platform, clock }: StaffParts): Grant {
  return {
    source: 'override',
    nonce: Buffer.from(platform.random.bytes(16)).toString('base64url'),
    candidates: [0],
    all: false,
    count: 1,
    exp: Math.floor(clock.now().nowMs / 1_000) + APPROVAL_SECONDS,
  }
}
