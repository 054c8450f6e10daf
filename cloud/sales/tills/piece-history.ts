/** A sale that names the tag of a piece. */
export interface SaleOfPiece {
  readonly key: string
  /** When an agent or the cloud stored it, ms since 1970. */
  readonly atMs: number
  /** Agent that stored it; undefined: the cloud. */
  readonly agentId?: string | undefined
  /** True if its recorder knew a return of the piece that may not be here yet. */
  readonly isAgain: boolean
}

/** A return of a piece. */
export interface ReturnOfPiece {
  readonly key: string
  readonly atMs: number
  readonly agentId?: string | undefined
  /** Key of the sale, if the till named it. */
  readonly saleKey?: string | undefined
  /** True if the till named the tag beside the sale: this piece came back then, whichever sale owned it. */
  readonly namesTag?: boolean | undefined
}

/** The newest move of a piece by others than tills: staff, a purchase in untag, an import. It ends what was before. */
export interface MoveByOthers {
  readonly atMs: number
  /** Key of the sale that the piece belongs to since then, or `OTHERS`; undefined: it is not sold. */
  readonly owner: string | undefined
}

/** Statuses of goods that a till may sell: those for sale, and those whose sale ended. */
export const MAY_BE_SOLD: ReadonlySet<string> = new Set(['sellable', 'returned', 'cancelled'])

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
  const unnamed = allReturns.filter(({ saleKey, namesTag }) => saleKey === undefined || namesTag)
  const endings: Ending[] = inTime([...unnamed, ...(others ? [others] : [])])
  const piece = new Piece(returns, namedAt)
  const isNamed = new Set(returns.keys())
  for (const sale of inTime(sales.filter(({ key, isAgain }) => isAgain || !isNamed.has(key)))) {
    for (const ending of earlierThan(sale, endings)) piece.end(ending)
    // Its own return is named, but its seller also knew of one before.
    if (isNamed.has(sale.key)) piece.knowReturnBefore(sale)
    else piece.sell(sale)
  }
  for (const ending of endings) piece.end(ending)
  return { owner: piece.owner, isBack: piece.isBack, returns }
}

type Ending = ReturnOfPiece | MoveByOthers

/** A piece while its history is followed. */
class Piece {
  owner: string | undefined
  isBack: boolean
  readonly #returns: Map<string, string | undefined>
  /** Sales whose return the till named, with its time. */
  readonly #namedAt: ReadonlyMap<string, number>
  /** What ended because the next seller knew of a return that is not here yet. */
  readonly #missing: { key: string | undefined; next: SaleOfPiece }[] = []
  /** Sales that others ended: a return about one may follow. */
  readonly #ended: string[] = []
  /** True if nothing was sold since the last return. */
  #isReturned = false

  constructor(returns: Map<string, string | undefined>, namedAt: ReadonlyMap<string, number>) {
    this.#returns = returns
    this.#namedAt = namedAt
    this.isBack = namedAt.size > 0
  }

  /** Ends what was before a sale whose seller knew that the piece had come back. */
  knowReturnBefore(sale: SaleOfPiece): void {
    const { owner } = this
    if (!sale.isAgain || (owner === undefined && this.#isReturned)) return
    const key = owner === OTHERS ? undefined : owner
    this.#missing.push({ key, next: sale })
    if (key !== undefined) this.#returns.set(key, undefined)
    this.owner = undefined
  }

  sell(sale: SaleOfPiece): void {
    this.knowReturnBefore(sale)
    if (this.owner === undefined) this.isBack = false
    this.owner ??= sale.key
    this.#isReturned = false
  }

  end(ending: Ending): void {
    if ('key' in ending) this.#takeBack(ending)
    else this.#move(ending)
  }

  #takeBack(back: ReturnOfPiece): void {
    const i = this.#missing.findIndex(({ next }) => isBefore(back, next))
    const [found] = i < 0 ? [] : this.#missing.splice(i, 1)
    if (back.saleKey !== undefined) {
      if (found) return
      if (this.owner !== undefined && this.owner !== OTHERS) this.#returns.set(this.owner, undefined)
    } else {
      const ended = found ? found.key : this.owner === undefined ? this.#ended.pop() : this.owner
      if (ended !== undefined && ended !== OTHERS) this.#returns.set(ended, back.key)
      if (found) return
    }
    this.isBack ||= this.owner !== undefined
    this.owner = undefined
    this.#isReturned = true
  }

  #move({ atMs, owner }: MoveByOthers): void {
    const former = this.owner
    if (former !== undefined && former !== OTHERS && former !== owner) {
      this.#returns.set(former, undefined)
      this.#ended.push(former)
    }
    const isReturned = owner !== undefined && (this.#namedAt.get(owner) ?? -1) >= atMs
    this.owner = isReturned ? undefined : owner
    this.isBack = isReturned
  }
}

/**
 * Takes the endings out of the list that are surely before a sale: by the clocks, or because another ending is that is
 * surely later.
 */
function earlierThan(sale: SaleOfPiece, endings: Ending[]): Ending[] {
  const sure = endings.filter((ending) => isSurelyBefore(ending, sale))
  const earlier = endings.filter((ending) => sure.some((each) => each === ending || isSurelyBefore(ending, each)))
  endings.splice(0, endings.length, ...endings.filter((ending) => !earlier.includes(ending)))
  return earlier
}

/** True if the clocks leave no doubt. One agent has one clock, and what others do is known by the cloud's. */
function isSurelyBefore(ending: Ending, than: Ending | SaleOfPiece): boolean {
  const agentOf = (each: Ending | SaleOfPiece) => ('agentId' in each ? each.agentId : undefined)
  const isOfOthers = !('key' in ending)
  const marginMs = isOfOthers || agentOf(ending) === agentOf(than) ? 0 : CLOCKS_DIFFER_MS
  return ending.atMs < than.atMs - marginMs
}

function inTime<T extends { atMs: number }>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => a.atMs - b.atMs)
}

/** True if a return may be the one that the seller of `next` knew, although it is not earlier by the clocks. */
function isBefore({ atMs, agentId }: ReturnOfPiece, next: SaleOfPiece): boolean {
  return atMs <= next.atMs + (agentId === next.agentId ? 0 : CLOCKS_DIFFER_MS)
}
