import type { DecisionFacts } from '../../../policy/decide.ts'
import type { ItemStatus } from '../../../policy/vocabulary.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import type { PurchaseRow } from '../../platform/persistence/tables/purchases.ts'
import type { GrantedUnit } from '../leases/authorizations.ts'
import { type LeaseView, viewLease } from '../leases/leases.ts'
import { maySee } from '../../platform/foundation/caller.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { purchaseOfLine, resolveUnit, type ResolvedUnit } from './resolve-unit.ts'
import { applyOverride } from './override-lease.ts'
import { requestFacts, type AuthorizationRequest } from './authorization-request.ts'
import { RECALLED } from '../../../policy/item-status.ts'
import { orderOfCode } from '../../shop/pickup-orders/queries.ts'
import { recallReader } from '../items/recalls.ts'
import { hasRecalledGoods } from '../recalls/publish-recalls.ts'

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

/** Loads one item, or one purchase unit, with its right and lease. */
export async function loadItemTarget(call: Call, request: AuthorizationRequest): Promise<AuthorizationTarget> {
  const { context, identifiers } = request
  const found = await findRequested(call, request)
  const lease = applyOverride(call, context, await leaseOf(call, request, found))
  const known = requestFacts(request)
  const facts = {
    ...known,
    isOtherStores: known.isOtherStores || (!found && (await namesLineOfOtherStore(call, request))),
    item: found?.facts ?? null,
    identifiedBy: (['epc', 'tagUid', 'tagId', 'itemLineId'] as const).filter((kind) => identifiers[kind] !== undefined),
    mustBeRead: found?.mustBeRead ?? false,
    right: found?.isUntagged ? ('none' as const) : lease.right,
  }
  return {
    // Staff who open a fixture once more use no right.
    units: [{ facts, lease, right: lease.right === 'used' ? undefined : found?.unit }],
    isKnown: found !== undefined,
    item: found?.item,
    purchase: found?.purchase,
    itemStatus: found?.itemStatus ?? null,
    lineId: found?.unit?.key.purchaseId ? found.unit.key.lineId : null,
  }
}

async function findRequested(call: Call, request: AuthorizationRequest): Promise<ResolvedUnit | undefined> {
  const { context, action, identifiers, purchase } = request
  const { device, store } = context
  if (!device || !store) return undefined
  return resolveUnit({
    db: call.db,
    tenant: context.caller.tenant,
    storeId: device.row.store_id,
    deviceId: device.row.device_id,
    agentId: device.row.agent_id,
    device: device.facts,
    action,
    identifiers,
    purchase: purchase?.store_id === device.row.store_id ? purchase : undefined,
    nowMs: call.nowMs,
    pastMs: context.pastMs,
  })
}

async function namesLineOfOtherStore(
  { db }: Call,
  { context: { caller, device }, identifiers: { itemLineId } }: AuthorizationRequest,
): Promise<boolean> {
  if (!device || itemLineId === undefined) return false
  const purchase = await purchaseOfLine(db, caller.tenant, itemLineId)
  return purchase !== undefined && maySee(caller, purchase) && purchase.store_id !== device.row.store_id
}

async function leaseOf(
  call: Call,
  { context: { device }, action }: AuthorizationRequest,
  found: ResolvedUnit | undefined,
): Promise<LeaseView> {
  if (!device || !found) return { right: 'free' }
  const itemId = found.item?.item_id ?? null
  return viewLease(
    call,
    found.unit?.right,
    device.row,
    action,
    (row) => row.ith_kind !== null && row.item_id === itemId,
  )
}

/**
 * Loads the order of a presented pick-up code. The code opens only the locker in which the goods of its order wait (ADR
 * sales). It uses no right, because the goods are reserved until staff or a program confirm the pick-up.
 */
export async function loadLockerTarget(
  call: Call,
  request: AuthorizationRequest,
  pickupCode: string,
): Promise<AuthorizationTarget> {
  const { context, action } = request
  const device = context.device?.row
  const order = device && (await orderOfCode(call.db, context.caller.tenant, device.store_id, pickupCode))
  const isPickedUp = order?.status === 'picked_up'
  const lease =
    device && !isPickedUp
      ? await viewLease(call, undefined, device, action, () => false)
      : { right: isPickedUp ? ('used' as const) : ('free' as const) }
  const itemStatus: ItemStatus | null = order ? (isPickedUp ? 'picked_up' : 'reserved_bopis') : null
  const facts = {
    ...requestFacts(request),
    token: device && !order ? ('token_invalid' as const) : undefined,
    // The code alone opens the locker. An operator opens it by the goods.
    hasOperator: false,
    item: order
      ? {
          status: order.paid === 1 ? ('paid' as const) : ('reserved_bopis' as const),
          category: '',
          brand: '',
          priceCent: order.total_cent,
          ...((await hasRecalledGoods(call.db, order, recallReader(call.db, order.tenant))) && RECALLED),
        }
      : null,
    identifiedBy: [],
    right: lease.right,
    locker: order && order.locker_device_id === device?.device_id ? ('own' as const) : ('other' as const),
  }
  return { units: [{ facts, lease }], isKnown: order !== undefined, itemStatus, lineId: null }
}
