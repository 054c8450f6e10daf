/** Scope of an offer by its number of stores, from the specification. `stores` is the maximum number for a scope. */
const SCOPES = [
  { scope: 'LOCAL', stores: 1 },
  { scope: 'MULTI_STORE', stores: 10 },
  { scope: 'CITY_WIDE', stores: 30 },
  { scope: 'REGIONAL', stores: 100 },
] as const

export const OFFER_SCOPES = ['LOCAL', 'MULTI_STORE', 'CITY_WIDE', 'REGIONAL', 'NATIONAL'] as const
export type OfferScope = (typeof OFFER_SCOPES)[number]

/** The scope of an offer with this number of stores. */
export function scopeOf(storeCount: number): OfferScope {
  return SCOPES.find(({ stores }) => storeCount <= stores)?.scope ?? 'NATIONAL'
}
