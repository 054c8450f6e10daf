import { change, type Mutant } from './mutant.ts'

/** Mutants of payments, refunds and returns. */
export const PAYMENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'late-payment-not-refunded',
    what: 'A payment that arrives after the end of its purchase is not refunded.',
    changes: [
      change(
        'cloud/sales/payments/apply-notice.js',
        'await insertRefund(call, {',
        'if (nowMs < 0)\n        await insertRefund(call, {',
      ),
    ],
    faults: ['provider'],
    liveness: true,
  },
  {
    name: 'wrong-amount-accepted',
    what: 'A purchase counts as paid whatever amount the provider reports.',
    changes: [
      change(
        'cloud/sales/payments/apply-notice.js',
        'const isRight = amountCent === payment.amount_cent && ',
        'const isRight = ',
      ),
    ],
    faults: ['provider'],
  },
  {
    name: 'refund-key-per-attempt',
    what: 'The cloud retries an unanswered refund with another idempotency key.',
    changes: [
      change(
        'cloud/sales/payments/send-refund.js',
        'const request = {\n            refundId,',
        'const request = {\n            refundId: `${refundId}-${refund.attempts}`,',
      ),
    ],
    faults: ['provider'],
    liveness: true,
  },
  {
    name: 'refund-before-denial',
    what: 'The cloud refunds a cancelled purchase while its tokens and receipt are still valid.',
    changes: [
      change(
        'cloud/sales/checkout/cancel-purchase.js',
        'const isOpen = await hasOpenAuthorizations(call, purchase);',
        'const isOpen = false;',
      ),
    ],
    faults: ['provider', 'partition'],
  },
  {
    name: 'bounced-refund-ignored',
    what: 'A refund that the bank sent back counts as paid out.',
    changes: [
      change(
        'cloud/sales/payments/refund-outcome.js',
        "return refund.state !== 'failed' || isOpen;",
        "return refund.state === 'due';",
      ),
    ],
    faults: ['provider'],
    liveness: true,
  },
  {
    name: 'provider-not-polled',
    what: 'The cloud never polls a payment whose notification was lost.',
    changes: [
      change(
        'cloud/sales/payments/due-payments.js',
        'const payments = await duePayments(database.reads, nowMs, share);',
        'const payments = [];',
      ),
    ],
    faults: ['provider'],
    liveness: true,
  },
  {
    name: 'cancel-takes-resold-item',
    what: 'Cancelling a purchase also cancels items that were returned and sold again.',
    changes: [
      change(
        'cloud/protection/leases/leases.js',
        'return item.line_id === unit.line_id && item.unit_no === unit.unit_no;',
        'return true;',
      ),
    ],
  },
  {
    name: 'returned-item-keeps-right',
    what: 'A returned item keeps its release right.',
    changes: [
      change(
        'cloud/protection/items/move-by-staff.js',
        "await returnUnits(call, purchase, rows, newId('ret', services.platform));",
        '',
      ),
    ],
  },
  {
    name: 'refund-reported-as-double',
    what: 'One release after a refund is reported as two releases.',
    changes: [
      change('cloud/protection/evidence/apply-outcome.js', "raise('released_after_refund')", "raise('double_redeem')"),
    ],
  },
]
