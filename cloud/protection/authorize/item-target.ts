import { maySee } from '../../platform/foundation/caller.ts'
import type { Call } from '../../platform/operations/operation.ts'
import { viewLease, type LeaseView } from '../leases/leases.ts'
import { purchaseOfLine, resolveUnit, type ResolvedUnit } from './resolve-unit.ts'
import { applyOverride } from './override-lease.ts'
import { requestFacts, type AuthorizationRequest } from './authorization-request.ts'
import type { AuthorizationTarget } from './authorization-target.ts'

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
