import { CLOUD_LEDGER } from '../../../policy/documents/authorization.ts'
import { RIGHT_CLASSES } from '../../../policy/vocabulary.ts'
import { precondition } from '../../platform/foundation/failure.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { retryMissingRefund, createWholeRefund, insertRefund, refundableCent } from '../../shop/purchases/refunds.ts'
import { denyReceipt, hasAgents } from '../../protection/rights/deny-list.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import type { MovedBy } from '../../protection/items/item-moves.ts'
import { readItems, updateStatuses } from '../../protection/items/item-queries.ts'
import { notifyGates, renumberItemsOf } from '../../protection/items/item-sequence.ts'
import { revokeTokens } from '../../protection/leases/token-revocations.ts'
import { boundItemsOf, recordCancelledUnits, readUnits, updatePurchase } from '../../shop/purchases/queries.ts'
import { isItemOf } from '../../protection/leases/leases.ts'
import { allRightsOf, passOf, rightName } from '../../protection/rights/rights.ts'
import type { Db } from '../../platform/persistence/database.ts'
import { releaseStock } from '../../shop/stock/reserve.ts'
import { isTest } from '../../shop/purchases/present.ts'
import { refundsOf } from '../../shop/purchases/refund-queries.ts'
import { emitRefunded, bookRefund } from './book-refund.ts'

/**
 * Ends a cancellation that needs no refund by a provider: in the sandbox, of a till's sale, or if nothing remains to
 * refund. Inserts a
 * completed refund, possibly of 0 cents, so that the reports subtract the purchase.
 */
export async function finishCancellation(call: Call, purchase: Row<'purchase'>): Promise<Row<'purchase'>> {
  const amountCent =
    isTest(purchase.tenant) || purchase.till !== null
      ? Math.max(0, refundableCent(purchase, await refundsOf(call.db, purchase.purchase_id)))
      : 0
  const refund = await insertRefund(call, {
    purchase,
    payment: null,
    kind: 'whole',
    amountCent,
    state: 'done',
    lines: null,
    reason: purchase.cancel_reason ?? undefined,
  })
  await bookRefund(call, purchase, refund)
  if (amountCent > 0) emitRefunded(call, refund, undefined)
  return updatePurchase(call.db, purchase, { refund_status: 'done' })
}

/** Cancels an unpaid purchase and releases its stock. */
export async function cancelUnpaidPurchase(
  db: Db,
  purchase: Row<'purchase'>,
  change: Partial<Row<'purchase'>>,
): Promise<Row<'purchase'>> {
  await releaseStock(db, purchase.purchase_id)
  await renumberItemsOf(db, purchase)
  return updatePurchase(db, purchase, { ...change, status: 'CANCELLED' })
}

/**
 * Cancels a purchase (ADR sales). A till's sale becomes void at once, because the till returns the money, also if its
 * goods have left. For another paid purchase, revokes all authorizations at once, and sends the refund when no
 * device can use a token any more. If an earlier refund failed, a repeated call refunds the missing amount.
 */
export async function cancelPurchase(
  call: Call,
  purchase: Row<'purchase'>,
  reason: string | undefined,
  by?: MovedBy,
): Promise<Row<'purchase'>> {
  const change = { status: 'CANCELLED', cancel_reason: reason ?? null }
  if (purchase.status === 'PENDING_PAYMENT' || purchase.status === 'CREATED')
    return cancelUnpaidPurchase(call.db, purchase, change)
  if (purchase.status === 'CANCELLED' && purchase.refund_status === 'failed') return retryMissingRefund(call, purchase)
  const isTill = purchase.till !== null
  if (purchase.status !== 'SUCCESS' && !(isTill && purchase.status === 'UNLOADED')) {
    throw precondition('purchase_not_cancellable', `a purchase with status ${purchase.status} cannot be cancelled`, {
      allowedNext: [],
    })
  }
  const denySeq = await revokePurchaseRights(call, purchase, by)
  if (isTill) {
    const ended = { ...change, deny_seq: denySeq, refund_status: 'pending' }
    return finishCancellation(call, await updatePurchase(call.db, purchase, ended))
  }
  const isOpen = await hasOpenAuthorizations(call, purchase)
  const refund = await createWholeRefund(call, { ...purchase, ...change }, isOpen ? 'held' : 'due')
  const cancelled = await updatePurchase(call.db, purchase, { ...change, deny_seq: denySeq, refund_status: 'pending' })
  return isOpen || refund ? cancelled : finishCancellation(call, cancelled)
}

/** Revokes all authorizations and rights of a purchase. Returns the number of the purchase's entry in the deny list. */
export async function revokePurchaseRights(call: Call, purchase: Row<'purchase'>, by?: MovedBy): Promise<number> {
  await revokeTokens(call, { kind: 'purchase', purchaseId: purchase.purchase_id }, 'the purchase was cancelled')
  const denySeq = await denyReceipt(call, purchase)
  await cancelItems(call, purchase, by)
  notifyGates(call, purchase.store_id)
  return denySeq
}

/** Undoes a cancellation whose refund failed. Items become paid again unless staff have moved them meanwhile. */
export async function restorePurchase(call: Call, purchase: Row<'purchase'>): Promise<Row<'purchase'>> {
  const { db, nowMs } = call
  const units = (await readUnits(db, purchase.purchase_id)).filter((unit) => unit.taken_back !== null)
  const items = await readItems(
    db,
    units.flatMap((unit) => unit.item_id ?? []),
  )
  const untouched = units.flatMap((unit) => {
    const item = items.get(unit.item_id ?? '')
    const isUntouched = item?.item_status === unit.taken_back && item !== undefined && isItemOf(item, unit)
    return isUntouched ? [{ item, change: { item_status: 'paid' } }] : []
  })
  await updateStatuses(db, untouched, nowMs)
  await recordCancelledUnits(
    db,
    units.map((unit) => ({ unit, status: null })),
  )
  return updatePurchase(db, purchase, { status: 'SUCCESS', refund_status: 'failed', cancel_reason: null })
}

/** Time after the expiry of a token in which a device with a slow clock may still honour it, s. */
const GUARD_SECONDS = 60

/**
 * Moves items that were not released to the status `cancelled`; staff make these items sellable again. Puts released
 * items on hold.
 */
async function cancelItems(call: Call, purchase: Row<'purchase'>, by?: MovedBy): Promise<void> {
  const { db, nowMs, services } = call
  let released = 0
  const units = await readUnits(db, purchase.purchase_id)
  const rights = await allRightsOf(db, purchase.purchase_id)
  const items = await readItems(db, boundItemsOf(units))
  const cancelled: { unit: Row<'purchase_unit'>; item: Row<'protected_item'>; status: string }[] = []
  for (const unit of units) {
    const isReleased = RIGHT_CLASSES.some((rightClass) => {
      const row = rights.get(rightName({ lineId: unit.line_id, unitNo: unit.unit_no, rightClass }))
      return row?.state === 'used' && row.returned_by === null
    })
    if (isReleased) released++
    const item = unit.bound === 0 ? undefined : items.get(unit.item_id ?? '')
    if (item?.item_status !== 'paid' || !isItemOf(item, unit)) continue
    cancelled.push({ unit, item, status: isReleased ? 'exception_hold' : 'cancelled' })
  }
  const changes = cancelled.map(({ item, status }) => ({ item, change: { item_status: status } }))
  await updateStatuses(db, changes, nowMs, by)
  await recordCancelledUnits(db, cancelled)
  const pass = rights.get(rightName(passOf(purchase.purchase_id)))
  const hasLeft = pass?.state === 'used' && pass.returned_by === null
  if (released === 0 && !hasLeft) return
  await raiseException(
    { db, tenant: purchase.tenant, platform: services.platform, nowMs },
    {
      storeId: purchase.store_id,
      kind: purchase.till === null ? 'cancelled_after_release' : 'released_then_voided',
      subject: purchase.purchase_id,
      purchaseId: purchase.purchase_id,
      detail:
        released > 0
          ? `the purchase was cancelled after ${released} of its units had been released`
          : 'the purchase was cancelled after its receipt had opened a barrier',
    },
  )
}

/**
 * True if a device may still use a token. If the store has agents, always true, because the agents must acknowledge the
 * denial first.
 */
export async function hasOpenAuthorizations(call: Call, purchase: Row<'purchase'>): Promise<boolean> {
  if (await hasAgents(call.db, purchase.store_id)) return true
  const token = await call.db
    .selectFrom('protection_authorization')
    .select('nonce')
    .where('purchase_id', '=', purchase.purchase_id)
    .where('ledger', '<>', CLOUD_LEDGER)
    .where('exp', '>', Math.floor(call.nowMs / 1_000) - GUARD_SECONDS)
    .limit(1)
    .executeTakeFirst()
  return token !== undefined
}
