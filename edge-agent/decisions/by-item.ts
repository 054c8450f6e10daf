import { decide, type DecisionFacts } from '../../policy/decide.ts'
import { ITEM_IDENTIFIER_KINDS } from '../../policy/item-identifiers.ts'
import type { Platform } from '../../policy/platform.ts'
import type { ProtectionPolicy } from '../../policy/store-policy.ts'
import { drivesOutput, type DenyReason } from '../../policy/vocabulary.ts'
import { findByIdentifiers } from '../items/find-item.ts'
import { STALE_SECONDS, type Replica } from '../items/replica.ts'
import type { TokenParts } from './by-token.ts'
import type { RequestContext, Grant, ItemInfo, Verdict } from './request.ts'

/** Lifetime of an override, s. The agent uses the override at once. */
const OVERRIDE_SECONDS = 60

/**
 * Result of the policy for a named item, with the item's status for the answer. `refusal` is undefined if the policy
 * allows the action.
 */
export type ItemAssessment = { status: ItemInfo } & (
  | { refusal: DenyReason }
  | { refusal?: undefined; policy: ProtectionPolicy }
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
  const item = findByIdentifiers(items, request.identifiers)
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
  return decision.allowed ? { policy, status } : { refusal: decision.reason, status }
}

/**
 * Decides about a named item, using the replica. The replica knows whether the item is paid, but not whether its rights
 * are unused. So an action that drives an output needs a receipt, a token or staff. Exception: an operator may open a
 * fixture, because fixtures have no unit rights. The opening counts as an override.
 */
export function decideByItem(
  parts: TokenParts & { platform: Pick<Platform, 'random'> },
  items: Pick<Replica, 'find' | 'confirmedMs'>,
  context: RequestContext,
): Verdict {
  const { action, operatorId } = context.request
  const { status, ...assessment } = assessItem(parts, items, context)
  if (assessment.refusal !== undefined) return { granted: false, reason: assessment.refusal, ...status }
  if (!drivesOutput(action)) return { granted: true, grant: null, eventId: null, ...status }
  if (action !== 'unlock_fixture' || operatorId === undefined)
    return { granted: false, reason: 'manual_assistance_required', ...status }
  const grant: Grant = {
    source: 'override',
    nonce: Buffer.from(parts.platform.random.bytes(16)).toString('base64url'),
    candidates: [0],
    all: false,
    count: 1,
    exp: Math.floor(parts.clock.now().nowMs / 1_000) + OVERRIDE_SECONDS,
    approval: { operatorId, limit: assessment.policy.operatorOverridesPerHour },
    ...(status.itemStatus && { itemStatus: status.itemStatus }),
    ...(status.unknownFacts && { unknownFacts: status.unknownFacts }),
  }
  return { granted: true, grant }
}
