import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { raiseException } from '../../protection/records/exceptions.ts'
import {
  hasOpenAuthorizations,
  restorePurchase,
  revokePurchaseRights,
  finishCancellation,
} from '../checkout/cancel-purchase.ts'
import { updatePurchase, readUnits, readPurchase } from '../../shop/purchases/queries.ts'
import type { RefundNotice } from './provider.ts'
import { findPayment, findRefund } from './queries.ts'
import { refundsOf, updateRefund } from '../../shop/purchases/refund-queries.ts'
import { emitRefunded, bookRefund, unbookRefund } from '../checkout/book-refund.ts'
import { countsAgainstTotal, DOUBT, isPending, unrefundedCent } from '../../shop/purchases/refunds.ts'
import { makeRoom } from './make-room.ts'
import { invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { ITEM_UNKNOWN, itemsWith, tagsIn, type TagLists } from '../../protection/items/item-queries.ts'
import { rightsOfPurchase, type UnitRight } from '../../protection/rights/rights.ts'
import { piecesLeft } from '../../../policy/decimals.ts'
import { isCoupon, soldPieces, sumPieces, type Pieces } from '../../shop/purchases/line-value.ts'
import type { WholePurchase } from '../../shop/purchases/present.ts'

/** Pieces of a line in a request for a refund. */
interface WantedPieces extends TagLists {
  itemLineId: string
  quantity?: number | undefined
}

/** A purchase and what is known about its tagged pieces. */
interface Known {
  readonly purchase: Row<'purchase'>
  readonly units: readonly Row<'purchase_unit'>[]
  /** Bound pieces by item. */
  readonly unitOf: ReadonlyMap<string, Row<'purchase_unit'>>
  /** Release rights by line and number of the piece. */
  readonly rights: ReadonlyMap<string, UnitRight>
  /** Finds the items of named tags. */
  readonly itemOf: Awaited<ReturnType<typeof itemsWith>>
}

const keyOf = ({ line_id, unit_no }: Pick<Row<'purchase_unit'>, 'line_id' | 'unit_no'>) => `${line_id}/${unit_no}`

/**
 * Chooses the pieces that come back (ADR sales). `gone`: pieces that came back with other refunds. Deposits follow their
 * goods, unless the request names the line of the deposit. Coupon lines are left out, because a coupon is a part of
 * what was paid for the goods. Throws 400, 404 or 409 if the purchase has no such pieces.
 */
export async function choosePieces(
  call: Call,
  { purchase, lines }: WholePurchase,
  gone: ReadonlyMap<string, Pieces>,
  wanted: readonly WantedPieces[],
): Promise<Pieces[]> {
  const { db } = call
  const rights = await rightsOfPurchase(db, purchase.purchase_id, 'release')
  const units = await readUnits(db, purchase.purchase_id)
  const known: Known = {
    purchase,
    units,
    unitOf: new Map(units.flatMap((unit) => (unit.bound === 1 && unit.item_id !== null ? [[unit.item_id, unit]] : []))),
    rights: new Map(rights.map((right) => [keyOf(right), right])),
    itemOf: await itemsWith(db, purchase.tenant, wanted),
  }
  const chosen = new Map<string, Pieces>()
  for (const [i, wish] of wanted.entries()) {
    const line = lines.find(({ line_id: lineId }) => lineId === wish.itemLineId)
    if (!line)
      throw notFound('line of this purchase', { path: `lines[${i}].itemLineId`, fix: 'fetchPurchase lists the lines' })
    if (chosen.has(line.line_id)) throw invalid(`lines[${i}]`, 'names the same line again', 'repeated')
    if (isCoupon(line)) continue
    chosen.set(line.line_id, piecesOfLine(line, gone.get(line.line_id), known, wish, `lines[${i}].`))
  }
  if (chosen.size === 0)
    throw invalid(
      'lines',
      'names only coupons, or goods that came back with the sale: name the goods that were returned',
    )
  for (const deposit of lines.filter(({ deposit_of: goods }) => goods !== null)) {
    const goods = chosen.get(deposit.deposit_of ?? '')
    const left = piecesLeft(soldPieces(deposit), gone.get(deposit.line_id)?.quantity)
    if (!goods || left === 0 || chosen.has(deposit.line_id)) continue
    const quantity = Math.min(goods.quantity, left)
    chosen.set(deposit.line_id, { itemLineId: deposit.line_id, quantity, unitNos: [] })
  }
  return [...chosen.values()].sort((a, b) => (a.itemLineId < b.itemLineId ? -1 : 1))
}

function piecesOfLine(
  line: Row<'purchase_line'>,
  gone: Pieces | undefined,
  known: Known,
  wish: WantedPieces,
  path: string,
): Pieces {
  const left = piecesLeft(soldPieces(line), gone?.quantity)
  const back = new Set(gone?.unitNos)
  const free = known.units.filter((unit) => unit.line_id === line.line_id && !back.has(unit.unit_no))
  const named = namedUnits(line, free, known, wish, path)
  const count = wish.quantity ?? (named.length > 0 ? named.length : left)
  if (count < named.length) throw invalid(`${path}quantity`, 'is less than the number of tags', 'too_many_items')
  if (left === 0 || piecesLeft(left, count) < 0)
    throw precondition(
      'already_refunded',
      left === 0 ? 'one of these lines was already refunded' : `only ${left} of "${line.name}" are left to refund`,
      { allowedNext: [] },
    )
  const isNamed = new Set(named)
  const others = free.filter((unit) => !isNamed.has(unit)).sort((a, b) => rankOf(a, known) - rankOf(b, known))
  // Pieces of goods without tags have no unit. They come back before those with a known tag.
  const withoutUnit = Math.max(0, left - free.length)
  const first = others.filter((unit) => rankOf(unit, known) < TAG_IS_OFF).length
  const due = Math.ceil(count) - named.length
  const chosen = others.slice(0, Math.max(Math.min(due, first), Math.ceil(due - withoutUnit)))
  if (chosen.length < others.length && chosen.some((unit) => rankOf(unit, known) === TAG_IS_ON))
    throw invalid(
      path.slice(0, -1),
      'these pieces have different tags: name those that came back in epcs, tagUids or tagIds',
      'tags_missing',
    )
  const unitNos = [...named, ...chosen].map((unit) => unit.unit_no).sort((a, b) => a - b)
  return { itemLineId: line.line_id, quantity: count, unitNos }
}

const TAG_IS_OFF = 2
const TAG_IS_ON = 3

/**
 * Order in which pieces come back if the request names no tags: first those that staff or a failed refund already
 * returned, then those of which no tag is known, so that no right outlives its goods, then those whose tag was taken
 * off. Pieces whose known tag is still on them can be distinguished, so the request must name them.
 */
function rankOf(unit: Row<'purchase_unit'>, { rights }: Known): number {
  const right = rights.get(keyOf(unit))
  if (right && right.returned_by !== null) return 0
  if (right?.state === 'used' && right.outcome === 'confirmed') return TAG_IS_OFF
  return unit.bound === 1 ? TAG_IS_ON : 1
}

/**
 * The pieces with these tags. A tag that no piece of the purchase is bound to, on goods of this product, stands for a
 * piece of which no tag is known.
 */
function namedUnits(
  line: Row<'purchase_line'>,
  free: readonly Row<'purchase_unit'>[],
  known: Known,
  wish: WantedPieces,
  path: string,
): Row<'purchase_unit'>[] {
  const units: Row<'purchase_unit'>[] = []
  const items = new Set<string>()
  const isFree = new Set(free)
  const unknown = free.filter((unit) => rankOf(unit, known) === 1).values()
  const { store_id: storeId } = known.purchase
  for (const { path: where, identifiers } of tagsIn(wish, path)) {
    const item = known.itemOf(identifiers)
    if (item?.store_id !== storeId) throw invalid(where, ITEM_UNKNOWN, 'item_unknown')
    if (items.has(item.item_id)) continue
    items.add(item.item_id)
    const own = known.unitOf.get(item.item_id)
    const isOfLine = own?.line_id === line.line_id
    if (isOfLine && !isFree.has(own))
      throw precondition('already_refunded', `${where}: this piece was already refunded`, { allowedNext: [] })
    const isAlike = !own && item.product_id === line.product_id && item.item_status === 'sellable'
    const unit = isOfLine ? own : isAlike ? unknown.next().value : undefined
    if (!unit)
      throw invalid(where, 'is not a piece of this line: name a tag of these goods, or send `quantity` without tags')
    units.push(unit)
  }
  return units
}

/** True if both name the same pieces. */
export function areSamePieces(a: readonly Pieces[] | undefined, b: readonly Pieces[] | undefined): boolean {
  const text = (pieces: readonly Pieces[] | undefined) => JSON.stringify(pieces && [...sumPieces(pieces).values()])
  return text(a) === text(b)
}

/**
 * Records that the provider accepted a refund, by its response or a later notification. A completed refund changes
 * reports and loyalty points. If the refund fails later, `recordRefundFailed` reverses these changes and staff must act.
 */
export async function recordRefundDone(
  call: Call,
  refundId: string,
  providerRef: string | null,
): Promise<Row<'refund'> | undefined> {
  const { db, nowMs } = call
  const refund = await findRefund(db, refundId)
  // If the refund certainly failed, the provider has already reported the failure. This report describes a later state
  // than the response to our request.
  if (
    !refund ||
    refund.state === 'done' ||
    refund.state === 'held' ||
    (refund.state === 'failed' && refund.in_doubt === DOUBT.none)
  )
    return refund
  const done = await updateRefund(db, refund, {
    state: 'done',
    in_doubt: DOUBT.none,
    due_ms: null,
    provider_ref: providerRef,
    finished_ms: nowMs,
  })
  if (!done) return refund
  call.changed(refund.purchase_id)
  const purchase = await cancelAfterLateSuccess(call, await readPurchase(call.db, refund.purchase_id), refund)
  await bookRefund(call, purchase, done)
  if (refund.kind !== 'late' && purchase.status === 'CANCELLED') await updateCancelledPurchase(call, purchase)
  emitRefunded(
    call,
    done,
    refund.payment_id === null ? undefined : (await findPayment(db, refund.payment_id))?.provider,
  )
  return findRefund(db, refundId)
}

/**
 * Returns the purchase of a completed refund. If a whole refund had failed first and the purchase was restored, cancels
 * the purchase now.
 */
async function cancelAfterLateSuccess(
  call: Call,
  purchase: Row<'purchase'>,
  refund: Row<'refund'>,
): Promise<Row<'purchase'>> {
  if (refund.kind !== 'whole' || purchase.status === 'CANCELLED') return purchase
  return updatePurchase(call.db, purchase, {
    status: 'CANCELLED',
    refund_status: 'pending',
    deny_seq: await revokePurchaseRights(call, purchase),
  })
}

/**
 * Updates a cancelled purchase after one of its refunds completed. Does nothing while other refunds of the purchase are
 * pending. The last of these refunds ends the cancellation.
 *
 * Values of `refund_status` of a cancelled purchase: `pending` if a refund is pending or an agent may still hold a
 * token; `done` if the whole amount was refunded; `failed` if some refunds of the cancellation completed and some
 * failed. If none completed and one failed, the purchase returns to SUCCESS with `failed` (`recordMissingMoney`).
 */
async function updateCancelledPurchase(call: Call, purchase: Row<'purchase'>): Promise<void> {
  const refunds = await refundsOf(call.db, purchase.purchase_id)
  if (refunds.some(isPending)) return
  if (refunds.some((refund) => refund.kind === 'whole' && refund.state === 'done')) {
    await updatePurchase(call.db, purchase, {
      refund_status: unrefundedCent(purchase, refunds) > 0 ? 'failed' : 'done',
    })
  } else if (!(await hasOpenAuthorizations(call, purchase))) await finishCancellation(call, purchase)
}

/**
 * Records that a refund failed: restores the cancelled purchase and raises an exception. `inDoubt` means that the
 * result is unknown; such a refund may only be repeated with the same refund id.
 */
export async function recordRefundFailed(
  call: Call,
  refund: Row<'refund'>,
  why: string,
  inDoubt: boolean,
): Promise<Row<'refund'> | undefined> {
  const { db, nowMs, services } = call
  const failed = await updateRefund(db, refund, {
    state: 'failed',
    in_doubt: inDoubt ? DOUBT.open : DOUBT.none,
    due_ms: null,
    finished_ms: nowMs,
  })
  if (!failed) return undefined
  call.changed(refund.purchase_id)
  const purchase = await readPurchase(call.db, refund.purchase_id)
  await unbookRefund(call, purchase, failed)
  if (refund.kind !== 'late' && purchase.status === 'CANCELLED') await recordMissingMoney(call, purchase)
  await raiseException(
    { db, tenant: refund.tenant, platform: services.platform, nowMs },
    {
      storeId: refund.store_id,
      kind: 'refund_failed',
      subject: `${refund.refund_id}/${nowMs}`,
      purchaseId: refund.purchase_id,
      detail: `${refund.amount_cent} cents were not refunded: ${why}`,
    },
  )
  return failed
}

/** Restores the purchase, unless another refund of the cancellation completed or is pending. */
export async function recordMissingMoney(call: Call, purchase: Row<'purchase'>): Promise<void> {
  const refunds = await refundsOf(call.db, purchase.purchase_id)
  if (!refunds.some((refund) => refund.kind === 'whole' && refund.state !== 'failed'))
    await restorePurchase(call, purchase)
  else await updatePurchase(call.db, purchase, { refund_status: refunds.some(isPending) ? 'pending' : 'failed' })
}

/** Applies a notification about a refund. Returns undefined if nothing changes. */
export async function applyRefundNotice(
  call: Call,
  refundId: string,
  { state, refundRef }: Pick<RefundNotice, 'state' | 'refundRef'>,
): Promise<true | undefined> {
  const refund = await findRefund(call.db, refundId)
  if (!refund || !changesRefund(refund, state)) return undefined
  if (state === 'done' && !(await mayBeBooked(call, refund))) await raiseUnclear(call, refund)
  else if (state === 'done') await recordRefundDone(call, refundId, refundRef)
  else if (refund.state === 'failed') await updateRefund(call.db, refund, { in_doubt: DOUBT.none })
  else await recordRefundFailed(call, refund, 'the provider reported the failure later', false)
  call.changed(refund.purchase_id)
  return true
}

/**
 * True if a refund that the provider paid fits into its payment. Only one that staff denied may not fit: they may have
 * refunded its amount again. What is not sent yet of that becomes smaller.
 */
async function mayBeBooked(call: Call, refund: Row<'refund'>): Promise<boolean> {
  if (refund.in_doubt !== DOUBT.deniedByStaff) return true
  const payment = refund.payment_id === null ? undefined : await findPayment(call.db, refund.payment_id)
  const all = await refundsOf(call.db, refund.purchase_id)
  if (refund.kind === 'late')
    return !all.some((other) => other.payment_id === refund.payment_id && countsAgainstTotal(other))
  return payment !== undefined && makeRoom(call, all, payment, refund.amount_cent)
}

async function raiseUnclear({ db, services, nowMs }: Call, refund: Row<'refund'>): Promise<void> {
  await raiseException(
    { db, tenant: refund.tenant, platform: services.platform, nowMs },
    {
      storeId: refund.store_id,
      kind: 'refund_unclear',
      subject: refund.refund_id,
      purchaseId: refund.purchase_id,
      detail: `the provider paid ${refund.amount_cent} cents for ${refund.refund_id}, which staff reported as not paid, and they were refunded again`,
    },
  )
}

/** True if this state would change the refund. */
export function changesRefund(refund: Row<'refund'>, state: RefundNotice['state']): boolean {
  if (refund.state === 'held' || state === 'open') return false
  const isOpen = refund.state === 'failed' && refund.in_doubt !== DOUBT.none
  if (state === 'done') return refund.state === 'due' || isOpen
  return refund.state !== 'failed' || isOpen
}
