import { decide, type DecisionFacts } from '../../policy/decide.ts'
import { ITEM_IDENTIFIER_KINDS, type ItemIdentifiers } from '../../policy/identifiers.ts'
import type { KnownItem } from '../items/item-table.ts'
import { STALE_SECONDS, type Replica } from '../items/replica.ts'
import type { TokenParts } from './by-token.ts'
import type { Ask, Verdict } from './request.ts'

/**
 * Decides about a named item by the replica alone. It says whether the item is paid, but not whether its
 * rights are still unused: so what it answers moves nothing. A paid item may leave, which needs no actuator;
 * to release its tag takes a receipt, or staff.
 */
export function decideByItem({ trust, clock }: TokenParts, items: Pick<Replica, 'find' | 'confirmedMs'>, { request, device }: Ask): Verdict {
  const policy = trust.policy?.policy
  if (!policy) return { granted: false, reason: 'policy_stale' }
  const item = findItem(items, request.identifiers)
  const facts: DecisionFacts = {
    action: request.action,
    storeId: device.storeId,
    device,
    clockTrusted: clock.now().trust !== 'none',
    stage: trust.stage(),
    item: item ? { status: item.status, category: item.category, ...(item.priceCent !== undefined && { priceCent: item.priceCent }) } : null,
    identifiedBy: ITEM_IDENTIFIER_KINDS.filter((kind) => request.identifiers[kind] !== undefined),
    right: 'free',
    operator: request.operatorId !== undefined,
  }
  const decision = decide(facts, policy)
  const ageSeconds = Math.round((clock.now().nowMs - items.confirmedMs) / 1_000)
  const status = item && { itemStatus: item.status, ...(ageSeconds > STALE_SECONDS && { statusAgeSeconds: ageSeconds }) }
  if (!decision.allowed) return { granted: false, reason: decision.reason, ...status }
  const movesNothing = request.action === 'verify_item_status' || request.action === 'authorize_exit'
  return movesNothing ? { granted: true, grant: null, eventId: null, ...status } : { granted: false, reason: 'manual_assistance_required', ...status }
}

/** Names of two different items name none. */
function findItem(items: Pick<Replica, 'find'>, identifiers: ItemIdentifiers): KnownItem | undefined {
  const found = (['epc', 'tagUid', 'tagId'] as const).flatMap((kind) => {
    const name = identifiers[kind]
    return name === undefined ? [] : [items.find(kind, name)]
  })
  const [first] = found
  return first && found.every((item) => item?.status === first.status && item.priceCent === first.priceCent && item.category === first.category) ? first : undefined
}
