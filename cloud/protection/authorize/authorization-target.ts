import type { DecisionFacts } from '../../../policy/decide.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import type { GrantedUnit } from '../leases/authorizations.ts'
import type { LeaseView } from '../leases/leases.ts'

/** One unit with the facts for its decision. */
export interface TargetUnit {
  facts: DecisionFacts
  /** Lease of the unit's right. */
  lease: LeaseView
  /** Right that a grant leases; undefined if the grant uses no right. */
  right?: GrantedUnit | undefined
}

/** The stored item or purchase that a request is about. */
export interface AuthorizationTarget {
  /**
   * One unit for an item, all open units for a purchase. A denial needs facts too, so the list has at least one unit.
   */
  units: readonly [TargetUnit, ...TargetUnit[]]
  /** True if the store has this item or purchase. */
  isKnown: boolean
  item?: ProtectedItemRow | undefined
  purchase?: PurchaseRow | undefined
  /** Status in the response; null without a registered item. */
  itemStatus: ItemStatus | null
  /** Purchase line of the item's unit. */
  lineId: string | null
}
