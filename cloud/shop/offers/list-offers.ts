import { iso, definedFields } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { OfferGroupRow } from '../../platform/persistence/tables/offers.ts'
import { scopeOf } from './offer-scope.ts'
import { statusAt } from './offer-status.ts'
import { readBranchesOf } from './queries.ts'
import type { ListedOffer } from './schema.ts'

/**
 * Converts offers to their list form, one entry for all branches. `visible`: stores that the caller may see; null for
 * all.
 */
export async function presentOffers(
  db: Db,
  groups: readonly OfferGroupRow[],
  visible: readonly string[] | null,
  nowMs: number,
): Promise<ListedOffer[]> {
  const { branches, counts } = await readBranchesOf(
    db,
    groups.map((group) => group.group_id),
  )
  const stores = new Map<string, string[]>()
  for (const { group_id: id, store_id: storeId } of branches) {
    if (visible !== null && !visible.includes(storeId)) continue
    const known = stores.get(id)
    if (known) known.push(storeId)
    else stores.set(id, [storeId])
  }
  const countsOf = new Map(counts.map((row) => [row.group_id, row]))
  return groups.map((group) => {
    const sums = countsOf.get(group.group_id)
    return toListed(
      group,
      stores.get(group.group_id) ?? [],
      { clicks: Number(sums?.clicks ?? 0), favorites: Number(sums?.favorites ?? 0) },
      nowMs,
    )
  })
}

/**
 * Converts one offer to its list form. Computes the status from the clock, because the stored status may be outdated.
 */
export function toListed(
  group: OfferGroupRow,
  storeIds: string[],
  counts: { clicks: number; favorites: number },
  nowMs: number,
): ListedOffer {
  const status = statusAt({ fromMs: group.valid_from_ms, toMs: group.valid_to_ms }, nowMs)
  return {
    id: group.lead_id,
    groupId: group.store_count > 1 ? group.group_id : null,
    title: group.title,
    description: group.description,
    storeIds,
    validFrom: iso(group.valid_from_ms),
    validTo: iso(group.valid_to_ms),
    merchantColor: group.merchant_color,
    tags: group.tags === null ? [] : (JSON.parse(group.tags) as string[]),
    ...definedFields({ imageUrl: group.image_url, quantity: group.quantity }),
    productCount: group.product_count,
    isActive: status === 'ACTIVE',
    status,
    discountPercent: group.discount_percent,
    scope: scopeOf(group.store_count),
    storeCount: group.store_count,
    clickCount: counts.clicks,
    favoritedCount: counts.favorites,
    createdAt: iso(group.created_ms),
  }
}
