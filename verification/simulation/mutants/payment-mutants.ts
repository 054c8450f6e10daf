import { change, type Mutant } from './mutant.ts'

/** Bugs of payments and refunds, and of goods that come back. */
export const PAYMENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'late-money-kept',
    what: 'money that arrives for a purchase that is over does not go back',
    changes: [
      change(
        'cloud/payments/apply-notice.js',
        'await insertRefund(call, {',
        'if (nowMs < 0)\n        await insertRefund(call, {',
      ),
    ],
    faults: ['provider'],
    liveness: true,
  },
  {
    name: 'any-amount-pays',
    what: 'a purchase counts as paid whatever amount the provider names',
    changes: [
      change(
        'cloud/payments/apply-notice.js',
        'const isRight = amountCent === payment.amount_cent && ',
        'const isRight = ',
      ),
    ],
    faults: ['provider'],
  },
  {
    name: 'refund-under-new-names',
    what: 'a refund that nobody answered is sent again under another idempotency key',
    changes: [
      change(
        'cloud/payments/send-refund.js',
        'const request = {\n            refundId,',
        'const request = {\n            refundId: `${refundId}-${refund.attempts}`,',
      ),
    ],
    faults: ['provider'],
    liveness: true,
  },
  {
    name: 'money-before-denial',
    what: 'a cancelled purchase is paid back while its tokens and its receipt still count',
    changes: [
      change(
        'cloud/purchase-lifecycle/cancel-purchase.js',
        'const isOpen = await hasOpenAuthorizations(call, purchase);',
        'const isOpen = false;',
      ),
    ],
    faults: ['provider', 'partition'],
  },
  {
    name: 'came-back-unheard',
    what: 'a refund that the customer’s bank sends back counts as gone',
    changes: [
      change(
        'cloud/payments/refund-outcome.js',
        "return refund.state !== 'failed' || refund.in_doubt === 1;",
        "return refund.state === 'due';",
      ),
    ],
    faults: ['provider'],
    liveness: true,
  },
  {
    name: 'nobody-asks-the-provider',
    what: 'a payment whose notification was lost is never asked about',
    changes: [
      change(
        'cloud/payments/due-payments.js',
        'const payments = await duePayments(database.reads, nowMs, READ_LIMIT);',
        'const payments = [];',
      ),
    ],
    faults: ['provider'],
    liveness: true,
  },
  {
    name: 'cancelled-for-the-next',
    what: 'cancelling a purchase takes back what was brought back meanwhile, and bought by somebody else',
    changes: [
      change(
        'cloud/protection/leases/return-units.js',
        'return item.line_id === unit.line_id && item.unit_no === unit.unit_no;',
        'return true;',
      ),
    ],
  },
  {
    name: 'brought-back-and-released',
    what: 'who brings goods back keeps the right to have them released',
    changes: [
      change(
        'cloud/protection/items/move-by-staff.js',
        "await returnUnits(call, purchase, [unit], newId('ret', services.platform));",
        '',
      ),
    ],
  },
  {
    name: 'refunded-called-double',
    what: 'one release of goods that came back is reported as two releases',
    changes: [
      change('cloud/protection/evidence/settle-unit.js', "raise('released_after_refund')", "raise('double_redeem')"),
    ],
  },
]
