import type { Chance } from '../chance.ts'

export interface Good {
  readonly epc: string
  readonly ean: string
}

/** The tagged goods that lie in the shop. */
export interface Goods {
  /** Takes so many from the shelves; fewer when there are no more. */
  take(count: number): Good[]
  putBack(goods: readonly Good[]): void
}

/** `count` goods of these products, in no order that anybody could know. */
export function newGoods(products: readonly { readonly ean: string }[], count: number): Good[] {
  return Array.from({ length: count }, (_, n) => ({
    epc: `E2800000${(n + 1).toString(16).padStart(16, '0').toUpperCase()}`,
    ean: products[n % products.length]?.ean ?? '',
  }))
}

/** Shelves with these goods on them. */
export function shelves(goods: readonly Good[], chance: Chance): Goods {
  const there = [...goods]
  return {
    take(count) {
      const taken: Good[] = []
      while (taken.length < count && there.length > 0) {
        const n = chance.between(0, there.length - 1)
        const good = there[n]
        const last = there.pop()
        if (good && last && n < there.length) there[n] = last
        if (good) taken.push(good)
      }
      return taken
    },
    putBack: (back) => void there.push(...back),
  }
}
