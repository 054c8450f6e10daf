import type { DecisionFacts } from '../../../policy/decide.ts'
import { type ItemStatus, rightClassOf } from '../../../policy/vocabulary.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { type GrantedUnit, unitsOfAuthorization } from '../leases/authorizations.ts'
import { type LeaseView, viewLease } from '../leases/leases.ts'
import { maySee } from '../../platform/foundation/caller.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { prepared } from '../../platform/persistence/prepared.ts'
import { findPurchase } from '../../shop/purchases/queries.ts'
import { purchaseOfLine, resolveUnit, type ResolvedUnit, type UnitQuery } from './resolve-unit.ts'
import { applyOverride } from './request-context.ts'
import { isOfOtherTill, requestFacts, type AuthorizationRequest } from './authorization-request.ts'
import { RECALLED } from '../../../policy/item-status.ts'
import { orderOfCode } from '../../shop/pickup-orders/queries.ts'
import { recallsIn } from '../items/recalls.ts'
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
  item?: Row<'protected_item'> | undefined
  purchase?: Row<'purchase'> | undefined
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
    item: found?.facts ?? null,
    identifiedBy: (['epc', 'tagUid', 'tagId', 'itemLineId'] as const).filter((kind) => identifiers[kind] !== undefined),
    mustBeRead: found?.mustBeRead ?? false,
    right: found?.isUntagged ? ('none' as const) : lease.right,
    ...known,
    isOtherStores: known.isOtherStores || (!found && (await namesLineOfOtherStore(call, request))),
    isOtherTill: known.isOtherTill || found?.isOtherTill === true,
    token: known.token ?? ((await coversOther(call, request, found)) ? ('token_invalid' as const) : undefined),
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

interface FoundUnit extends ResolvedUnit {
  isOtherTill?: boolean
}

async function findRequested(call: Call, request: AuthorizationRequest): Promise<FoundUnit | undefined> {
  const { context, action, identifiers, purchase } = request
  const { device, store } = context
  if (!device || !store) return undefined
  const query: UnitQuery = {
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
  }
  const found = await resolveUnit(query)
  const tillId = device.row.till_id
  if (!found || tillId === null || rightClassOf(action) !== 'release') return found
  if (found.purchase) return { ...found, isOtherTill: isOfOtherTill(tillId, action, found.purchase) }
  return (await boundAtPad(query, found, tillId)) ?? { ...found, isOtherTill: true }
}

/** True if the exchanged token is for other goods than those of the request. Its operator has not approved these. */
async function coversOther(
  { db }: Call,
  { exchanged }: AuthorizationRequest,
  found: FoundUnit | undefined,
): Promise<boolean> {
  if (!exchanged || !found) return false
  const { item_id: itemId, purchase_id: purchaseId, nonce } = exchanged
  if (itemId !== null && itemId !== found.item?.item_id) return true
  if (purchaseId === null) return itemId === null
  const units = await unitsOfAuthorization(db, nonce)
  return (
    purchaseId !== found.purchase?.purchase_id ||
    (units.length > 0 && !units.some((unit) => unit.line_id === found.unit?.key.lineId))
  )
}

/** Time for which a piece that a till sold without a tag may be bound to the tag on the pad, ms. */
const PAD_MS = 15 * 60_000
const PAD_SALES = 10

/** Matches a tag on the pad of a till with the last sales of this till: a piece of the same product without a tag. */
async function boundAtPad(query: UnitQuery, { item }: ResolvedUnit, tillId: string): Promise<ResolvedUnit | undefined> {
  if (item?.item_status !== 'sellable') return undefined
  const { db, storeId, tenant, nowMs } = query
  for (const { purchase_id: purchaseId } of await lastSalesOf(db, { storeId, tillId, sinceMs: nowMs - PAD_MS })) {
    const sale = purchaseId === null ? undefined : await findPurchase(db, tenant, purchaseId)
    const found = sale && (await resolveUnit({ ...query, purchase: sale }))
    if (found?.unit && found.unit.key.purchaseId === purchaseId && found.unit.right.state !== 'used') return found
  }
  return undefined
}

const lastSalesOf = prepared((db, p: { storeId: string; tillId: string; sinceMs: number }) =>
  db
    .selectFrom('till_sale')
    .select('purchase_id')
    .where('store_id', '=', p.storeId)
    .where('till_id', '=', p.tillId)
    .where('stored_ms', '>=', p.sinceMs)
    .where('state', '=', 'paid')
    .orderBy('stored_ms', 'desc')
    .limit(PAD_SALES),
)

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
          ...((await hasRecalledGoods(call.db, order, await recallsIn(call.db, order))) && RECALLED),
        }
      : null,
    identifiedBy: [],
    right: lease.right,
    locker: order && order.locker_device_id === device?.device_id ? ('own' as const) : ('other' as const),
  }
  return { units: [{ facts, lease }], isKnown: order !== undefined, itemStatus, lineId: null }
}
