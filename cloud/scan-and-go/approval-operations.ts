import { z } from 'zod'
import { Id, Success } from '../operations/fields.ts'
import { operation } from '../operations/operation.ts'
import { decideApproval } from './approval.ts'
import { ownPurchase, purchaseIdOf, wholePurchase } from './own-purchase.ts'
import { toPurchase } from './present.ts'
import { Purchase } from './schema.ts'

export const approveCheckout = operation({
  name: 'approveCheckout',
  area: 'scan and go',
  minimumPackage: 'GROW',
  summary: 'Staff have looked at a basket that awaits approval: it may be paid, or not.',
  description: 'Baskets with age-restricted goods, and those that a spot check picks (`spotCheckRate` of the protection policy), are CREATED with `awaitingApproval: true` until then.',
  changes: true,
  request: z.strictObject({
    transactionId: Id.optional(),
    purchaseId: Id.optional(),
    id: Id.optional(),
    operatorId: Id.describe('Who looked: an operator of the store.'),
    approved: z.boolean().optional().describe('Default true; false cancels the purchase.'),
  }),
  response: Purchase.extend(Success),
  example: { transactionId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B', operatorId: 'op_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  async run(call, input) {
    const { purchase } = await ownPurchase(call, purchaseIdOf(input))
    const decided = await decideApproval(call, purchase, input.operatorId, input.approved ?? true)
    call.changed(purchase.purchase_id)
    return { success: true as const, ...toPurchase(await wholePurchase(call, decided), call) }
  },
})
