import { decide, type DecisionFacts } from '../../policy/decide.ts'
import { ITEM_IDENTIFIER_KINDS, type ItemIdentifiers } from '../../policy/identifiers.ts'
import type { Platform } from '../../policy/platform.ts'
import type { KnownItem } from '../items/item-table.ts'
import { STALE_SECONDS, type Replica } from '../items/replica.ts'
import type { TokenParts } from './by-token.ts'
import type { Ask, Verdict } from './request.ts'

/** For how long an override is worth something: it is used at once. */
const OVERRIDE_SECONDS = 60

/**
 * Decides about a named item by the replica alone. It says whether the item is paid, but not whether its
 * rights are still unused: so what it answers moves nothing. A paid item may leave, which needs no actuator;
 * to release its tag takes a receipt, or staff. A fixture has no rights that could be unused: an operator opens it,
 * counted as an override.
 */
export function decideByItem(
  { trust, clock, platform }: TokenParts & { platform: Pick<Platform, 'random'> },
  items: Pick<Replica, 'find' | 'confirmedMs'>,
  { request, device }: Ask,
): Verdict {
  const policy = trust.policy?.policy
  if (!policy) return { granted: false, reason: 'policy_stale' }
  const item = findItem(items, request.identifiers)
  const facts: DecisionFacts = {
    action: request.action,
    storeId: device.storeId,
    device,
    clockTrusted: clock.now().trust !== 'none',
    stage: trust.stage(),
    item: item
      ? {
          status: item.status,
          category: item.category,
          ...(item.priceCent !== undefined && { priceCent: item.priceCent }),
        }
      : null,
    identifiedBy: ITEM_IDENTIFIER_KINDS.filter((kind) => request.identifiers[kind] !== undefined),
    right: 'free',
    operator: request.operatorId !== undefined,
  }
  const decision = decide(facts, policy)
  const ageSeconds = Math.round((clock.now().nowMs - items.confirmedMs) / 1_000)
  const status = item && {
    itemStatus: item.status,
    ...(ageSeconds > STALE_SECONDS && { statusAgeSeconds: ageSeconds }),
  }
  if (!decision.allowed) return { granted: false, reason: decision.reason, ...status }
  if (request.action === 'unlock_fixture' && request.operatorId !== undefined) {
    const nonce = Buffer.from(platform.random.bytes(16)).toString('base64url')
    const exp = Math.floor(clock.now().nowMs / 1_000) + OVERRIDE_SECONDS
    const approval = { operatorId: request.operatorId, limit: policy.operatorOverridesPerHour }
    return {
      granted: true,
      grant: {
        source: 'override',
        nonce,
        candidates: [0],
        all: false,
        count: 1,
        exp,
        approval,
        ...(item && { itemStatus: item.status }),
      },
    }
  }
  const movesNothing = request.action === 'verify_item_status' || request.action === 'authorize_exit'
  return movesNothing
    ? { granted: true, grant: null, eventId: null, ...status }
    : { granted: false, reason: 'manual_assistance_required', ...status }
}

/** Names of two different items name none. */
function findItem(items: Pick<Replica, 'find'>, identifiers: ItemIdentifiers): KnownItem | undefined {
  const found = (['epc', 'tagUid', 'tagId'] as const).flatMap((kind) => {
    const name = identifiers[kind]
    return name === undefined ? [] : [items.find(kind, name)]
  })
  const [first] = found
  return first &&
    found.every(
      (item) => item?.status === first.status && item.priceCent === first.priceCent && item.category === first.category,
    )
    ? first
    : undefined
}
