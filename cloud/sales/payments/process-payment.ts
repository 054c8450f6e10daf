import { z } from 'zod'
import { knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { precondition } from '../../platform/foundation/failure.ts'
import { eurosOf, Id, definedFields, Success, text } from '../../platform/operations/fields.ts'
import { operation, type Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { COMPLETION_EVENTS } from '../checkout/complete-purchase.ts'
import { REFUND_EVENTS, assertForSale } from '../checkout/book-refund.ts'
import { purchaseOfCaller, purchaseIdOf } from '../../shop/purchases/queries.ts'
import { isTest } from '../../shop/purchases/present.ts'
import { PURCHASE_STATUSES, type PurchaseStatus } from '../../shop/purchases/schema.ts'
import { beginPayment, checkoutPageOf, canStillBeOpened, openPayment } from './open-payment.ts'
import { openPaymentOf, runnerOf } from './queries.ts'

const PaymentAnswer = z.strictObject({
  ...Success,
  transactionId: z.string(),
  status: z.enum(PURCHASE_STATUSES),
  checkoutUrl: z.string().describe('Page on which the shopper pays.'),
  paymentId: z.string().optional().describe('In live mode.'),
  provider: z.string().optional().describe('In live mode.'),
  amount: z.number().describe('EUR.'),
  currency: z.string(),
})

export const processPayment = operation({
  name: 'processPayment',
  area: 'payments',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Opens the payment of a purchase, or returns the open one.',
  description:
    'A purchase has at most one open payment; repeated calls return it. In the sandbox the response contains ' +
    'the test checkout page.',
  refusals: [
    'sold_at_a_till',
    'awaiting_approval',
    'already_paid',
    'checkout_ended',
    'psp_not_configured',
    'item_already_paid',
    'recalled',
  ],
  changes: true,
  request: z.strictObject({
    purchaseId: Id.optional(),
    transactionId: Id.optional(),
    id: Id.optional(),
    method: text(40)
      .optional()
      .describe('Has no effect: the page of the provider offers the methods that the merchant chose there.'),
  }),
  response: PaymentAnswer,
  example: { purchaseId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  emits: ['payment.created', ...COMPLETION_EVENTS, ...REFUND_EVENTS],
  async steps(work, input) {
    const { purchaseId, paymentId } = await work.once(
      async (call) => {
        const { purchase } = await purchaseOfCaller(call, purchaseIdOf(input))
        checkPayable(call, purchase)
        await assertForSale(call.db, purchase)
        call.changed(purchase.purchase_id)
        const payment = await paymentOf(call, purchase)
        return { purchaseId: purchase.purchase_id, paymentId: payment?.payment_id ?? null }
      },
      (call, made) => canStillBeOpened(call, made.paymentId),
    )
    const opened = paymentId === null ? undefined : await openPayment(runnerOf(work), paymentId)
    return work.read(async (call) => {
      const { purchase: now } = await purchaseOfCaller(call, purchaseId)
      return {
        success: true as const,
        transactionId: now.purchase_id,
        status: now.status as PurchaseStatus,
        checkoutUrl: opened?.url ?? checkoutPageOf(now, call),
        ...definedFields({ paymentId: opened?.payment_id, provider: opened?.provider }),
        amount: eurosOf(now.total_cent),
        currency: now.currency,
      }
    })
  },
})

/** Throws 409 if a till took the money of this purchase. */
export function assertNotOfTill({ till }: Row<'purchase'>): void {
  if (till !== null)
    throw precondition(
      'sold_at_a_till',
      'a till took the money of this sale: record goods that come back with recordReturns',
      {
        allowedNext: [],
      },
    )
}

function checkPayable({ nowMs }: Call, purchase: Row<'purchase'>): void {
  assertNotOfTill(purchase)
  if (purchase.status === 'SUCCESS' || purchase.status === 'UNLOADED')
    throw precondition('already_paid', 'the purchase is already paid', { allowedNext: [] })
  const isLate = purchase.payment_by_ms !== null && purchase.payment_by_ms <= nowMs
  if (purchase.status === 'CANCELLED' || isLate)
    throw precondition(
      'checkout_ended',
      isLate ? 'the time to pay has expired: start a new checkout' : 'the purchase is CANCELLED: start a new checkout',
      {
        allowedNext: [],
      },
    )
  if (purchase.approval === 'awaiting')
    throw precondition('awaiting_approval', 'staff must approve this basket first: use approveCheckout')
}

/**
 * Returns the open payment of the purchase, or a new payment that must be opened. Returns undefined in the sandbox,
 * which has a test page instead.
 */
async function paymentOf(call: Call, purchase: Row<'purchase'>): Promise<Row<'payment'> | undefined> {
  if (isTest(knownCaller(call.caller).tenant)) return undefined
  const open = await openPaymentOf(call.db, purchase.purchase_id)
  if (open) return open
  if (purchase.status !== 'CREATED')
    throw precondition('checkout_ended', 'the payment has ended: start a new checkout', { allowedNext: [] })
  return beginPayment(call, purchase)
}
