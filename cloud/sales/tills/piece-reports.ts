import { isSold } from '../../../policy/item-status.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { newestMovesByOthers } from '../../protection/items/item-moves.ts'
import {
  CLOCKS_DIFFER_MS,
  historyOf,
  OTHERS,
  type MoveByOthers,
  type PieceHistory,
  type SaleOfPiece,
} from './piece-history.ts'
import { allPieceReports, isReturn, pieceReports, saveReports, storedTimesOf } from './queries.ts'

type Report = Row<'piece_report'>
type Item = Row<'protected_item'>

/** Before the key of the sale with which goods came back. */
export const EXCHANGE_KEY = 'with '

/** A piece that a sale names. */
export interface NamedPiece {
  readonly item: Item
  readonly lineId: string
  readonly isAgain: boolean
  /** When the sale was, among the other reports about the piece, ms. */
  readonly atMs: number
}

/** Stores that a sale names these pieces. */
export async function reportSale(
  { db }: Call,
  { tenant, store_id }: Row<'store'>,
  { key, purchaseId, agentId }: { key: string; purchaseId: string; agentId?: string | undefined },
  named: readonly NamedPiece[],
): Promise<void> {
  const pieces = [...new Map(named.map((piece) => [piece.item.item_id, piece])).values()]
  await saveReports(
    db,
    pieces.map(({ item, lineId, isAgain, atMs }) => ({
      item_id: item.item_id,
      report_key: key,
      tenant,
      store_id,
      purchase_id: purchaseId,
      line_id: lineId,
      sale_key: null,
      agent_id: agentId ?? null,
      at_ms: atMs,
      is_again: isAgain ? 1 : 0,
      resellable: 0,
      names_tag: 0,
      is_booked: 0,
    })),
  )
}

/**
 * Time of a report whose recorder knew the status of the piece, so that it is after what made the status: returns that
 * are booked, and those before the last change. A return that waits for its sale changed no status. One agent has one
 * clock.
 */
export function timeAfterAll(
  storedMs: number,
  item: Item,
  known: readonly Report[] = [],
  agentId: string | null = null,
): number {
  const returns = known.filter(isReturn)
  const marginOf = ({ agent_id }: Report) => (agentId !== null && agent_id === agentId ? 0 : CLOCKS_DIFFER_MS)
  const after = (list: readonly Report[]) => Math.max(0, ...list.map((report) => report.at_ms + marginOf(report) + 1))
  const madeMs = Math.max(item.updated_ms, after(returns.filter((report) => report.is_booked === 1)))
  return Math.max(storedMs, item.updated_ms + 1, madeMs, after(returns.filter((report) => report.at_ms <= madeMs)))
}

/**
 * Stores that these pieces came back. `saleKey`: the sale that the till named. `isBooked`: the money is booked.
 * `isLate`: it waited for its sale. `namedIds`: items whose tags the till named beside the sale.
 */
export async function reportReturn(
  { db }: Call,
  { tenant, store_id }: Row<'store'>,
  back: {
    key: string
    storedMs: number
    agentId?: string | undefined
    saleKey?: string | undefined
    isResellable?: boolean | undefined
    isBooked?: boolean
    isLate?: boolean | undefined
    namedIds?: ReadonlySet<string>
  },
  items: readonly Item[],
): Promise<void> {
  const known = await pieceReports(
    db,
    items.map((item) => item.item_id),
  )
  const sold = items.flatMap((item) => {
    const sale = known.get(item.item_id)?.find((report) => report.report_key === back.saleKey)
    return sale && back.isBooked === true ? [{ ...sale, is_booked: 1 }] : []
  })
  const isNow = back.agentId === undefined && back.isLate !== true
  // A sale that this recorder knew before its return may have got a later time than its own (`timeAfterAll`).
  const ofClock = [...known.values()].flat().filter((report) => {
    const isSameClock = isNow || report.agent_id === (back.agentId ?? '')
    return !isReturn(report) && isSameClock && report.at_ms > back.storedMs
  })
  const storedAt = await storedTimesOf(
    db,
    ofClock.map((report) => report.report_key),
  )
  const isOfClock = new Set(ofClock)
  const isBefore = (report: Report) =>
    isOfClock.has(report) && (storedAt.get(report.report_key) ?? Infinity) <= back.storedMs
  const returned = items.map((item): Report => {
    const reports = known.get(item.item_id) ?? []
    const storedMs = isNow ? timeAfterAll(back.storedMs, item, reports) : back.storedMs
    return {
      item_id: item.item_id,
      report_key: back.key,
      tenant,
      store_id,
      purchase_id: null,
      line_id: null,
      sale_key: back.saleKey ?? null,
      agent_id: back.agentId ?? null,
      at_ms: Math.max(storedMs, ...reports.filter(isBefore).map((report) => report.at_ms + 1)),
      is_again: 0,
      resellable: back.isResellable === true ? 1 : 0,
      names_tag: back.saleKey === undefined || back.namedIds?.has(item.item_id) === true ? 1 : 0,
      is_booked: back.isBooked === true ? 1 : 0,
    }
  })
  await saveReports(db, [...sold, ...returned])
}

/** Moves of these items by others than tills, by item. */
export async function movesByOthers(
  { db }: Call,
  { store_id: storeId }: Row<'store'>,
  reports: ReadonlyMap<string, readonly Report[]>,
  itemIds: readonly string[] = [...reports.keys()],
): Promise<ReadonlyMap<string, MoveByOthers>> {
  const moves = await newestMovesByOthers(db, itemIds, { storeId })
  return new Map(
    moves.map(({ item_id: itemId, at_ms: atMs, to_status: status, purchase_id: purchaseId }) => {
      // Staff may have ended a hold, or a device bound the piece to its sale.
      const sale = reports.get(itemId)?.find((report) => !isReturn(report) && report.purchase_id === purchaseId)
      return [itemId, { atMs, owner: isSold(status) ? (sale?.report_key ?? OTHERS) : undefined }]
    }),
  )
}

/** History of a piece by the reports about it. `voided`: its sales that became void. `next`: one that is about to be reported. */
export function historyOfReports(
  reports: readonly Report[],
  others: MoveByOthers | undefined,
  { voided = [], next }: { voided?: readonly Report[] | undefined; next?: SaleOfPiece } = {},
): PieceHistory {
  const of = ({ report_key: key, at_ms: atMs, agent_id }: Report) => ({ key, atMs, agentId: agent_id ?? undefined })
  const saleOf = (report: Report) => ({ ...of(report), isAgain: report.is_again === 1 })
  const sales = reports.flatMap((report) => (isReturn(report) ? [] : [saleOf(report)]))
  const returns = reports.flatMap((report) =>
    isReturn(report)
      ? [{ ...of(report), saleKey: report.sale_key ?? undefined, namesTag: report.names_tag === 1 }]
      : [],
  )
  return historyOf(next ? [...sales, next] : sales, returns, { others, voided: voided.map(saleOf) })
}

/**
 * Notes the sale at the returns of its pieces, before it becomes void: they are about no other sale. A return that a till
 * took after the void is about another one, which may be on its way.
 */
export async function keepReturnsOf(
  call: Call,
  store: Row<'store'>,
  { saleKey, voidedMs }: { saleKey: string; voidedMs: number },
  itemIds: readonly string[],
): Promise<void> {
  const { reports, voided } = await allPieceReports(call.db, itemIds)
  const others = await movesByOthers(call, store, reports)
  const backs: Report[] = []
  for (const [itemId, ofItem] of reports) {
    const { returns } = historyOfReports(ofItem, others.get(itemId), { voided: voided.get(itemId) })
    backs.push(...ofItem.filter((report) => report.report_key === returns.get(saleKey)))
  }
  await saveReports(
    call.db,
    backs.map((back) =>
      back.sale_key === null && back.at_ms > voidedMs
        ? { ...back, is_booked: 0 }
        : // A return by the tag alone ends whichever sale owns the piece.
          { ...back, sale_key: saleKey, names_tag: back.sale_key === null ? 1 : back.names_tag, is_booked: 1 },
    ),
  )
}
