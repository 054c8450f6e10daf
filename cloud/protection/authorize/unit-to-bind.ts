import type { RightClass } from '../../../policy/vocabulary.ts'
import type { Db } from '../../persistence/database.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'
import type { PurchaseLineRow, PurchaseRow } from '../../persistence/tables/purchases.ts'
import { readLines, readUnits } from '../../purchases/queries.ts'
import { findAuthorization } from '../leases/authorizations.ts'
import { viewGrantableRight } from '../rights/delegated-rights.ts'
import { findRight, viewRight, type RightView, type UnitKey } from '../rights/rights.ts'

/** A unit of a purchase that an item may become. */
export interface BindableUnit {
  key: UnitKey
  line: PurchaseLineRow
  /** What stands in the way: also what was lent of the unit's other class for another item, for one unit is one item. */
  right: RightView
}

/** Who asks: the agent of the device, null for one without. */
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
 * The unbound unit of the same product that this item would be bound to (decisions §8): the one that something was lent of for this
 * very item, else the lowest free one, else the lowest that was lent for another item, which must be given up first.
 * `only`: of this line. Undefined when there is none, or all are used up.
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
      const [lentOwn, lentOther] = [await leasedFor(db, own), await leasedFor(db, other)]
      const isMine = lentOwn === item.item_id || lentOther === item.item_id
      // What was lent for the purchase as a whole is for no item in particular.
      const isOthers = typeof lentOther === 'string' && !isMine
      const rank = isMine ? 0 : own.state === 'free' && !isOthers ? 1 : 2
      found.push({ key, line, right: own.state === 'free' && isOthers ? other : own, rank })
    }
  }
  return lowestBy(found, ({ rank }) => rank)
}

/** The item that a right was lent for; null: for the unit, whichever item that is; undefined: it is not lent. */
async function leasedFor(db: Db, right: RightView): Promise<string | null | undefined> {
  return right.state === 'leased' ? ((await findAuthorization(db, right.nonce))?.item_id ?? null) : undefined
}

/** The first of those that rank lowest. */
export function lowestBy<T>(all: readonly T[], rankOf: (each: T) => number): T | undefined {
  const lowest = Math.min(...all.map(rankOf))
  return all.find((each) => rankOf(each) === lowest)
}
