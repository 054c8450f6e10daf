import type { Chance } from '../virtual/chance.ts'

export interface Good {
  readonly epc: string
  readonly ean: string
  readonly category: string
  readonly brand: string
  /** EUR. */
  readonly price: number
}

/** Category that self-service devices may not release. */
export const LOCKED_CATEGORY = 'schmuck'
/** Brand that only staff may release. */
export const STAFF_BRAND = 'Luxus'
/** Price from which only staff may release, EUR. */
export const STAFF_FROM_PRICE = 100

/** True if the policy of the day requires staff for this product. */
export function needsStaff({ category, brand, price }: Good): boolean {
  return category === LOCKED_CATEGORY || brand === STAFF_BRAND || price >= STAFF_FROM_PRICE
}

/** Tagged goods on the shelves. */
export interface Goods {
  /** Takes up to `count` goods from the shelves. */
  take(count: number): Good[]
  putBack(goods: readonly Good[]): void
}

/** Creates `count` goods from these products. */
export function newGoods(products: readonly { readonly ean: string; readonly price: number }[], count: number): Good[] {
  return Array.from({ length: count }, (_, n) => ({
    epc: `E2800000${(n + 1).toString(16).padStart(16, '0').toUpperCase()}`,
    ean: products[n % products.length]?.ean ?? '',
    category: n % 20 === 3 ? LOCKED_CATEGORY : 'bekleidung',
    brand: n % 20 === 11 ? STAFF_BRAND : 'Nordhof',
    price: products[n % products.length]?.price ?? 0,
  }))
}

/** Puts these goods on the shelves. */
export function shelves(goods: readonly Good[], chance: Chance): Goods {
  const left = [...goods]
  return {
    take(count) {
      const picked: Good[] = []
      while (picked.length < count && left.length > 0) {
        const n = chance.between(0, left.length - 1)
        const good = left[n]
        const last = left.pop()
        if (good && last && n < left.length) left[n] = last
        if (good) picked.push(good)
      }
      return picked
    },
    putBack: (back) => void left.push(...back),
  }
}
