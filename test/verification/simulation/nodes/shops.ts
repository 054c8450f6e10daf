import { layoutOf, makeShop, type Shop } from './initial-shop.ts'

/** Initial shops of the runs. Each shop is created by the first run that needs it. */
export interface Shops {
  of(kind: ShopKind): Promise<Shop>
  remove(): Promise<void>
}

export interface ShopKind {
  /** True if shoppers pay through a provider; false for a sandbox. */
  isLive: boolean
  /** Number of enrolled agents: 2 or 3. */
  agents: number
  /** True if tills sell goods in the run. */
  hasTills?: boolean
}

/** Creates shops in new folders below `parent`. */
export function shopsIn(parent: string): Shops {
  const made = new Map<string, Promise<Shop>>()
  return {
    of({ isLive, agents, hasTills = false }) {
      const kind = `${isLive ? 'live' : 'sandbox'}, ${agents} agents${hasTills ? ', tills' : ''}`
      const known = made.get(kind) ?? makeShop(parent, { isLive, hasTills, layout: layoutOf(agents) })
      made.set(kind, known)
      return known
    },
    async remove() {
      for (const shop of made.values()) (await shop).remove()
    },
  }
}
