/** A sale that names the tag of a piece. */
export interface SaleOfPiece {
  readonly key: string
  /** When an agent or the cloud stored it, ms since 1970. */
  readonly atMs: number
  /** Agent that stored it; undefined: the cloud. */
  readonly agentId?: string | undefined
  /**
   * What its recorder knew of the piece. `return`: that it came back before. `all`: all reports that the cloud has of
   * earlier times. `nothing`: perhaps less.
   */
  readonly knew: 'nothing' | 'all' | 'return'
}

/** A return of a piece. */
export interface ReturnOfPiece {
  readonly key: string
  readonly atMs: number
  readonly agentId?: string | undefined
  /** Key of the sale, if the till named it. */
  readonly saleKey?: string | undefined
}

/** The newest move of a piece by others than tills: staff, a purchase in untag, an import. It ends what was before. */
export interface MoveByOthers {
  readonly atMs: number
  /** Key of the sale that the piece belongs to since then, or `OTHERS`; undefined: it is not sold. */
  readonly owner: string | undefined
}

/** Owner of a piece that others than tills made paid. */
export const OTHERS = 'others'

/** What happened to a piece. */
export interface PieceHistory {
  /** Key of the sale that the piece belongs to, or `OTHERS`; undefined: it is not sold. */
  readonly owner: string | undefined
  /** True if a return was the last that happened, and ended that it was sold. */
  readonly isBack: boolean
  /** The sales after which it came back, each with its return; undefined: that return is not here yet. */
  readonly returns: ReadonlyMap<string, string | undefined>
}

/** Maximum difference of the clocks in a store, ms (ADR trusted-time). */
export const CLOCKS_DIFFER_MS = 60_000

/**
 * Finds what happened to a piece that tills sold and took back, in whatever order their reports arrived. A piece belongs
 * to its first sale until it comes back. Where the clocks of two agents leave the order open, the return is the later
 * one, so that goods on the shelf alarm.
 */
export function historyOf(
  sales: readonly SaleOfPiece[],
  allReturns: readonly ReturnOfPiece[],
  others?: MoveByOthers,
): PieceHistory {
  const returns = new Map<string, string | undefined>()
  const keys = new Set(sales.map(({ key }) => key))
  const namedAt = new Map<string, number>()
  for (const { saleKey, key, atMs } of allReturns) {
    if (saleKey === undefined || !keys.has(saleKey) || returns.has(saleKey)) continue
    returns.set(saleKey, key)
    namedAt.set(saleKey, atMs)
  }
  const unnamed = allReturns.filter(({ saleKey }) => saleKey === undefined)
  const endings: (ReturnOfPiece | MoveByOthers)[] = inTime([...unnamed, ...(others ? [others] : [])])
  /** Sales that ended because the next seller knew of a return that is not here yet. */
  const missing: { key: string; next: SaleOfPiece }[] = []
  let owner: string | undefined
  let isBack = namedAt.size > 0
  const end = (ending: ReturnOfPiece | MoveByOthers) => {
    const back = 'key' in ending ? ending : undefined
    const i = back ? missing.findIndex(({ next }) => isBefore(back, next)) : -1
    const [found] = i < 0 ? [] : missing.splice(i, 1)
    if (found) returns.set(found.key, back?.key)
    else if (owner !== undefined && owner !== OTHERS && !('owner' in ending && ending.owner === owner))
      returns.set(owner, back?.key)
    if (found) return
    isBack = back !== undefined && (owner !== undefined || isBack)
    owner = undefined
    if ('owner' in ending && (namedAt.get(ending.owner ?? '') ?? -1) < ending.atMs) owner = ending.owner
  }
  for (const sale of inTime(sales.filter(({ key }) => !returns.has(key)))) {
    const last = endings.findLastIndex((ending) => ending.atMs < sale.atMs - marginOf(ending, sale))
    for (const ending of endings.splice(0, last + 1)) end(ending)
    if (owner !== undefined && sale.knew === 'return') {
      if (owner !== OTHERS) {
        missing.push({ key: owner, next: sale })
        returns.set(owner, undefined)
      }
      owner = undefined
    }
    owner ??= sale.key
    if (owner === sale.key) isBack = false
  }
  for (const ending of endings) end(ending)
  return { owner, isBack, returns }
}

/** Time by which an ending must be earlier than a sale to be before it, ms. */
function marginOf(ending: ReturnOfPiece | MoveByOthers, sale: SaleOfPiece): number {
  const isSure = !('key' in ending) || sale.knew !== 'nothing' || ending.agentId === sale.agentId
  return isSure ? 0 : CLOCKS_DIFFER_MS
}

function inTime<T extends { atMs: number }>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => a.atMs - b.atMs)
}

/** True if a return may be the one that the seller of `next` knew, although it is not earlier by the clocks. */
function isBefore({ atMs, agentId }: ReturnOfPiece, next: SaleOfPiece): boolean {
  return atMs <= next.atMs + (agentId === next.agentId ? 0 : CLOCKS_DIFFER_MS)
}
