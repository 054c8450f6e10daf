import { z } from 'zod'
import { staffOf, rolesFrom } from '../../platform/foundation/caller.ts'
import { Id, Success, text } from '../../platform/operations/fields.ts'
import { operation } from '../../platform/operations/operation.ts'
import { settleApproval } from './approval.ts'
import { beginPayment, emitTestPayment, openPayment } from '../payments/open-payment.ts'
import { runnerOf } from '../payments/queries.ts'
import { COMPLETION_EVENTS, completePurchase } from './complete-purchase.ts'
import { assertForSale } from './book-refund.ts'
import { purchaseOfCaller, purchaseIdOf } from '../../shop/purchases/queries.ts'
import { isTest, toPurchase } from '../../shop/purchases/present.ts'
import { Purchase } from '../../shop/purchases/schema.ts'

export const approveCheckout = operation({
  name: 'approveCheckout',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: rolesFrom('associate'),
  summary: 'Records that staff checked a basket that awaits approval, and whether it may be paid.',
  description:
    'Baskets with age-restricted goods, and baskets that a spot check selects (`spotCheckRate` of the ' +
    'protection policy), stay CREATED with `awaitingApproval: true` until staff approve them. After a spot ' +
    'check selects a session, or a shopper by `userId`, all their checkouts await approval until staff approve ' +
    'one.',
  refusals: ['not_awaiting_approval', 'psp_not_configured', 'checkout_ended', 'item_already_paid', 'recalled'],
  emits: ['payment.created', ...COMPLETION_EVENTS],
  changes: true,
  request: z.strictObject({
    transactionId: Id.optional(),
    purchaseId: Id.optional(),
    id: Id.optional(),
    operatorId: text(128)
      .optional()
      .describe(
        'Who checked the basket, as stated by the caller; a signed-in user may omit it and is then recorded. Returns ' +
          '404 for an operator who was removed or belongs to another store.',
      ),
    approved: z.boolean().optional().describe('Default true; false cancels the purchase.'),
  }),
  response: Purchase.extend(Success),
  example: { transactionId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B', operatorId: 'op_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async steps(work, input) {
    const { purchaseId, paymentId } = await work.once(async (call) => {
      const staff = staffOf(call.caller, input.operatorId)
      const { purchase, store } = await purchaseOfCaller(call, purchaseIdOf(input))
      const approved = await settleApproval(call, purchase, staff, input.approved ?? true)
      if (approved.status !== 'CANCELLED') await assertForSale(call.db, purchase)
      call.changed(purchase.purchase_id)
      if (isTest(approved.tenant)) emitTestPayment(call, approved)
      const isToPay = approved.status === 'CREATED' && !isTest(approved.tenant)
      if (isToPay && approved.total_cent === 0) await completePurchase(call, approved, store)
      const payment = isToPay && approved.total_cent > 0 ? await beginPayment(call, approved) : undefined
      return { purchaseId: approved.purchase_id, paymentId: payment?.payment_id ?? null }
    })
    if (paymentId !== null) await openPayment(runnerOf(work), paymentId)
    return work.read(async (call) => ({
      success: true as const,
      ...toPurchase(await purchaseOfCaller(call, purchaseId), call),
    }))
  },
})
