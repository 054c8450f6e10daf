import {
  isSoldLine,
  lineIdOf,
  namesTags,
  tagsOf,
  type SaleTag,
  type KeptReturn,
  type KeptSale,
} from '../../policy/till-sale.ts'
import { piecesLeft } from '../../policy/decimals.ts'
import type { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import { identifiersOf, type Replica } from '../items/replica.ts'
import { MAY_BE_SOLD } from '../items/till-tags.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { UNSEEN_STEP } from '../ledger/tag-rank.ts'
import type { StoredSale, TillReports } from '../ledger/till-reports.ts'
import { mayComeBack } from './till-doubts.ts'

/** Expiry of a denial, s: a receipt is valid for a day. */
const DENIED_SECONDS = 25 * 3_600
/** Sales whose tags one report compares, so that its transaction stays short. Decisions compare the others. */
export const ENDED_AT_ONCE = 20

/** Quantity of each line of a sale that has not come back, by line id. A weighed line is in kg. */
export type LeftOfSale = Readonly<Record<string, number>>

/** What a sale sells, less what it takes back itself. `back`: quantity of each line that it takes back. */
export function leftOfSale({ lines }: Pick<KeptSale, 'lines'>, back: readonly number[]): LeftOfSale {
  return Object.fromEntries(
    lines.flatMap((line, i) =>
      isSoldLine(line) ? [[lineIdOf(line, i), piecesLeft(line.quantity, back[i])] as const] : [],
    ),
  )
}

/** A piece that a sale made paid, with all names of its tag. */
export interface SoldPiece {
  readonly lineId: string
  readonly names: string[]
}

/** A piece that came back with the sale of other goods, and its status before. */
export interface BackPiece {
  readonly names: readonly string[]
  readonly was: ItemStatus | undefined
}

function piecesOf(sale: StoredSale | undefined): SoldPiece[] {
  return JSON.parse(sale?.tags ?? '[]') as SoldPiece[]
}

/** Why a return contradicts its sale, as the cloud answers it. */
interface NotBack {
  readonly code: 'purchase_not_refundable' | 'already_refunded' | 'invalid'
  readonly message: string
  readonly path?: string
}

/** A tag of the sale, as its answer names it. */
interface TagOfLine {
  readonly lineId: string
  readonly tag: string
}

/**
 * What is left after a return of goods whose tags do not tell it: a line loses its quantity, by default all of it.
 * `isTold`: true for tags of which the ledger knows whether they came back.
 */
function leftAfter(
  left: LeftOfSale,
  tags: readonly TagOfLine[],
  { lines, ...named }: KeptReturn,
  isTold: (tag: SaleTag) => boolean,
): LeftOfSale {
  const own = tagsOf(named)
  if (!lines && own.length === 0) return {}
  const after: Record<string, number> = { ...left }
  const take = (lineId: string, quantity: number) => void (after[lineId] = piecesLeft(after[lineId] ?? 0, quantity))
  const lineOf = new Map(tags.map(({ lineId, tag }) => [tag, lineId]))
  for (const tag of [...own, ...(lines ?? []).flatMap(tagsOf)]) {
    const lineId = lineOf.get(tag.id)
    if (lineId !== undefined && !isTold(tag)) take(lineId, 1)
  }
  for (const { lineId, quantity, ...ofLine } of lines ?? [])
    if (tagsOf(ofLine).length === 0) take(lineId, quantity ?? after[lineId] ?? 0)
  return Object.fromEntries(Object.entries(after).filter(([, quantity]) => quantity > 0))
}

/**
 * True if all goods of a sale came back, here or at another agent, with and without tags. Then the receipt opens no
 * barrier any more, as in the cloud. Only an agent that recorded the sale knows its goods without tags; it tells others.
 */
export function hasComeBack(till: TillReports, saleKey: string): boolean {
  const sale = till.sale(saleKey)
  if (!sale || sale.content === '') return false
  const piecesOfLine = new Map<string, SoldPiece[]>()
  for (const piece of piecesOf(sale)) {
    const known = piecesOfLine.get(piece.lineId)
    if (known) known.push(piece)
    else piecesOfLine.set(piece.lineId, [piece])
  }
  const isBack = ({ names }: SoldPiece) =>
    names.some((name) => {
      const tag = till.tag(name)
      return tag !== undefined && (tag.status !== 'paid' || tag.sale !== saleKey)
    })
  return Object.entries(JSON.parse(sale.remaining) as LeftOfSale).every(([lineId, quantity]) => {
    const pieces = piecesOfLine.get(lineId) ?? []
    let mayBeOut = pieces.length - Math.ceil(quantity)
    // Ends at the first piece too many that is out: a sale has up to 2,000.
    return mayBeOut >= 0 && pieces.every((piece) => isBack(piece) || --mayBeOut >= 0)
  })
}

/** A tag that came back, and its status now. */
interface MovedTag {
  readonly tag: string
  readonly itemStatus: ItemStatus
}

/** What a report makes of goods, when, and in which row of the journal. */
interface MovedTo {
  readonly status: ItemStatus
  readonly nowMs: number
  readonly seq: number
}

interface GoodsBackParts {
  ledger: Ledger
  items: Replica
  policy(): ProtectionPolicy | undefined
}

/** What happens at this agent to the goods and the receipt of a sale that is void, or that came back. */
export class GoodsBack {
  readonly #parts: GoodsBackParts

  constructor(parts: GoodsBackParts) {
    this.#parts = parts
  }

  /** Ends the receipt of a sale, which has the same identity wherever it was signed, and its codes. */
  endReceipt(saleKey: string, { status, nowMs, seq }: MovedTo): void {
    const { ledger } = this.#parts
    ledger.claims.deny(saleKey, Math.floor(nowMs / 1_000) + DENIED_SECONDS)
    ledger.till.saveTag(`R${saleKey}`, status, nowMs, seq)
  }

  /** The tags of a sale, without those that came back and were perhaps sold again since. */
  tagsOfSale(saleKey: string): string[][] {
    const { ledger, items } = this.#parts
    const names = piecesOf(ledger.till.sale(saleKey)).map((piece) => piece.names)
    const pieces = names.filter(([name]) => name !== undefined && ledger.till.tag(name) === undefined)
    const pieceOf = new Map(names.flatMap((piece) => piece.map((name) => [name, piece] as const)))
    // Other agents announce the tags of their sales.
    const seen = new Set<string>()
    for (const name of ledger.till.paidBy(saleKey)) {
      if (seen.has(name)) continue
      const piece = pieceOf.get(name) ?? items.keysOfKey(name)
      for (const each of piece) seen.add(each)
      pieces.push(piece)
    }
    return pieces
  }

  /**
   * Gives the tags of goods that came back a status at which gates alarm, if they still count as sold. Ends the receipts
   * of sales whose last goods these are. `isNamed`: the till named the tags, so they were perhaps sold at an agent whose
   * notice is on its way.
   */
  moveBack(pieces: readonly (readonly string[])[], to: MovedTo, isNamed = false): MovedTag[] {
    const sales = new Set<string>()
    const moved = pieces.flatMap((keys) => this.#moveOne(keys, to, isNamed, sales))
    for (const sale of [...sales].slice(0, ENDED_AT_ONCE)) this.endIfAllBack(sale, to)
    return moved
  }

  #moveOne(keys: readonly string[], { status, nowMs, seq }: MovedTo, isNamed: boolean, sales: Set<string>): MovedTag[] {
    const {
      items,
      ledger: { till, claims },
    } = this.#parts
    const [first] = keys
    if (first === undefined) return []
    const item = items.findByKey(first)
    // A return of a tag that is neither an item nor sold here says nothing to a gate.
    const isUnknown = item === undefined && till.tag(first) === undefined
    // The next sale of goods that count as unsold may be on its way from another agent.
    const isUnseen = item !== undefined && MAY_BE_SOLD.has(item.status)
    const isBack = !isUnknown && (mayComeBack(item) || (isNamed && isUnseen))
    // The next sale has its own right to a release.
    if (isBack && !claims.hasNoTags) claims.forgetTags(identifiersOf(keys))
    if (isBack)
      for (const key of keys) {
        const sale = till.tag(key)?.sale ?? null
        if (sale !== null) sales.add(sale)
        if (sale !== null) this.#endPieces(sale, nowMs)
        till.saveTag(key, status, nowMs, seq, sale, isUnseen ? UNSEEN_STEP : 1)
      }
    return [{ tag: first.slice(1), itemStatus: items.findByKey(first)?.status ?? status }]
  }

  /** The tags of some lines of a sale, and those of which it is not known to which line they belong. */
  tagsOfLines(saleKey: string, lineIds: ReadonlySet<string>): string[][] {
    const pieces = piecesOf(this.#parts.ledger.till.sale(saleKey))
    const others = new Set(pieces.flatMap(({ lineId, names }) => (lineIds.has(lineId) ? [] : names)))
    return this.tagsOfSale(saleKey).filter((names) => !names.some((name) => others.has(name)))
  }

  /** Takes back goods that come back with the sale of other goods. */
  exchange(returned: readonly BackPiece[], nowMs: number, seq: number): void {
    const pieces = returned.map(({ names }) => names)
    this.moveBack(pieces, { status: 'returned', nowMs, seq }, true)
  }

  /**
   * Undoes that goods came back with a sale that becomes void: they belong to their former sales again. What happened to
   * a tag since stays. A former sale that ended thereby stays ended: its tags belong to no sale, or its end would count.
   */
  undoExchange(
    { returned, seq }: Pick<StoredSale, 'returned' | 'seq'>,
    to: Pick<MovedTo, 'nowMs' | 'seq'>,
  ): MovedTag[] {
    const { till } = this.#parts.ledger
    return (JSON.parse(returned) as BackPiece[]).flatMap(({ names, was }) => {
      const own = names.filter((name) => till.tag(name)?.seq === seq)
      const [first] = own
      if (first === undefined || was === undefined) return []
      for (const name of own) {
        const sale = till.tag(name)?.sale ?? null
        const isOver = sale !== null && till.tag(`R${sale}`) !== undefined
        till.saveTag(name, was, to.nowMs, to.seq, isOver ? null : sale)
      }
      return [{ tag: first.slice(1), itemStatus: was }]
    })
  }

  /** Why goods of a return cannot come back to this sale; undefined if they can, or if this agent does not know it. */
  whyNotBack(sale: StoredSale | undefined, request: KeptReturn): NotBack | undefined {
    if (!sale || sale.content === '' || sale.state === 'open') return undefined
    if (sale.state === 'void') return { code: 'purchase_not_refundable', message: 'this sale is void' }
    const left = JSON.parse(sale.remaining) as LeftOfSale
    const isWhole = request.lines === undefined && !namesTags(request)
    if (isWhole && hasComeBack(this.#parts.ledger.till, sale.saleKey))
      return { code: 'already_refunded', message: 'all goods of this sale came back before' }
    for (const [i, { lineId, quantity, ...ofLine }] of (request.lines ?? []).entries()) {
      // The cloud also knows the lines by ids of its own.
      if (tagsOf(ofLine).length > 0 || lineId.startsWith('lin_')) continue
      const most = left[lineId] ?? 0
      if (most > 0 && (quantity ?? 0) <= most) continue
      const message =
        most > 0 ? `must be at most ${most}: no more is left` : 'has no goods left, or is no line of this sale'
      return { code: 'invalid', path: `lines[${i}].${most > 0 ? 'quantity' : 'lineId'}`, message }
    }
    return undefined
  }

  /** Counts goods of a sale that came back, after `moveBack`. */
  countBack(saleKey: string, request: KeptReturn, to: MovedTo): void {
    const { ledger, items } = this.#parts
    this.#endPieces(saleKey, to.nowMs)
    const sale = ledger.till.sale(saleKey)
    if (!sale || sale.content === '') {
      if (!namesGoods(request)) this.endReceipt(saleKey, to)
      return
    }
    const { items: tags } = JSON.parse(sale.answer) as { items: TagOfLine[] }
    const told = new Set(piecesOf(sale).flatMap(({ names }) => names))
    const isTold = ({ kind, id }: SaleTag) => items.keysOf(kind, id).some((name) => told.has(name))
    const left = leftAfter(JSON.parse(sale.remaining) as LeftOfSale, tags, request, isTold)
    ledger.till.saveSale({ ...sale, remaining: JSON.stringify(left) })
    this.endIfAllBack(saleKey, to)
  }

  /** No tag passes any more for pieces of a sale of which goods came back, because nobody knows which came back. */
  #endPieces(saleKey: string, nowMs: number): void {
    const { policy, ledger } = this.#parts
    if ((policy()?.tillSales.passByProduct ?? 0) > 0) ledger.till.pieces.end(saleKey, Math.floor(nowMs / 1_000))
  }

  /** Ends the receipt of a sale of which nothing is left. */
  endIfAllBack(saleKey: string, to: MovedTo): void {
    const { till } = this.#parts.ledger
    const isEnded = till.tag(`R${saleKey}`) !== undefined
    if (!isEnded && hasComeBack(till, saleKey)) this.endReceipt(saleKey, to)
  }
}

/** True if a return names goods of its sale, and not the sale as a whole. */
function namesGoods(request: KeptReturn): boolean {
  return request.lines !== undefined || namesTags(request)
}
