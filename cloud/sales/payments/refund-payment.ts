import { z } from 'zod'
import { assert } from '../../../policy/assert.ts'
import { Failure, invalid, notFound, precondition } from '../../platform/foundation/failure.ts'
import { centsOf, Euros, eurosOf, Id, Success, lines, text } from '../../platform/operations/fields.ts'
import { operation, type Call, type StepContext } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { assertOperator } from '../../protection/operators/store-keys.ts'
import { cancelPurchase, finishCancellation } from '../checkout/cancel-purchase.ts'
import { piecesLeft } from '../../../policy/decimals.ts'
import {
  isCoupon,
  paidByLine,
  soldPieces,
  amountsOfPieces,
  piecesOf,
  toReturnedLines,
  type Pieces,
} from '../../shop/purchases/line-value.ts'
import { purchaseOfCaller, purchaseIdOf, boundItemsOf, readLines, readUnits } from '../../shop/purchases/queries.ts'
import { toPurchase, type WholePurchase } from '../../shop/purchases/present.ts'
import { Identifiers, Purchase, QUANTITY_LIMIT, ReturnedLine } from '../../shop/purchases/schema.ts'
import { findRefund, runnerOf } from './queries.ts'
import { appliedPaymentOf, refundsOf, updateRefund } from '../../shop/purchases/refund-queries.ts'
import {
  countsAgainstTotal,
  DOUBT,
  assertFewRefunds,
  insertRefund,
  isPending,
  retryMissingRefund,
  releaseHeldRefunds,
  refundableCent,
  returnedPieces,
  retryRefundInDoubt,
} from '../../shop/purchases/refunds.ts'
import { areSamePieces, choosePieces } from './refund-outcome.ts'
import { emitRefunded, REFUND_EVENTS, bookRefund, unbookRefund } from '../checkout/book-refund.ts'
import { assertNotOfTill } from './process-payment.ts'
import { learnRefunds, sendRefund } from './send-refund.ts'
import { rolesFrom } from '../../platform/foundation/caller.ts'
import type { MovedBy } from '../../protection/items/item-moves.ts'
import { readItems, updateStatuses } from '../../protection/items/item-queries.ts'
import { notifyGates } from '../../protection/items/item-sequence.ts'
import { isItemOf, passUnitOf, returnUnits } from '../../protection/leases/leases.ts'

/** Marks the items of these pieces as `returned` and ends their release rights (ADR sales). Returns these items. */
export async function returnItems(
  call: Call,
  purchase: Row<'purchase'>,
  pieces: readonly Pieces[],
  refundId: string,
  by?: MovedBy,
): Promise<Row<'protected_item'>[]> {
  const { db, nowMs } = call
  const returned: Row<'protected_item'>[] = []
  const named = new Set(pieces.flatMap(({ itemLineId, unitNos }) => unitNos.map((unitNo) => `${itemLineId}/${unitNo}`)))
  const units = (await readUnits(db, purchase.purchase_id)).filter((unit) =>
    named.has(`${unit.line_id}/${unit.unit_no}`),
  )
  const gone = (await areAllBack(call, purchase)) ? [passUnitOf(purchase)] : []
  await returnUnits(call, purchase, [...units, ...gone], refundId)
  const items = await readItems(db, boundItemsOf(units))
  for (const unit of units) {
    const item = unit.bound === 0 ? undefined : items.get(unit.item_id ?? '')
    const isHere = item?.item_status === 'paid' || item?.item_status === 'picked_up'
    if (item && isHere && isItemOf(item, unit)) returned.push(item)
  }
  const change = { item_status: 'returned' }
  const changed = await updateStatuses(
    db,
    returned.map((item) => ({ item, change })),
    nowMs,
    by,
  )
  notifyGates(call, purchase.store_id)
  return returned.flatMap((item) => changed.get(item.item_id) ?? [])
}

/** True if all goods of a purchase came back: its receipt opens no barrier any more. */
async function areAllBack({ db }: Call, { purchase_id: purchaseId }: Row<'purchase'>): Promise<boolean> {
  const gone = returnedPieces(await refundsOf(db, purchaseId))
  const lines = await readLines(db, purchaseId)
  return lines.every((line) => isCoupon(line) || piecesLeft(soldPieces(line), gone.get(line.line_id)?.quantity) <= 0)
}

const LINES_LIMIT = 500

const Request = z.strictObject({
  purchaseId: Id.optional(),
  transactionId: Id.optional(),
  id: Id.optional(),
  amount: Euros.refine((euros) => euros > 0, 'must be over 0')
    .optional()
    .describe('EUR. With `lines` it must be the amount that untag computes; you may omit it.'),
  lines: z
    .array(
      z.strictObject({
        itemLineId: Id,
        quantity: z
          .int()
          .min(1)
          .max(QUANTITY_LIMIT)
          .optional()
          .describe('Default: the number of named tags, or all pieces of the line that are left.'),
        epcs: Identifiers,
        tagUids: Identifiers,
        tagIds: Identifiers,
      }),
    )
    .min(1)
    .max(LINES_LIMIT)
    .optional()
    .describe('Goods that came back. Deposits follow their goods, unless you name their lines.'),
  refundId: Id.optional().describe(
    'An earlier refund without goods: those in `lines` become its goods, and no money moves. Or the refund of `notPaid`.',
  ),
  notPaid: z
    .literal(true)
    .optional()
    .describe(
      'Staff searched for the refund `refundId`, which is `inDoubt`, at the provider, and the provider did not pay it. ' +
        'No money moves. The next call may then refund its amount again.',
    ),
  reason: lines(300).optional().describe('An internal note.'),
  confirmedBy: text(128)
    .optional()
    .describe(
      'Staff member who has the goods in hand, or saw that the tag is still on them. The whole amount is refunded ' +
        'now, without waiting for open authorizations and offline agents.',
    ),
})

export const refundPayment = operation({
  name: 'refundPayment',
  area: 'payments',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Refunds a payment, in whole or in part.',
  description:
    'A request with neither `lines` nor `amount` refunds the whole payment, like `markPurchaseCancelled`. ' +
    'This refund waits until no device can release anything for the purchase, unless staff confirm ' +
    '(`confirmedBy`). With `lines`, those pieces become `returned`, their rights end, and what was paid for them is ' +
    'refunded; the other pieces stay paid. With `amount` alone, items and rights do not change. If the provider does not accept a refund ' +
    'at once, the cloud repeats it for hours (`pending`). Repeating a `failed` refund tries again and never pays ' +
    'twice: if the provider may have paid it and cannot tell, it stays `inDoubt` until staff send `notPaid`. For a CANCELLED purchase, any call refunds the missing amount.',
  refusals: [
    'sold_at_a_till',
    'purchase_not_refundable',
    'already_refunded',
    'refund_too_high',
    'refund_not_in_doubt',
    'purchase_not_cancellable',
    'too_many_refunds',
  ],
  changes: true,
  request: Request,
  response: Purchase.extend({
    ...Success,
    refund: z
      .strictObject({
        refundId: z.string(),
        amount: z.number(),
        currency: z.string(),
        status: z.enum(['pending', 'done', 'failed']),
        lines: z.array(ReturnedLine).optional(),
      })
      .optional(),
  }),
  example: {
    purchaseId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    lines: [{ itemLineId: 'lin_01KANX6Y7C3V9Q2M8R5T4W6Z1B', quantity: 1 }],
    reason: 'wrong size',
  },
  emits: [...REFUND_EVENTS, 'securityTag.deactivated'],
  async steps(work, input) {
    if (input.notPaid === true && input.refundId !== undefined) await askProvider(work, input)
    const { purchaseId, refundId } = await work.once(async (call) => {
      const whole = await purchaseOfCaller(call, purchaseIdOf(input))
      call.changed(whole.purchase.purchase_id)
      const refund = await beginRefund(call, whole, input)
      return { purchaseId: whole.purchase.purchase_id, refundId: refund?.refund_id ?? null }
    })
    if (refundId !== null) await sendRefund(runnerOf(work), refundId)
    return work.read(async (call) => {
      const refund = refundId === null ? undefined : await findRefund(call.db, refundId)
      return {
        success: true as const,
        ...toPurchase(await purchaseOfCaller(call, purchaseId), call),
        ...(refund && { refund: presentRefund(refund) }),
      }
    })
  },
})

/** Reads the provider's list before staff say that it did not pay: its list counts more. */
async function askProvider(work: StepContext, input: z.output<typeof Request>): Promise<void> {
  const refund = await work.read(async (call) => {
    const { purchase } = await purchaseOfCaller(call, purchaseIdOf(input))
    return (await refundsOf(call.db, purchase.purchase_id)).find((each) => each.refund_id === input.refundId)
  })
  if (refund?.state !== 'failed' || refund.in_doubt !== DOUBT.open) return
  const fault = await learnRefunds(runnerOf(work), refund)
  if (fault && !fault.isFinal)
    throw new Failure('unavailable', `the provider's list of refunds cannot be read: ${fault.message}`, {
      retryAfter: 60,
    })
}

function presentRefund(refund: Row<'refund'>) {
  const status: 'pending' | 'done' | 'failed' =
    refund.state === 'held' || refund.state === 'due' ? 'pending' : refund.state
  return {
    refundId: refund.refund_id,
    amount: eurosOf(refund.amount_cent),
    currency: refund.currency,
    status,
    ...(refund.lines !== null && { lines: toReturnedLines(refund) }),
  }
}

/** Creates the refund that a request describes; undefined if no provider has to pay it. */
async function beginRefund(
  call: Call,
  whole: WholePurchase,
  input: z.output<typeof Request>,
): Promise<Row<'refund'> | undefined> {
  const { purchase } = whole
  assertNotOfTill(purchase)
  const isPart = input.amount !== undefined || input.lines !== undefined
  if (input.notPaid === true) return settleAsUnpaid(call, await refundsOf(call.db, purchase.purchase_id), input)
  if (input.refundId !== undefined) return nameGoods(call, whole, await refundsOf(call.db, purchase.purchase_id), input)
  if (input.confirmedBy !== undefined) {
    if (isPart) throw invalid('confirmedBy', 'applies only to a whole refund: partial refunds do not wait')
    await assertOperator(call, input.confirmedBy, purchase.store_id)
  }
  if (purchase.status === 'CANCELLED') {
    const isDone = input.confirmedBy !== undefined && (await releaseConfirmedRefunds(call, purchase)) === 'done'
    return isDone ? undefined : refundAgain(call, whole, await refundsOf(call.db, purchase.purchase_id))
  }
  if (isPart) return refundPart(call, whole, await refundsOf(call.db, purchase.purchase_id), input)
  const cancelled = await cancelPurchaseOnce(call, whole, input.reason)
  if (input.confirmedBy !== undefined) await releaseConfirmedRefunds(call, cancelled)
  const refunds = await refundsOf(call.db, purchase.purchase_id)
  return (
    refunds.findLast((row) => row.kind === 'whole' && row.state !== 'failed' && row.amount_cent > 0) ??
    refunds.findLast(isPending)
  )
}

/**
 * Releases held refunds after staff confirmed that they have the goods. Returns `done` if no provider has to pay
 * anything and nothing is pending.
 */
async function releaseConfirmedRefunds(call: Call, purchase: Row<'purchase'>): Promise<'done' | 'to_send' | 'nothing'> {
  if (purchase.refund_status !== 'pending') return 'nothing'
  const state = await releaseHeldRefunds(call, purchase)
  if (state !== 'none') return 'to_send'
  await finishCancellation(call, purchase)
  return 'done'
}

async function cancelPurchaseOnce(call: Call, { purchase }: WholePurchase, reason: string | undefined) {
  if (purchase.status !== 'SUCCESS') {
    const how = purchase.status === 'UNLOADED' ? '; its goods have left: send lines or an amount' : ''
    throw precondition(
      'purchase_not_refundable',
      `a purchase that is ${purchase.status} cannot be refunded as a whole${how}`,
      { allowedNext: [] },
    )
  }
  return cancelPurchase(call, purchase, reason)
}

/**
 * Repeats a failed refund of a cancelled purchase, or returns a pending refund. Also handles refunds of late payments.
 */
async function refundAgain(
  call: Call,
  { purchase }: WholePurchase,
  refunds: readonly Row<'refund'>[],
): Promise<Row<'refund'>> {
  const failed = refunds.find(
    (refund) => refund.kind === 'late' && refund.state === 'failed' && !isRepeated(refund, refunds),
  )
  if (failed?.in_doubt === DOUBT.open) return (await retryRefundInDoubt(call, failed, 'due')) ?? failed
  if (failed) {
    const payment = await call.db
      .selectFrom('payment')
      .selectAll()
      .where('payment_id', '=', failed.payment_id)
      .executeTakeFirstOrThrow()
    return insertRefund(call, {
      purchase,
      payment,
      kind: 'late',
      amountCent: failed.amount_cent,
      state: 'due',
      lines: null,
      reason: failed.reason ?? undefined,
    })
  }
  await retryMissingRefund(call, purchase)
  const last = (await refundsOf(call.db, purchase.purchase_id)).findLast(
    (refund) => refund.state === 'held' || refund.state === 'due',
  )
  if (last) return last
  throw precondition('already_refunded', 'nothing of this purchase is left to refund', { allowedNext: [] })
}

/**
 * True if another refund already repeats this refund of a late payment. Another refund with an unknown result counts as
 * a repetition only if this refund is not in doubt.
 */
function isRepeated(refund: Row<'refund'>, refunds: readonly Row<'refund'>[]): boolean {
  const others = refunds.filter(
    (other) => other.refund_id !== refund.refund_id && other.payment_id === refund.payment_id && other.kind === 'late',
  )
  return others.some((other) => (refund.in_doubt === DOUBT.open ? other.state !== 'failed' : countsAgainstTotal(other)))
}

function notRefundable({ status }: Row<'purchase'>): Failure {
  return precondition('purchase_not_refundable', `a purchase that is ${status} cannot be refunded`, {
    allowedNext: [],
  })
}

/** What a partial refund returns and pays. */
interface Part {
  pieces: Pieces[] | undefined
  amountCent: number
}

async function refundPart(
  call: Call,
  whole: WholePurchase,
  refunds: readonly Row<'refund'>[],
  input: z.output<typeof Request>,
): Promise<Row<'refund'>> {
  const { purchase } = whole
  if (purchase.status !== 'SUCCESS' && purchase.status !== 'UNLOADED') throw notRefundable(purchase)
  for (const refund of refunds.filter(({ kind, state, in_doubt: inDoubt }) => {
    return kind === 'part' && state === 'failed' && inDoubt === DOUBT.open
  })) {
    const others = refunds.filter((other) => other !== refund)
    const { pieces, amountCent } = await partOf(call, whole, others, input)
    if (
      amountCent === refund.amount_cent &&
      areSamePieces(pieces, refund.lines === null ? undefined : piecesOf(refund))
    )
      return (await retryRefundInDoubt(call, refund, 'due')) ?? refund
  }
  assertFewRefunds(refunds)
  const { pieces, amountCent } = await partOf(call, whole, refunds, input)
  const payment = await appliedPaymentOf(call.db, purchase.purchase_id)
  // In the sandbox and for free purchases no provider was paid.
  const isSent = payment !== undefined && amountCent > 0
  const refund = await insertRefund(call, {
    purchase,
    payment: payment ?? null,
    kind: 'part',
    amountCent,
    state: isSent ? 'due' : 'done',
    lines: pieces ?? null,
    reason: input.reason,
  })
  if (pieces) await returnItems(call, purchase, pieces, refund.refund_id)
  if (isSent) return refund
  await bookRefund(call, purchase, refund)
  emitRefunded(call, refund, payment?.provider)
  return refund
}

/**
 * Pieces and amount of a request, if these are the other refunds of the purchase. Pieces are refunded at what was paid
 * for them, and at most at what is left of the purchase.
 */
async function partOf(
  call: Call,
  whole: WholePurchase,
  others: readonly Row<'refund'>[],
  { lines: wanted, amount }: z.output<typeof Request>,
): Promise<Part> {
  const leftCent = refundableCent(whole.purchase, others)
  const askedCent = amount === undefined ? undefined : centsOf(amount)
  if (!wanted) {
    if ((askedCent ?? 0) > leftCent)
      throw precondition('refund_too_high', `only ${eurosOf(leftCent)} EUR are left to refund`, { allowedNext: [] })
    return { pieces: undefined, amountCent: askedCent ?? 0 }
  }
  const gone = returnedPieces(others)
  const pieces = await choosePieces(call, whole, gone, wanted)
  const amounts = amountsOfPieces(pieces, whole.lines, paidByLine(whole.lines), gone)
  const amountCent = Math.min(
    leftCent,
    amounts.reduce((sum, { cent }) => sum + cent, 0),
  )
  if (askedCent !== undefined && askedCent !== amountCent)
    throw invalid('amount', `differs from what is refunded for these pieces: ${eurosOf(amountCent)} EUR`)
  return { pieces, amountCent }
}

/** Ends the doubt about a failed refund after staff saw that the provider did not pay it. */
async function settleAsUnpaid(
  call: Call,
  refunds: readonly Row<'refund'>[],
  { refundId, lines: goods, amount, confirmedBy }: z.output<typeof Request>,
): Promise<Row<'refund'>> {
  if (refundId === undefined || goods || amount !== undefined || confirmedBy !== undefined)
    throw invalid('notPaid', 'goes with the refundId of a refund in doubt, and with nothing else')
  const refund = refunds.find((each) => each.refund_id === refundId)
  if (!refund) throw notFound('refund of this purchase')
  const settled =
    refund.state === 'failed' && refund.in_doubt === DOUBT.open
      ? await updateRefund(call.db, refund, { in_doubt: DOUBT.deniedByStaff })
      : undefined
  if (settled) return settled
  throw precondition('refund_not_in_doubt', 'this refund is not in doubt, or its result arrived meanwhile', {
    allowedNext: [],
  })
}

/**
 * Names the goods of an earlier refund that names none, such as a refund of an amount: they become `returned`, and no
 * money moves. The reports then count them.
 */
async function nameGoods(
  call: Call,
  whole: WholePurchase,
  refunds: readonly Row<'refund'>[],
  { refundId, lines: wanted, amount }: z.output<typeof Request>,
): Promise<Row<'refund'>> {
  const { purchase } = whole
  if (purchase.status !== 'SUCCESS' && purchase.status !== 'UNLOADED') throw notRefundable(purchase)
  if (!wanted || amount !== undefined)
    throw invalid('refundId', 'names the refund of the goods in `lines`; its amount does not change')
  const refund = refunds.find((each) => each.refund_id === refundId)
  if (!refund) throw notFound('refund of this purchase')
  if (refund.kind === 'whole' || refund.kind === 'late' || refund.lines !== null || !countsAgainstTotal(refund))
    throw precondition('already_refunded', 'this refund failed, or its goods are known', { allowedNext: [] })
  const pieces = await choosePieces(call, whole, returnedPieces(refunds), wanted)
  const isBooked = refund.counted !== null
  if (isBooked) await unbookRefund(call, purchase, refund)
  const named = await updateRefund(call.db, refund, { lines: JSON.stringify(pieces), counted: null })
  assert(named, `refund ${refund.refund_id} changed meanwhile`)
  await returnItems(call, purchase, pieces, refund.refund_id)
  if (isBooked) await bookRefund(call, purchase, named)
  return named
}
