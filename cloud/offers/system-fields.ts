import { invalid } from '../foundation/failure.ts'
import type { ListedOffer, UpdateOffer } from './schema.ts'

/** Counters that may have grown since the client read them. */
const COUNTERS = ['clickCount', 'favoritedCount'] as const
const FIXED = ['groupId', 'storeCount', 'productCount', 'isActive', 'status', 'scope', 'discountPercent'] as const

/** True if an update contains a field that the system sets. */
export function hasSystemFields(input: UpdateOffer): boolean {
  return [...COUNTERS, ...FIXED, 'createdAt' as const, 'offerIds' as const].some((field) => input[field] !== undefined)
}

/** Throws 400 if a field that the system sets differs from the offer (ADR 0002). */
export function assertUnchanged(
  input: UpdateOffer,
  offer: ListedOffer,
  ids: { groupId: string; offerIds: readonly string[] },
): void {
  const wrong = (field: string) => invalid(field, 'is set by the system and cannot be changed')
  for (const field of FIXED) {
    const sent = input[field]
    if (sent !== undefined && sent !== offer[field] && !(field === 'groupId' && sent === ids.groupId))
      throw wrong(field)
  }
  for (const field of COUNTERS) if ((input[field] ?? 0) > offer[field]) throw wrong(field)
  if (input.createdAt !== undefined && Date.parse(input.createdAt) !== Date.parse(offer.createdAt))
    throw wrong('createdAt')
  const { offerIds } = input
  if (offerIds && (offerIds.length !== ids.offerIds.length || offerIds.some((id) => !ids.offerIds.includes(id))))
    throw wrong('offerIds')
}
