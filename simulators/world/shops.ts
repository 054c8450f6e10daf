import { makeShop, type Shop } from './genesis.ts'

/** The shops that worlds begin with, each made when the first world needs it. */
export interface Shops {
  /** `isLive`: one that is paid through a provider; else a sandbox. */
  of(isLive: boolean): Promise<Shop>
  remove(): Promise<void>
}

/** Shops in new folders below `parent`. */
export function shopsIn(parent: string): Shops {
  const made = new Map<boolean, Promise<Shop>>()
  return {
    of(isLive) {
      const known = made.get(isLive) ?? makeShop(parent, { isLive })
      made.set(isLive, known)
      return known
    },
    async remove() {
      for (const shop of made.values()) (await shop).remove()
    },
  }
}
