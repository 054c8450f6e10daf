import { z } from 'zod'
import { Id, Success, text } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import { decideApproval } from '../purchase-lifecycle/approval.ts'
import { beginPayment, emitTestPayment, openPayment } from '../payments/open-payment.ts'
import { runnerOf } from '../payments/runner.ts'
import { COMPLETION_EVENTS, completePurchase } from '../purchase-lifecycle/complete-purchase.ts'
import { purchaseOfCaller, purchaseIdOf } from '../purchases/purchase-of-caller.ts'
import { isTest, toPurchase } from '../purchases/present.ts'
import { Purchase } from '../purchases/schema.ts'

export const approveCheckout = operation({
  name: 'approveCheckout',
  area: 'scan and go',
  minimumPackage: 'GROW',
  summary: 'Staff have looked at a basket that awaits approval: it may be paid, or not.',
  description:
    'Baskets with age-restricted goods, and those that a spot check picks (`spotCheckRate` of the protection policy), are CREATED with `awaitingApproval: true` until then. A spot check that has picked a session, or a shopper by `userId`, stays due through every checkout after it until staff approve one.',
  refusals: ['not_awaiting_approval', 'psp_not_configured', 'checkout_ended'],
  emits: ['payment.created', ...COMPLETION_EVENTS],
  changes: true,
  request: z.strictObject({
    transactionId: Id.optional(),
    purchaseId: Id.optional(),
    id: Id.optional(),
    operatorId: text(128).describe(
      'Who looked: recorded as asserted by the caller. An operator who was removed, or is another store’s, is unknown (404).',
    ),
    approved: z.boolean().optional().describe('Default true; false cancels the purchase.'),
  }),
  response: Purchase.extend(Success),
  example: { transactionId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B', operatorId: 'op_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async steps(work, input) {
    const { purchaseId, paymentId } = await work.once(async (call) => {
      const { purchase, store } = await purchaseOfCaller(call, purchaseIdOf(input))
      const approved = await decideApproval(call, purchase, input.operatorId, input.approved ?? true)
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
