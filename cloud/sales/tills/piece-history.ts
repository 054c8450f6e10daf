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
 * one, so that goods on the shelf alarm. `voided`: sales of the piece that became void.
 */
export function historyOf(
  sales: readonly SaleOfPiece[],
  returns: readonly ReturnOfPiece[],
  { others, voided = [] }: { others?: MoveByOthers | undefined; voided?: readonly SaleOfPiece[] } = {},
): PieceHistory {
  const keys = new Set(sales.map(({ key }) => key))
  // A return of a sale that is not here says nothing about this piece, unless it names the tag.
  const backs = returns.filter((back) => back.saleKey === undefined || back.namesTag || keys.has(back.saleKey))
  const piece = new Piece(namedReturns(backs, keys), inTime<Ending>([...(others ? [others] : []), ...backs]))
  const isVoid = new Set(voided)
  for (const sale of inTime([...sales, ...voided])) piece.sell(sale, isVoid.has(sale))
  return piece.end()
}

/** The first return that names each of these sales, by the key of the sale. */
function namedReturns(returns: readonly ReturnOfPiece[], keys: ReadonlySet<string>): Map<string, ReturnOfPiece> {
  const named = new Map<string, ReturnOfPiece>()
  for (const back of returns)
    if (back.saleKey !== undefined && keys.has(back.saleKey) && !named.has(back.saleKey)) named.set(back.saleKey, back)
  return named
}

type Ending = ReturnOfPiece | MoveByOthers

/** A piece while its history is followed. */
class Piece {
  #owner: string | undefined
  #isBack = false
  /** True if nothing was sold since the last return, or since a sale that became void. */
  #isReturned = false
  readonly #returns: Map<string, string | undefined>
  /** The return of each sale that a till named. */
  readonly #named: ReadonlyMap<string, ReturnOfPiece>
  /** What has not ended anything yet, in time. */
  #endings: readonly Ending[]
  readonly #sold = new Set<string>()
  /** What ended because the next seller knew of a return that is not here yet. */
  readonly #missing: { key: string | undefined; next: SaleOfPiece }[] = []
  /** Sales that own the piece no more, or never did, without a return: one may follow. */
  readonly #ended: string[] = []

  constructor(named: ReadonlyMap<string, ReturnOfPiece>, endings: readonly Ending[]) {
    this.#named = named
    this.#endings = endings
    this.#returns = new Map([...named].map(([saleKey, { key }]) => [saleKey, key]))
  }

  /** The next sale. One that became void sold nothing, but its seller had the piece. */
  sell(sale: SaleOfPiece, isVoid: boolean): void {
    for (const ending of earlierThan(
      sale,
      this.#endings.filter((each) => this.#mayEnd(each)),
    ))
      this.#apply(ending)
    if (sale.isAgain && (this.#owner !== undefined || !this.#isReturned)) this.#knowReturnBefore(sale)
    if (!isVoid) this.#sold.add(sale.key)
    if (this.#owner !== undefined) {
      if (!isVoid) this.#ended.push(sale.key)
      return
    }
    if (!isVoid) this.#owner = sale.key
    this.#isBack = false
    this.#isReturned = isVoid
  }

  /** What happened after all sales. */
  end(): PieceHistory {
    for (const ending of this.#endings) this.#apply(ending)
    return { owner: this.#owner, isBack: this.#isBack, returns: this.#returns }
  }

  /** A return that names a sale is later than the sale, whatever the clocks tell. */
  #mayEnd(ending: Ending): boolean {
    const saleKey = 'key' in ending ? ending.saleKey : undefined
    return saleKey === undefined || !this.#named.has(saleKey) || this.#sold.has(saleKey)
  }

  /** Ends what was before a sale whose seller knew that the piece had come back. */
  #knowReturnBefore(sale: SaleOfPiece): void {
    const owner = this.#owner === OTHERS ? undefined : this.#owner
    const named = owner === undefined ? undefined : this.#named.get(owner)
    if (named && this.#endings.includes(named) && !(named.namesTag && isSurelyBefore(sale, named)))
      return this.#apply(named)
    this.#missing.push({ key: owner, next: sale })
    if (owner !== undefined && !named) this.#returns.set(owner, undefined)
    this.#owner = undefined
  }

  #apply(ending: Ending): void {
    this.#endings = this.#endings.filter((each) => each !== ending)
    if ('key' in ending) this.#takeBack(ending)
    else this.#move(ending)
  }

  #takeBack(back: ReturnOfPiece): void {
    const { saleKey } = back
    const isOfOwner = saleKey !== undefined && saleKey === this.#owner
    // It is about a sale that owns the piece no more, or never did.
    if (saleKey !== undefined && !isOfOwner && !back.namesTag) return
    const i = isOfOwner ? -1 : this.#missing.findIndex(({ next }) => isBefore(back, next))
    const [found] = i < 0 ? [] : this.#missing.splice(i, 1)
    const ended = found ? found.key : (this.#owner ?? this.#ended.pop())
    if (ended !== undefined && ended !== OTHERS && !this.#named.has(ended))
      this.#returns.set(ended, saleKey === undefined ? back.key : undefined)
    if (found) return
    this.#isBack ||= this.#owner !== undefined
    this.#owner = undefined
    this.#isReturned = true
  }

  #move({ owner }: MoveByOthers): void {
    const former = this.#owner
    if (former !== undefined && former !== OTHERS && former !== owner && !this.#named.has(former)) {
      this.#returns.set(former, undefined)
      this.#ended.push(former)
    }
    this.#owner = owner
    this.#isBack = false
  }
}

/**
 * The endings that are surely before a sale: by the clocks, or because another ending is that is surely later.
 */
function earlierThan(sale: SaleOfPiece, endings: readonly Ending[]): Ending[] {
  const sure = endings.filter((ending) => isSurelyBefore(ending, sale))
  return endings.filter((ending) => sure.some((each) => each === ending || isSurelyBefore(ending, each)))
}

/** True if the clocks leave no doubt. One agent has one clock, and what others do is known by the cloud's. */
function isSurelyBefore(first: Ending | SaleOfPiece, than: Ending | SaleOfPiece): boolean {
  const agentOf = (each: Ending | SaleOfPiece) => ('agentId' in each ? each.agentId : undefined)
  const isOfOthers = !('key' in first)
  const marginMs = isOfOthers || agentOf(first) === agentOf(than) ? 0 : CLOCKS_DIFFER_MS
  return first.atMs < than.atMs - marginMs
}

function inTime<T extends { atMs: number }>(list: readonly T[]): T[] {
  return [...list].sort((a, b) => a.atMs - b.atMs)
}

/** True if a return may be the one that the seller of `next` knew, although it is not earlier by the clocks. */
function isBefore({ atMs, agentId }: ReturnOfPiece, next: SaleOfPiece): boolean {
  return atMs <= next.atMs + (agentId === next.agentId ? 0 : CLOCKS_DIFFER_MS)
}
