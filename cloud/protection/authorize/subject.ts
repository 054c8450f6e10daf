import type { DecisionFacts } from '../../../policy/decide.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import type { GrantedUnit } from '../leases/authorizations.ts'
import type { LeaseView } from '../leases/leases.ts'

/** One unit that is decided about. */
export interface AskedUnit {
  facts: DecisionFacts
  /** Who holds its right. */
  lease: LeaseView
  /** The right that a grant leases; undefined for actions that use nothing up. */
  right?: GrantedUnit | undefined
}

/** What a question is about, as the database has it. */
export interface Subject {
  /** One for a question about an item, all open units for one about a purchase; never none, so that there is something to refuse. */
  units: readonly [AskedUnit, ...AskedUnit[]]
  /** Whether the store has it. What it has not can be granted to nobody. */
  isKnown: boolean
  item?: ProtectedItemRow | undefined
  purchase?: PurchaseRow | undefined
  /** As it is answered; null when nothing registered stands behind it. */
  itemStatus: ItemStatus | null
  /** The line of the purchase that the item's unit belongs to. */
  lineId: string | null
}
