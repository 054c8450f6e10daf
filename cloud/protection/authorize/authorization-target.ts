import type { DecisionFacts } from '../../../policy/decide.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import type { ProtectedItemRow } from '../../persistence/tables/protection.ts'
import type { PurchaseRow } from '../../persistence/tables/purchases.ts'
import type { GrantedUnit } from '../leases/authorizations.ts'
import type { LeaseView } from '../leases/leases.ts'

/** One unit of a question, for one decision. */
export interface TargetUnit {
  facts: DecisionFacts
  /** Who holds its right. */
  lease: LeaseView
  /** The right that a grant leases; undefined for actions that use nothing up. */
  right?: GrantedUnit | undefined
}

/** The item or purchase of a question, as the database stores it. */
export interface AuthorizationTarget {
  /** One unit for a question about an item, all open units for a purchase. Never empty: `decide` needs one to refuse. */
  units: readonly [TargetUnit, ...TargetUnit[]]
  /** Whether the item or purchase exists in the store. */
  isKnown: boolean
  item?: ProtectedItemRow | undefined
  purchase?: PurchaseRow | undefined
  /** The status in the answer; null when no registered item is known. */
  itemStatus: ItemStatus | null
  /** The line of the purchase that the item's unit belongs to. */
  lineId: string | null
}
