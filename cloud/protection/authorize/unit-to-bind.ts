import { RIGHT_CLASSES, type RightClass } from '../../../policy/vocabulary.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { groupBy } from '../../platform/persistence/group-by.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import { readLines, readUnits } from '../../shop/purchases/queries.ts'
import { findAuthorization } from '../leases/authorizations.ts'
import { viewGrantableRights } from '../rights/delegated-rights.ts'
import { allRightsOf, rightName, viewRight, type RightView, type UnitKey } from '../rights/rights.ts'

/** A purchase unit that an item may be bound to. */
export interface BindableUnit {
  key: UnitKey
  line: PurchaseLineRow
  /**
   * State of the unit's right. A unit is bound to one item only. So if another right of the unit is leased for another
   * item, `right` is that lease, and it blocks the unit.
   */
  right: RightView
}

/** `agentId`: agent of the device; null for a device without an agent. */
interface BindQuery {
  db: Db
  nowMs: number
  agentId: string | null
}

/**
 * Finds an unbound unit of the same product to which this item can be bound (ADR 0008). Prefers a unit that is leased
 * for this item, then the lowest free unit, then a unit leased for another item. `only` restricts the search to one
 * line. Returns undefined if no unit is left.
 */
export async function unitToBind(
  { db, nowMs, agentId }: BindQuery,
  purchase: PurchaseRow,
  item: ProtectedItemRow,
  rights: RightClass,
  only: PurchaseLineRow | undefined,
): Promise<BindableUnit | undefined> {
  if (item.product_id === null) return undefined
  const { purchase_id: purchaseId } = purchase
  const lines = only ? [only] : await readLines(db, purchaseId)
  const units = groupBy(
    (await readUnits(db, purchaseId)).filter((unit) => unit.bound === 0),
    (unit) => unit.line_id,
  )
  const stored = await allRightsOf(db, purchaseId)
  const free = lines
    .filter((line) => line.product_id === item.product_id)
    .flatMap((line) => (units.get(line.line_id) ?? []).map((unit) => ({ line, unit })))
    .map(({ line, unit }) => {
      const key = { lineId: line.line_id, unitNo: unit.unit_no, rightClass: rights, purchaseId }
      return { line, key, row: stored.get(rightName(key)) }
    })
  const views = await viewGrantableRights(db, free, nowMs, agentId)
  const leasedFor = leasedItems(db)
  const found: (BindableUnit & { rank: number })[] = []
  for (const [n, { key, line }] of free.entries()) {
    const own = views[n]
    if (!own || own.state === 'used') continue
    const others: { right: RightView; leasedItem: string | null | undefined }[] = []
    for (const rightClass of RIGHT_CLASSES.filter((each) => each !== rights)) {
      const right = viewRight(stored.get(rightName({ ...key, rightClass })), nowMs)
      others.push({ right, leasedItem: await leasedFor(right) })
    }
    const isForItem = [{ leasedItem: await leasedFor(own) }, ...others].some(
      ({ leasedItem }) => leasedItem === item.item_id,
    )
    // A purchase-wide lease (null) does not block this item.
    const forOther = isForItem ? undefined : others.find(({ leasedItem }) => typeof leasedItem === 'string')?.right
    const rank = isForItem ? 0 : own.state === 'free' && !forOther ? 1 : 2
    found.push({ key, line, right: own.state === 'free' && forOther ? forOther : own, rank })
  }
  return lowestBy(found, ({ rank }) => rank)
}

/**
 * Returns a function that returns the item of a right's lease; null for a purchase-wide lease, undefined without a
 * lease. It reads each lease once.
 */
function leasedItems(db: Db): (right: RightView) => Promise<string | null | undefined> {
  const items = new Map<string, string | null>()
  return async (right) => {
    if (right.state !== 'leased') return undefined
    const known = items.get(right.nonce)
    if (known !== undefined) return known
    const item = (await findAuthorization(db, right.nonce))?.item_id ?? null
    items.set(right.nonce, item)
    return item
  }
}

/** Returns the first entry with the lowest rank. */
export function lowestBy<T>(all: readonly T[], rankOf: (each: T) => number): T | undefined {
  let lowest: { each: T; rank: number } | undefined
  for (const each of all) {
    const rank = rankOf(each)
    if (!lowest || rank < lowest.rank) lowest = { each, rank }
  }
  return lowest?.each
}
