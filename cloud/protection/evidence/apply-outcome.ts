import { mergeOutcomes } from '../../../policy/authorization-state.ts'
import type { Outcome } from '../../../policy/vocabulary.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { acknowledgeOpenException, raiseException, WITHDRAWN } from '../records/exceptions.ts'
import { updateRedemption } from '../rights/redemptions.ts'
import type { UnitKey } from '../rights/rights.ts'
import { unitOf, settleRight } from '../rights/settle-purchase.ts'
import { type EvidenceScope, type EvidenceSource, raiseForeignEvidence } from './evidence-scope.ts'
import { findPurchase, findUnit, readLines, recordCancelledUnits, readUnits } from '../../shop/purchases/queries.ts'
import { STOPPED_STATUSES } from './evidence-facts.ts'
import { readItem, updateItem } from '../items/item-queries.ts'
import { notifyGates } from '../items/item-sequence.ts'
import { isItemOf } from '../leases/leases.ts'
import { itemAsOf } from '../rights/past-state.ts'

type Cancelled = Pick<Row<'purchase'>, 'purchase_id' | 'store_id' | 'status'>

/**
 * Puts released items of a cancelled purchase on hold, so that staff look at them before they become sellable (ADR
 * sales).
 */
export async function holdItemsOfCancelled(
  scope: EvidenceScope,
  purchase: Cancelled | undefined,
  released: readonly UnitKey[],
): Promise<void> {
  if (purchase?.status !== 'CANCELLED' || released.length === 0) return
  const { db, nowMs } = scope
  const isReleased = new Set(released.map(({ lineId, unitNo }) => `${lineId}/${unitNo}`))
  for (const unit of await readUnits(db, purchase.purchase_id)) {
    if (unit.bound === 0 || unit.item_id === null || unit.taken_back !== 'cancelled') continue
    if (!isReleased.has(`${unit.line_id}/${unit.unit_no}`)) continue
    const item = await readItem(db, unit.item_id)
    // Keeps a status that staff have set since.
    if (item.item_status !== 'cancelled' || !isItemOf(item, unit)) continue
    await updateItem(db, item, { item_status: 'exception_hold' }, nowMs)
    await recordCancelledUnits(db, [{ unit: unit, status: 'exception_hold' }])
    notifyGates(scope, purchase.store_id)
  }
}

/** Raises `cancelled_after_release` for a purchase. */
export async function raiseCancelledAfterRelease(
  scope: EvidenceScope,
  purchase: Cancelled,
  deviceId: string,
): Promise<void> {
  await raiseException(scope, {
    storeId: purchase.store_id,
    kind: 'cancelled_after_release',
    subject: purchase.purchase_id,
    detail: 'the purchase was cancelled, but units of it had been released',
    deviceId,
    purchaseId: purchase.purchase_id,
  })
}

/**
 * True if the goods of this unit had to stay at that time, although nothing was returned: their item had such a status,
 * or they were recalled. An agent that was offline may not have known it.
 */
async function wasStopped(scope: EvidenceScope, key: UnitKey, atMs: number): Promise<boolean> {
  for (const each of await goodsOf(scope, key))
    if ((await hadStoppedStatus(scope, each, atMs)) || (await wasRecalled(scope, each, atMs))) return true
  return false
}

/** The units that leave with this right: all of a receipt that opened a barrier. */
async function goodsOf({ facts }: EvidenceScope, key: UnitKey): Promise<UnitKey[]> {
  if (key.lineId !== key.purchaseId) return [key]
  const units = await facts.unitsOf(key.purchaseId)
  return units.map((unit) => ({ ...key, lineId: unit.line_id, unitNo: unit.unit_no }))
}

async function wasRecalled({ db, facts, tenant }: EvidenceScope, key: UnitKey, atMs: number): Promise<boolean> {
  if (!(await facts.hasRecalls())) return false
  const { lineId, unitNo, purchaseId } = key
  const isStandalone = purchaseId === ''
  const itemId = isStandalone ? lineId : (await facts.unitOf(purchaseId, { lineId, unitNo }))?.item_id
  const item = itemId === undefined || itemId === null ? undefined : await readItem(db, itemId)
  const line = isStandalone ? undefined : (await readLines(db, purchaseId)).find((each) => each.line_id === lineId)
  const storeId = item?.store_id ?? (await findPurchase(db, tenant, purchaseId))?.store_id
  return storeId !== undefined && (await facts.recallsAt(storeId, atMs)).stop({ item, line })
}

async function hadStoppedStatus({ db, facts }: EvidenceScope, key: UnitKey, atMs: number): Promise<boolean> {
  const { lineId, unitNo, purchaseId, rightClass } = key
  const isStandalone = purchaseId === ''
  const itemId = isStandalone ? lineId : (await facts.unitOf(purchaseId, { lineId, unitNo }))?.item_id
  if (itemId === undefined || itemId === null || !(await facts.wasEverStopped(itemId))) return false
  const then = await itemAsOf(db, await readItem(db, itemId), atMs)
  const isSame = isStandalone ? then.line_id === null : then.line_id === lineId && then.unit_no === unitNo
  const isTransfer = then.item_status === 'transfer_in_transit' && rightClass === 'exit'
  return isSame && !isTransfer && (STOPPED_STATUSES as readonly string[]).includes(then.item_status)
}

/**
 * If a unit was released after its return, puts its item on hold. Changes the item only if its status is `returned`.
 */
async function holdReturnedItem(scope: EvidenceScope, storeId: string, { lineId, unitNo }: UnitKey): Promise<void> {
  const { db, nowMs } = scope
  const unit = await findUnit(db, lineId, unitNo)
  if (!unit || unit.bound === 0 || unit.item_id === null) return
  const item = await readItem(db, unit.item_id)
  // Keeps a status that staff have set since.
  if (item.item_status !== 'returned' || !isItemOf(item, unit)) return
  await updateItem(db, item, { item_status: 'exception_hold' }, nowMs)
  notifyGates(scope, storeId)
}

/** Exceptions about one unit. The cloud withdraws these exceptions if a redemption turns out to have failed. */
const UNIT_EXCEPTIONS = {
  double_redeem: 'one unit was released twice',
  released_after_refund: 'a unit was released after its refund or return',
  released_on_hold: 'a unit was released while its item was on hold, recalled, reserved or in transit',
}

/**
 * Updates a unit's right from all its redemptions, and raises or withdraws exceptions. `claim` is the new claim;
 * undefined if only an outcome changed.
 */
export async function settleUnit(
  scope: EvidenceScope,
  storeId: string,
  key: UnitKey,
  claim: { deviceId: string; atMs: number } | undefined,
): Promise<void> {
  const { isDouble, isUsed, claims, returned } = await settleRight(scope.redemptions, key)
  const subject = `${key.lineId}/${key.unitNo}/${key.rightClass}`
  const raise = (kind: keyof typeof UNIT_EXCEPTIONS) =>
    raiseException(scope, {
      storeId,
      kind,
      subject,
      detail: UNIT_EXCEPTIONS[kind],
      deviceId: claim?.deviceId,
      purchaseId: key.purchaseId === '' ? undefined : key.purchaseId,
    })
  const withdraw = (kind: keyof typeof UNIT_EXCEPTIONS) =>
    acknowledgeOpenException(scope.db, { storeId, kind, subject, by: WITHDRAWN, atMs: scope.nowMs })

  if (isDouble) await raise('double_redeem')
  else if (!claim && claims > 1) await withdraw('double_redeem')
  // Goods that were returned have their own exception.
  if (claim && returned === undefined && (await wasStopped(scope, key, claim.atMs))) await raise('released_on_hold')
  else if (!claim && !isUsed) await withdraw('released_on_hold')
  // If the unit was released before its return, `returned` is also `used`. Such a release is allowed, so only a new
  // claim raises the exception.
  if (returned === 'used' && claim) {
    await holdReturnedItem(scope, storeId, key)
    await raise('released_after_refund')
  } else if (returned === 'unused' && !claim) await withdraw('released_after_refund')
}

/**
 * Applies the outcome of a claim: `confirmed` is final, `failed` frees the units of the claim, staff resolve `unknown`.
 * Returns false for an unknown claim. Devices without an agent choose their redemption ids, so two claims may have the
 * same id. Pass `nonce` to select one of them.
 */
export async function applyOutcome(
  scope: EvidenceScope,
  source: EvidenceSource,
  redemptionId: string,
  outcome: Outcome,
  nonce?: string,
): Promise<boolean> {
  const rows = (await scope.redemptions.ofId(redemptionId)).filter((row) => nonce === undefined || row.nonce === nonce)
  if (rows.length === 0) return false
  if (rows.length > 1) await scope.redemptions.prepare([redemptionId], [])
  const own: Row<'redemption'>[] = []
  for (const row of rows) if (await scope.facts.isOwn(row.agent_id, source)) own.push(row)
  const [first] = own
  if (!first) {
    const detail = `an outcome of a claim that is not this agent's`
    await raiseForeignEvidence(scope, source, { kind: 'outcome', about: redemptionId, detail })
    return true
  }
  const changed: Row<'redemption'>[] = []
  for (const row of own) {
    const known = row.outcome as Outcome | null
    const merged = mergeOutcomes(known, outcome)
    if (merged.isConflict) await raiseConflict(scope, source, row, outcome)
    if (row.resolved_by !== null) await updateRedemption(scope.db, row, { reported: outcome })
    else if (merged.outcome !== known) {
      await scope.redemptions.setOutcome(row, merged.outcome)
      changed.push(row)
    }
  }
  const purchases = await settleRedemptions(scope, source, changed)
  if (outcome !== 'unknown' && changed.some((row) => row.outcome === 'unknown'))
    await acknowledgeOpenException(scope.db, {
      storeId: source.storeId,
      kind: 'outcome_unknown',
      subject: redemptionId,
      by: WITHDRAWN,
      atMs: scope.nowMs,
    })
  if (outcome === 'unknown' && changed.length > 0) {
    await raiseException(scope, {
      storeId: source.storeId,
      kind: 'outcome_unknown',
      subject: redemptionId,
      detail: 'a release was claimed, and it is unknown whether the actuator moved',
      deviceId: first.device_id,
      purchaseId: purchases[0],
      nonce: first.nonce,
    })
  }
  return true
}

async function raiseConflict(
  scope: EvidenceScope,
  source: EvidenceSource,
  row: Row<'redemption'>,
  reported: Outcome,
): Promise<void> {
  const by = row.resolved_by === null ? 'the device reported' : 'staff saw'
  await raiseException(scope, {
    storeId: source.storeId,
    kind: 'outcome_conflict',
    subject: row.redemption_id,
    detail: `${by} ${row.outcome}, and then it was reported as ${reported}`,
    deviceId: row.device_id,
    nonce: row.nonce,
  })
}

/**
 * Updates the rights of these redemptions. `finishEvidence` later updates their purchases. Returns the purchase ids.
 */
export async function settleRedemptions(
  scope: EvidenceScope,
  source: EvidenceSource,
  changed: readonly Row<'redemption'>[],
): Promise<string[]> {
  const { due, redemptions } = scope
  const keys: UnitKey[] = []
  for (const row of changed) {
    const key = await unitOf(redemptions, row)
    if (!key) continue
    await settleUnit(scope, source.storeId, key, undefined)
    keys.push(key)
  }
  const purchases = [...new Set(keys.map((key) => key.purchaseId).filter((id) => id !== ''))]
  for (const purchaseId of purchases) due.purchaseIds.add(purchaseId)
  return purchases
}
