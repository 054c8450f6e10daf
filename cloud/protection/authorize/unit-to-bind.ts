import type { RightClass } from '../../../policy/vocabulary.ts'
import type { Db } from '../../persistence/database.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow } from '../../persistence/tables/purchases.ts'
import { readLines, readUnits } from '../../purchases/queries.ts'
import { findAuthorization } from '../leases/authorizations.ts'
import { viewGrantableRight } from '../rights/delegated-rights.ts'
import { findRight, viewRight, type RightView, type UnitKey } from '../rights/rights.ts'

/** A purchase unit that an item may be bound to. */
export interface BindableUnit {
  key: UnitKey
  line: PurchaseLineRow
  /**
   * State of the unit's right. A unit is bound to one item only. So if the unit's other right (exit for a release,
   * release for an exit) is leased for another item, `right` is that lease, and it blocks the unit.
   */
  right: RightView
}

/** `agentId`: agent of the device; null for a device without an agent. */
interface BindQuery {
  db: Db
  nowMs: number
  agentId: string | null
}

const OTHER_CLASS = { release: 'exit', exit: 'release', fixture: 'fixture' } as const satisfies Record<
  RightClass,
  RightClass
>

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
  const lines = only ? [only] : await readLines(db, purchase.purchase_id)
  const units = await readUnits(db, purchase.purchase_id)
  const found: (BindableUnit & { rank: number })[] = []
  for (const line of lines.filter((l) => l.product_id === item.product_id)) {
    for (const unit of units.filter((u) => u.line_id === line.line_id && u.bound === 0)) {
      const key = { lineId: line.line_id, unitNo: unit.unit_no, rightClass: rights, purchaseId: purchase.purchase_id }
      const own = await viewGrantableRight(db, key, await findRight(db, key), nowMs, agentId)
      if (own.state === 'used') continue
      const other = viewRight(await findRight(db, { ...key, rightClass: OTHER_CLASS[rights] }), nowMs)
      const [leasedItem, otherLeasedItem] = [await leasedFor(db, own), await leasedFor(db, other)]
      const isForItem = leasedItem === item.item_id || otherLeasedItem === item.item_id
      // A purchase-wide lease (null) does not block this item.
      const isForOther = typeof otherLeasedItem === 'string' && !isForItem
      const rank = isForItem ? 0 : own.state === 'free' && !isForOther ? 1 : 2
      found.push({ key, line, right: own.state === 'free' && isForOther ? other : own, rank })
    }
  }
  return lowestBy(found, ({ rank }) => rank)
}

/** Item of the lease; null for a purchase-wide lease, undefined without a lease. */
async function leasedFor(db: Db, right: RightView): Promise<string | null | undefined> {
  return right.state === 'leased' ? ((await findAuthorization(db, right.nonce))?.item_id ?? null) : undefined
}

/** Returns the first entry with the lowest rank. */
export function lowestBy<T>(all: readonly T[], rankOf: (each: T) => number): T | undefined {
  const lowest = Math.min(...all.map(rankOf))
  return all.find((each) => rankOf(each) === lowest)
}
