/** How far an offer reaches, by the number of its stores (specification). Each row holds up to `stores`. */
const SCOPES = [
  { scope: 'LOCAL', stores: 1 },
  { scope: 'MULTI_STORE', stores: 10 },
  { scope: 'CITY_WIDE', stores: 30 },
  { scope: 'REGIONAL', stores: 100 },
] as const

export const OFFER_SCOPES = ['LOCAL', 'MULTI_STORE', 'CITY_WIDE', 'REGIONAL', 'NATIONAL'] as const
export type OfferScope = (typeof OFFER_SCOPES)[number]

/** The scope of an offer of so many stores. */
export function scopeOf(storeCount: number): OfferScope {
  return SCOPES.find(({ stores }) => storeCount <= stores)?.scope ?? 'NATIONAL'
}
