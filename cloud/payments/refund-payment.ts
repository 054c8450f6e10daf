import { z } from 'zod'
import { invalid, notFound, precondition } from '../foundation/failure.ts'
import { centsOf, Euros, eurosOf, Id, Success, text } from '../operations/fields.ts'
import { operation, type Call } from '../operations/operation.ts'
import type { RefundRow } from '../persistence/tables/payments.ts'
import type { PurchaseRow } from '../persistence/tables/purchases.ts'
import { assertOperator } from '../protection/operators/store-operator.ts'
import { cancelPurchase } from '../purchase-lifecycle/cancel-purchase.ts'
import { depositsOn } from '../purchases/deposit.ts'
import { purchaseOfCaller, purchaseIdOf } from '../purchases/purchase-of-caller.ts'
import { toPurchase, type WholePurchase } from '../purchases/present.ts'
import { Purchase } from '../purchases/schema.ts'
import { findRefund } from './queries.ts'
import { appliedPaymentOf, refundsOf } from '../purchases/refund-queries.ts'
import {
  countsAgainstTotal,
  insertRefund,
  isPending,
  retryMissingRefund,
  releaseHeldRefunds,
  refundableCent,
  returnedLines,
  retryRefundInDoubt,
} from '../purchases/refunds.ts'
import { returnItems } from './return-items.ts'
import { emitRefunded, REFUND_EVENTS } from '../purchase-lifecycle/emit-refunded.ts'
import { runnerOf } from './runner.ts'
import { sendRefund } from './send-refund.ts'
import { bookRefund } from '../purchase-lifecycle/book-refund.ts'
import { finishCancellation } from '../purchase-lifecycle/finish-cancellation.ts'
import { rolesFrom } from '../foundation/roles.ts'

const LINES_LIMIT = 500

const Request = z.strictObject({
  purchaseId: Id.optional(),
  transactionId: Id.optional(),
  id: Id.optional(),
  amount: Euros.refine((euros) => euros > 0, 'must be over 0')
    .optional()
    .describe('EUR. With `itemLineIds`: instead of the price of those lines.'),
  itemLineIds: z.array(Id).min(1).max(LINES_LIMIT).optional().describe('Lines whose items were returned.'),
  reason: text(300).optional().describe('An internal note.'),
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
    'A request with neither `amount` nor `itemLineIds` refunds the whole payment, like `markPurchaseCancelled`. ' +
    'This refund waits until no device can release anything for the purchase, unless staff confirm ' +
    '(`confirmedBy`). With `itemLineIds`, those items become `returned` and their rights end, but the purchase ' +
    'remains valid. With `amount` alone, items and rights do not change. If the provider does not accept a refund ' +
    'at once, the cloud repeats it for hours (`pending`). Repeating a `failed` refund tries again and never pays ' +
    'twice. For a CANCELLED purchase, any call refunds the missing amount.',
  refusals: ['purchase_not_refundable', 'already_refunded', 'refund_too_high', 'purchase_not_cancellable'],
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
        itemLineIds: z.array(z.string()).optional(),
      })
      .optional(),
  }),
  example: {
    purchaseId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B',
    itemLineIds: ['lin_01KANX6Y7C3V9Q2M8R5T4W6Z1B'],
    reason: 'wrong size',
  },
  emits: [...REFUND_EVENTS, 'securityTag.deactivated'],
  async steps(work, input) {
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

function presentRefund(refund: RefundRow) {
  const status: 'pending' | 'done' | 'failed' =
    refund.state === 'held' || refund.state === 'due' ? 'pending' : refund.state
  const lines = refund.line_ids === null ? {} : { itemLineIds: JSON.parse(refund.line_ids) as string[] }
  return {
    refundId: refund.refund_id,
    amount: eurosOf(refund.amount_cent),
    currency: refund.currency,
    status,
    ...lines,
  }
}

/** Creates the refund that a request describes; undefined if no provider has to pay it. */
async function beginRefund(
  call: Call,
  whole: WholePurchase,
  input: z.output<typeof Request>,
): Promise<RefundRow | undefined> {
  const { purchase } = whole
  const isPart = input.amount !== undefined || input.itemLineIds !== undefined
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
async function releaseConfirmedRefunds(call: Call, purchase: PurchaseRow): Promise<'done' | 'to_send' | 'nothing'> {
  if (purchase.refund_status !== 'pending') return 'nothing'
  const state = await releaseHeldRefunds(call, purchase)
  if (state !== 'none') return 'to_send'
  await finishCancellation(call, purchase)
  return 'done'
}

async function cancelPurchaseOnce(call: Call, { purchase }: WholePurchase, reason: string | undefined) {
  if (purchase.status !== 'SUCCESS') {
    const how = purchase.status === 'UNLOADED' ? '; its goods have left: send itemLineIds or an amount' : ''
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
async function refundAgain(call: Call, { purchase }: WholePurchase, refunds: readonly RefundRow[]): Promise<RefundRow> {
  const failed = refunds.find(
    (refund) => refund.kind === 'late' && refund.state === 'failed' && !isRepeated(refund, refunds),
  )
  if (failed?.in_doubt === 1) return (await retryRefundInDoubt(call, failed, 'due')) ?? failed
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
      lineIds: null,
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
 * a repetition only if this refund certainly failed (`in_doubt` is 0).
 */
function isRepeated(refund: RefundRow, refunds: readonly RefundRow[]): boolean {
  const others = refunds.filter(
    (other) => other.refund_id !== refund.refund_id && other.payment_id === refund.payment_id && other.kind === 'late',
  )
  return others.some((other) => (refund.in_doubt === 1 ? other.state !== 'failed' : countsAgainstTotal(other)))
}

async function refundPart(
  call: Call,
  { purchase, lines }: WholePurchase,
  refunds: readonly RefundRow[],
  input: z.output<typeof Request>,
): Promise<RefundRow> {
  if (purchase.status !== 'SUCCESS' && purchase.status !== 'UNLOADED') {
    throw precondition('purchase_not_refundable', `a purchase that is ${purchase.status} cannot be refunded`, {
      allowedNext: [],
    })
  }
  const lineIds = input.itemLineIds && linesToRefund(lines, refunds, [...new Set(input.itemLineIds)])
  const named = lineIds?.map((lineId) => lines.find((line) => line.line_id === lineId) ?? notFoundLine())
  const costCent = named?.reduce((sum, line) => sum + line.price_cent * line.quantity, 0)
  const amountCent = input.amount === undefined ? (costCent ?? 0) : centsOf(input.amount)
  if (costCent !== undefined && amountCent > costCent)
    throw invalid('amount', `is more than the price of these lines: ${eurosOf(costCent)} EUR`)
  const inDoubt = refunds.find(
    (refund) =>
      refund.kind === 'part' &&
      refund.state === 'failed' &&
      refund.in_doubt === 1 &&
      refund.amount_cent === amountCent &&
      refund.line_ids === (lineIds ? JSON.stringify(lineIds) : null),
  )
  if (inDoubt) return (await retryRefundInDoubt(call, inDoubt, 'due')) ?? inDoubt
  const returned = returnedLines(refunds)
  if (lineIds?.some((lineId) => returned.has(lineId)))
    throw precondition('already_refunded', 'one of these lines was already refunded', { allowedNext: [] })
  const leftCent = refundableCent(purchase, refunds)
  if (amountCent > leftCent)
    throw precondition('refund_too_high', `only ${eurosOf(leftCent)} EUR are left to refund`, { allowedNext: [] })
  const payment = await appliedPaymentOf(call.db, purchase.purchase_id)
  // In the sandbox and for free purchases no provider was paid.
  const isSent = payment !== undefined && amountCent > 0
  const refund = await insertRefund(call, {
    purchase,
    payment: payment ?? null,
    kind: 'part',
    amountCent,
    state: isSent ? 'due' : 'done',
    lineIds: lineIds ?? null,
    reason: input.reason,
  })
  if (lineIds) await returnItems(call, purchase, new Set(lineIds), refund.refund_id)
  if (isSent) return refund
  await bookRefund(call, purchase, refund)
  emitRefunded(call, refund, payment?.provider)
  return refund
}

/** Returns the named lines, and their deposit lines that no earlier refund included. */
function linesToRefund(
  lines: WholePurchase['lines'],
  refunds: readonly RefundRow[],
  named: readonly string[],
): string[] {
  const gone = returnedLines(refunds.filter((refund) => refund.state !== 'failed'))
  const deposits = depositsOn(named, lines).filter((lineId) => !gone.has(lineId))
  return [...new Set([...named, ...deposits])].sort()
}

function notFoundLine(): never {
  throw notFound('line of this purchase')
}
