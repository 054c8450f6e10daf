import { layoutOf, makeShop, type Shop } from './initial-shop.ts'

/** The shops that worlds begin with, each made when the first world needs it. */
export interface Shops {
  of(kind: ShopKind): Promise<Shop>
  remove(): Promise<void>
}

export interface ShopKind {
  /** One that is paid through a provider; else a sandbox. */
  isLive: boolean
  /** How many are enrolled: 2, or 3. */
  agents: number
}

/** Shops in new folders below `parent`. */
export function shopsIn(parent: string): Shops {
  const made = new Map<string, Promise<Shop>>()
  return {
    of({ isLive, agents }) {
      const kind = `${isLive ? 'live' : 'sandbox'}, ${agents} agents`
      const known = made.get(kind) ?? makeShop(parent, { isLive, layout: layoutOf(agents) })
      made.set(kind, known)
      return known
    },
    async remove() {
      for (const shop of made.values()) (await shop).remove()
    },
  }
}
