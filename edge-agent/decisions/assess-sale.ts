import { REPORT_BYTES_LIMIT } from '../../policy/journal.ts'
import { cameBackAtOnce, cancelledTags, type ItemOfTag } from '../../policy/cancelled-lines.ts'
import {
  lineIdOf,
  SALE_AGE_MS,
  SALE_AHEAD_MS,
  saleCentOf,
  tagsOf,
  takesBack,
  type KeptReturn,
  type KeptSale,
} from '../../policy/till-sale.ts'
import type { Replica } from '../items/replica.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { MAY_BE_SOLD } from '../items/till-tags.ts'
import { leftOfSale, type BackPiece, type LeftOfSale, type SoldPiece } from './goods-back.ts'
import { mayComeBack, moreItems, recalledLines, soldBefore, whyDoubtful, whyHeld, type Warning } from './till-doubts.ts'
import type { ItemStatus } from '../../policy/vocabulary.ts'

/** What an agent answers a till (ADR till-sales). */

export interface SaleAnswer {
  saleId: string
  /** True once the cloud has the sale. */
  synced: boolean
  /** Receipt that this agent signed for the sale. */
  receiptToken?: string
  items: { lineId: string; tag: string; itemStatus?: ItemStatus }[]
  warnings: Warning[]
}

export interface VoidAnswer {
  saleId: string
  synced: boolean
  /** True if this agent does not know the sale as paid: the void applies to it as soon as it arrives. */
  waiting: boolean
  items: { tag: string; itemStatus: ItemStatus }[]
}

export interface ReturnAnswer {
  returnId: string
  synced: boolean
  /** True if this agent does not know the goods of the sale: they alarm as soon as it, or the cloud, knows them. */
  waiting: boolean
  items: { tag: string; itemStatus: ItemStatus }[]
}

/** Why a report of a till is refused. */
export class TillRefusal extends Error {
  override name = 'TillRefusal'
  readonly code:
    | 'sales_not_allowed'
    | 'right_missing'
    | 'sale_conflict'
    | 'too_many_open_sales'
    | 'too_many_waiting_returns'
    | 'sale_queue_full'
    | 'purchase_not_refundable'
    | 'already_refunded'
    | 'invalid'
  /** Field, for `invalid`. */
  readonly path: string | undefined
  constructor(code: TillRefusal['code'], message: string, path?: string) {
    super(message)
    this.code = code
    this.path = path
  }
}

/** Another report with this number is known. */
export function conflict(what: 'sale' | 'return'): TillRefusal {
  const message =
    what === 'sale'
      ? 'another sale with other lines has this number: send tillId and series that differ'
      : 'another return has this number: send a returnId of its own'
  return new TillRefusal('sale_conflict', message)
}

/** Throws if a report has too many bytes for its row: Unicode's normal form of a text may be longer than the text. */
export function assertFits(report: KeptSale | KeptReturn): void {
  if (Buffer.byteLength(JSON.stringify(report)) > REPORT_BYTES_LIMIT)
    throw new TillRefusal('invalid', `have more than ${REPORT_BYTES_LIMIT} bytes: send shorter texts`, 'lines')
}

/** Warning to a program without the right `returns`. */
const NO_RETURNS: Warning = {
  code: 'right_missing',
  message: 'this program may not take goods back, so the tag keeps its status: pair it with --may returns',
}

/** Pieces of a line that the sale itself did not take back. Weighed goods are one piece, as in the cloud. */
function piecesOfLine({ quantity }: KeptSale['lines'][number], back = 0): number {
  const left = quantity - back
  return Number.isInteger(quantity) ? Math.ceil(left) : Math.min(1, Math.ceil(left))
}

interface AssessParts {
  items: Pick<Replica, 'find' | 'keysOf'>
  ledger: Pick<Ledger, 'till'>
  recalledGoods(): readonly string[]
  layouts(): readonly string[]
}

/** Finds the item of a tag: one of its names stands for it. */
export function itemOfTag(items: Pick<Replica, 'find' | 'keysOf'>): ItemOfTag {
  return ({ kind, id, isValid }) => (isValid && items.find(kind, id) ? items.keysOf(kind, id).toSorted()[0] : undefined)
}

/**
 * Finds what is doubtful, the names of each piece that becomes `becomes`, or comes back, and what is `left` after the lines
 * that the sale itself cancels. `isElsewhere`: another agent announced the sale, so its pieces are paid already.
 */
export function assessSale(
  parts: AssessParts,
  sale: KeptSale,
  becomes: 'paid' | 'cancelled' | undefined,
  {
    stop,
    mayReturn,
    isElsewhere,
    nowMs,
  }: { stop: Warning | undefined; mayReturn: boolean; isElsewhere: boolean; nowMs: number },
): { answer: Omit<SaleAnswer, 'synced'>; pieces: SoldPiece[]; returned: BackPiece[]; left: LeftOfSale } {
  const { items } = parts
  const isSold = becomes === 'paid'
  const warnings: Warning[] = []
  const about = `sale ${sale.saleId}`
  const occurredMs = Date.parse(sale.occurredAt)
  if (occurredMs > nowMs + SALE_AHEAD_MS)
    warnings.push({ code: 'sale_in_future', message: `${about} is dated in the future: set the clock of the till` })
  if (nowMs - occurredMs > SALE_AGE_MS)
    warnings.push({ code: 'sale_too_old', message: `${about} is older than 24 hours: its goods count as gone` })
  if (sale.totalCent !== undefined && sale.totalCent !== saleCentOf(sale))
    warnings.push({ code: 'sale_total_differs', message: `the lines of ${about} do not add up to its total` })
  warnings.push(...recalledLines(sale, parts.recalledGoods(), parts.layouts()))
  if (stop) warnings.push(stop)
  const pieces: SoldPiece[] = []
  const pieceOf = new Map<string, SoldPiece>()
  const returned: BackPiece[] = []
  const itemOf = itemOfTag(items)
  const isCancelledIn = cancelledTags(sale, itemOf)
  const back = cameBackAtOnce(sale, itemOf, isCancelledIn)
  const isVoided = (name: string) => parts.ledger.till.tag(name)?.status === 'cancelled'
  const found: SaleAnswer['items'] = []
  for (const [i, line] of sale.lines.entries()) {
    let known = 0
    for (const tag of tagsOf(line)) {
      const lineId = lineIdOf(line, i)
      const item = tag.isValid ? items.find(tag.kind, tag.id) : undefined
      const isReturned = takesBack(line)
      const isCancelled = isCancelledIn(i, tag)
      const own = tag.isValid ? items.keysOf(tag.kind, tag.id) : []
      // A line may name one piece by two kinds of tag. Two lines cannot sell the same piece.
      const taken = own.map((name) => pieceOf.get(name)).find((piece) => piece !== undefined)
      const isTwice = taken !== undefined && taken.lineId !== lineId
      const fault = isCancelled
        ? undefined
        : isReturned
          ? whyHeld(tag, item)
          : (whyDoubtful(tag, item, own.some(isVoided)) ??
            (isTwice ? soldBefore(tag) : undefined) ??
            (!taken && known >= piecesOfLine(line, back[i]) ? moreItems(tag) : undefined))
      if (fault) warnings.push({ ...fault, lineId, tag: tag.id })
      const isPiece =
        !fault || fault.code === 'sale_tag_unknown' || (isElsewhere && fault.code === 'item_already_paid' && !isTwice)
      const isSoldHere = (becomes !== undefined || isElsewhere) && !stop && !isReturned && !isCancelled && isPiece
      const isChanged = becomes !== undefined && isSoldHere
      if (isSoldHere && tag.isValid && !taken) {
        const piece = { lineId, names: own }
        pieces.push(piece)
        for (const name of own) pieceOf.set(name, piece)
        if (item) known++
      }
      // The sale of goods that count as unsold may be on its way from another agent.
      const mayBeBack = mayComeBack(item) || (item !== undefined && MAY_BE_SOLD.has(item.status))
      const isBack = isSold && isReturned && !isCancelled && tag.isValid && mayBeBack
      const comesBack = isBack && mayReturn
      if (isBack && !mayReturn) warnings.push({ ...NO_RETURNS, lineId, tag: tag.id })
      if (comesBack) returned.push({ names: own, was: item?.status })
      const itemStatus =
        item && becomes !== undefined && (isChanged || taken) ? becomes : comesBack ? 'returned' : item?.status
      found.push({ lineId, tag: tag.id, ...(itemStatus !== undefined && { itemStatus }) })
    }
  }
  const answer = { saleId: sale.saleId, items: found, warnings }
  return { answer, pieces, returned, left: leftOfSale(sale, back) }
}

/** What of the doubts about a sale matters, with that of a sale that was voided before it arrived. */
export function warningsFor(
  { state, saleId }: KeptSale,
  becomes: 'paid' | 'cancelled' | undefined,
  isElsewhere: boolean,
  found: readonly Warning[],
): Warning[] {
  const warnings = state === 'void' ? [] : found.filter(({ code }) => !isElsewhere || code !== 'item_already_paid')
  const message = `sale ${saleId} was voided before it arrived: its goods alarm`
  return becomes === 'cancelled' ? [...warnings, { code: 'sale_is_void', message }] : warnings
}
