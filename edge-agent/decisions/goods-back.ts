import { lineIdOf, tagsOf, type TillReturn, type TillSale } from '../../policy/till-sale.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'
import type { Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { mayComeBack } from './till-doubts.ts'

/** Expiry of a denial, s: a receipt is valid for a day. */
const DENIED_SECONDS = 25 * 3_600

/** Quantity of each line of a sale that has not come back, by line id. A weighed line is in kg. */
export type LeftOfSale = Readonly<Record<string, number>>

/** What a sale sells. */
export function leftOfSale({ lines }: Pick<TillSale, 'lines'>): LeftOfSale {
  return Object.fromEntries(
    lines.flatMap((line, i) => (line.quantity > 0 ? [[lineIdOf(line, i), line.quantity] as const] : [])),
  )
}

/** A tag of the sale, as its answer names it. */
interface TagOfLine {
  readonly lineId: string
  readonly tag: string
}

/**
 * What is left after a return: the named tags take one piece each, and a line without tags its quantity, by default all
 * of it. `namesOf`: all names of a tag, because a return may name a piece by two kinds of tag.
 */
export function leftAfter(
  left: LeftOfSale,
  tags: readonly TagOfLine[],
  { lines, ...named }: TillReturn,
  namesOf: (tag: ReturnType<typeof tagsOf>[number]) => readonly string[],
): LeftOfSale {
  const own = tagsOf(named)
  if (!lines && own.length === 0) return {}
  const after: Record<string, number> = { ...left }
  const take = (lineId: string, quantity: number) => void (after[lineId] = (after[lineId] ?? 0) - quantity)
  const lineOf = new Map(tags.map(({ lineId, tag }) => [tag, lineId]))
  const seen = new Set<string>()
  for (const tag of [...own, ...(lines ?? []).flatMap(tagsOf)]) {
    const names = namesOf(tag)
    const lineId = lineOf.get(tag.id)
    if (lineId !== undefined && !names.some((each) => seen.has(each))) take(lineId, 1)
    for (const each of names) seen.add(each)
  }
  for (const { lineId, quantity, ...ofLine } of lines ?? [])
    if (tagsOf(ofLine).length === 0) take(lineId, quantity ?? after[lineId] ?? 0)
  return Object.fromEntries(Object.entries(after).filter(([, quantity]) => quantity > 0))
}

/** True if all goods of a sale came back. */
export function isAllBack(left: LeftOfSale): boolean {
  return Object.keys(left).length === 0
}

/** A tag that came back, and its status now. */
export interface MovedTag {
  readonly tag: string
  readonly itemStatus: ItemStatus
}

interface GoodsBackParts {
  ledger: Ledger
  items: Replica
}

/** What happens at this agent to the goods and the receipt of a sale that is void, or that came back. */
export class GoodsBack {
  readonly #parts: GoodsBackParts

  constructor(parts: GoodsBackParts) {
    this.#parts = parts
  }

  /** Ends the receipt of a sale, which has the same identity wherever it was signed, and its codes. */
  endReceipt(saleKey: string, status: ItemStatus, nowMs: number, seq: number): void {
    const { ledger } = this.#parts
    ledger.claims.deny(saleKey, Math.floor(nowMs / 1_000) + DENIED_SECONDS)
    ledger.till.saveTag(`R${saleKey}`, status, nowMs, seq)
  }

  /** The tags of a sale, without those that came back and were perhaps sold again since. */
  tagsOfSale(saleKey: string): string[][] {
    const { ledger, items } = this.#parts
    const names = JSON.parse(ledger.till.sale(saleKey)?.tags ?? '[]') as string[][]
    const pieces = names.filter(([name]) => name !== undefined && ledger.till.tag(name) === undefined)
    // Other agents announce the tags of their sales.
    const seen = new Set<string>()
    for (const name of ledger.till.paidBy(saleKey)) {
      if (seen.has(name)) continue
      const piece = names.find((each) => each.includes(name)) ?? items.keysOfKey(name)
      for (const each of piece) seen.add(each)
      pieces.push(piece)
    }
    return pieces
  }

  /**
   * Gives the tag of goods that came back a status at which gates alarm, if it still counts as sold. `isNamed`: the till
   * named the tag, so it was perhaps sold at an agent whose notice is on its way.
   */
  moveBack(keys: readonly string[], status: ItemStatus, nowMs: number, seq: number, isNamed = false): MovedTag[] {
    const { items, ledger } = this.#parts
    const [first] = keys
    if (first === undefined) return []
    const item = items.findByKey(first)
    // A return of a tag that is neither an item nor sold here says nothing to a gate.
    const isUnknown = item === undefined && ledger.till.tag(first) === undefined
    const isBack = !isUnknown && (mayComeBack(item) || (isNamed && item?.status === 'sellable'))
    if (isBack) for (const key of keys) ledger.till.saveTag(key, status, nowMs, seq)
    return [{ tag: first.slice(1), itemStatus: items.findByKey(first)?.status ?? status }]
  }

  /** Counts goods of a sale that came back. When the last one has, the receipt and its codes end. */
  countBack(saleKey: string, request: TillReturn, status: ItemStatus, nowMs: number, seq: number): void {
    const { ledger, items } = this.#parts
    const sale = ledger.till.sale(saleKey)
    if (!sale || sale.content === '') {
      if (!namesGoods(request)) this.endReceipt(saleKey, status, nowMs, seq)
      return
    }
    const { items: tags } = JSON.parse(sale.answer) as { items: TagOfLine[] }
    const left = leftAfter(JSON.parse(sale.remaining) as LeftOfSale, tags, request, ({ kind, id }) =>
      items.keysOf(kind, id),
    )
    ledger.till.saveSale({ ...sale, remaining: JSON.stringify(left) })
    if (isAllBack(left)) this.endReceipt(saleKey, status, nowMs, seq)
  }
}

/** True if a return names goods of its sale, and not the sale as a whole. */
function namesGoods(request: TillReturn): boolean {
  return request.lines !== undefined || namesTags(request)
}

/** True if a return names tags. */
export function namesTags({ lines = [], ...named }: TillReturn): boolean {
  return [named, ...lines].some((list) => tagsOf(list).length > 0)
}
