import { z } from 'zod'
import { knownCaller, rolesFrom } from '../../platform/foundation/caller.ts'
import { Failure, notFound, precondition } from '../../platform/foundation/failure.ts'
import { definedFields, Id, iso, Success, lines, text } from '../../platform/operations/fields.ts'
import { legacyForm, operation, type Call } from '../../platform/operations/operation.ts'
import {
  beginPayment,
  checkoutPageOf,
  canStillBeOpened,
  emitTestPayment,
  openPayment,
  pspOf,
} from '../payments/open-payment.ts'
import { REFUND_EVENTS, assertForSale } from './book-refund.ts'
import { runnerOf } from '../payments/queries.ts'
import { ownStore } from '../../platform/stores/own-store.ts'
import { shownNames } from '../../platform/stores/make-store.ts'
import { voidTillPurchase } from '../tills/void-sale.ts'
import { cancelPurchase, cancelUnpaidPurchase } from './cancel-purchase.ts'
import { COMPLETION_EVENTS, completePurchase } from './complete-purchase.ts'
import { purchaseOfCaller, purchaseIdOf, wholePurchase, sessionOfCaller } from '../../shop/purchases/queries.ts'
import { toPurchase, toTransactionData, type WholePurchase } from '../../shop/purchases/present.ts'
import { CheckoutRequest, Purchase, TransactionData } from '../../shop/purchases/schema.ts'
import { startPurchase } from './start-checkout.ts'
import { newId } from '../../../policy/ids.ts'
import { countSession } from '../../shop/analytics/count-purchases.ts'
import { preparedInsert } from '../../platform/persistence/prepared.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { qrPng } from '../../platform/foundation/qr-code.ts'

const CODE_TYPES = ['checkin', 'payment', 'profile'] as const

export const generateCodes = operation({
  name: 'generateCodes',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Draws QR codes to display in a store.',
  description: 'A code contains `untag://{type}/{storeId}`, which the shopper’s app opens.',
  changes: false,
  request: z.strictObject({
    storeId: Id,
    type: z.enum(CODE_TYPES).optional().describe('Default `checkin`.'),
    size: z
      .int()
      .min(64)
      .max(2_048)
      .optional()
      .describe('Width in pixels; default 512. The image is wider if a module would have less than 3 pixels.'),
  }),
  response: z.strictObject({
    ...Success,
    type: z.enum(CODE_TYPES),
    codes: z.array(
      z.strictObject({ type: z.enum(CODE_TYPES), data: z.string(), imageBase64: z.string().describe('PNG.') }),
    ),
  }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', type: 'checkin', size: 512 },
  async run(call, { storeId, type = 'checkin', size = 512 }) {
    const store = await ownStore(call, storeId)
    const data = `untag://${type}/${store.store_id}`
    return { success: true as const, type, codes: [{ type, data, imageBase64: qrPng(data, size).toString('base64') }] }
  },
})

const insertSession = preparedInsert((db, rows: readonly Row<'shopping_session'>[]) =>
  db.insertInto('shopping_session').values(rows),
)

/** Creates a shopping session in a store. */
async function openSession(call: Call, storeId: string, userId: string | undefined): Promise<Row<'shopping_session'>> {
  const session: Row<'shopping_session'> = {
    session_id: newId('ses', call.services.platform),
    tenant: knownCaller(call.caller).tenant,
    store_id: storeId,
    user_id: userId ?? null,
    created_ms: call.nowMs,
    purchase_id: null,
    completed: 0,
    spot_check_due: 0,
    vouched: userId !== undefined && knownCaller(call.caller).kind === 'secret' ? 1 : 0,
  }
  await insertSession(call.db, [session])
  await countSession(call, session)
  return session
}

export const checkIn = operation({
  name: 'checkIn',
  together: 'sales',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Opens a shopping session in a store.',
  callers: ['secret', 'publishable'],
  refusals: ['scan_and_go_off'],
  changes: true,
  request: z.strictObject({ storeId: Id, userId: text(128).optional() }),
  response: z.strictObject({ ...Success, sessionId: z.string(), storeId: z.string(), checkedInAt: z.string() }),
  example: { storeId: 'st_01KANX6Y7C3V9Q2M8R5T4W6Z1B', userId: 'shopper-17' },
  async run(call, { storeId, userId }) {
    const store = await ownStore(call, storeId)
    if (store.has_scan_and_go !== 1)
      throw precondition('scan_and_go_off', 'scan and go is switched off in this store: switch it on with updateStore')
    const session = await openSession(call, storeId, userId)
    call.changed(session.session_id)
    return { success: true as const, sessionId: session.session_id, storeId, checkedInAt: iso(session.created_ms) }
  },
})

export const startCheckout = operation({
  name: 'startCheckout',
  together: 'sales',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Creates a purchase from a basket and opens its payment.',
  description:
    'An unpaid purchase of the session is replaced and becomes CANCELLED. ' +
    'The server prices lines with `ean`, `productId` or a named item; a different `priceUnit` fails with 409 ' +
    'and a detail for each line. With a test key `checkoutUrl` is a test page with Pay, Decline and Cancel; ' +
    'with a live key it is the page of the store’s payment provider. If the provider does not respond, the ' +
    'operation fails with 503 `psp_unavailable` and the purchase is CANCELLED.',
  callers: ['secret', 'publishable'],
  refusals: [
    'out_of_stock',
    'price_changed',
    'price_unknown',
    'item_mismatch',
    'item_not_sellable',
    'expired',
    'recalled',
    'psp_not_configured',
    'checkout_ended',
  ],
  emits: ['payment.created', ...COMPLETION_EVENTS],
  changes: true,
  request: CheckoutRequest,
  response: Purchase.extend({ ...Success, checkoutUrl: z.string() }),
  example: { sessionId: 'ses_01KANX6Y7C3V9Q2M8R5T4W6Z1B', items: [{ ean: '4012345678901', quantity: 1 }] },
  async steps(work, { sessionId, storeId, items, userId }) {
    const start = async (call: Call) => {
      const session = await sessionOfCaller(call, sessionId)
      if (storeId !== undefined && storeId !== session.store_id) throw notFound('session')
      const store = await ownStore(call, session.store_id)
      const isLive = knownCaller(call.caller).mode === 'live'
      if (isLive) await pspOf(call, store.store_id)
      const purchase = await startPurchase(call, session, store, items, userId)
      call.changed(purchase.purchase_id)
      if (!isLive) emitTestPayment(call, purchase)
      if (isLive && purchase.total_cent === 0 && purchase.approval === null)
        await completePurchase(call, purchase, store)
      const payment =
        isLive && purchase.total_cent > 0 && purchase.approval === null ? await beginPayment(call, purchase) : undefined
      return { purchaseId: purchase.purchase_id, paymentId: payment?.payment_id ?? null }
    }
    const { purchaseId, paymentId } = await work.once(start, (call, made) => canStillBeOpened(call, made.paymentId))
    const opened = paymentId === null ? undefined : await openPayment(runnerOf(work), paymentId)
    return work.read(async (call) => {
      const whole = await purchaseOfCaller(call, purchaseId)
      return {
        success: true as const,
        ...toPurchase(whole, call),
        checkoutUrl: opened?.url ?? checkoutPageOf(whole.purchase, call),
      }
    })
  },
})

const PurchaseNames = z.strictObject({
  transactionId: Id.optional(),
  purchaseId: Id.optional(),
  id: Id.optional(),
  sessionId: Id.optional().describe('Required with a publishable key: the session of the purchase.'),
})

/** Reads a purchase. A publishable key must also send the session id of the purchase. */
async function readPurchase(call: Call, names: z.output<typeof PurchaseNames>): Promise<WholePurchase> {
  const whole = await purchaseOfCaller(call, purchaseIdOf(names))
  const mustMatch = knownCaller(call.caller).kind === 'publishable' || names.sessionId !== undefined
  if (mustMatch && names.sessionId !== whole.purchase.session_id) throw notFound('purchase')
  return whole
}

export const fetchPurchase = operation({
  name: 'fetchPurchase',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: rolesFrom('viewer'),
  summary: 'Returns one purchase with its receipt data.',
  description:
    'POST returns the API form (EUR) with the transaction data form (cents) as `receipt`; GET returns only the ' +
    'transaction data form.',
  callers: ['secret', 'publishable'],
  changes: false,
  request: PurchaseNames,
  response: Purchase.extend(Success),
  example: { transactionId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B' },
  get: legacyForm({
    request: PurchaseNames,
    response: TransactionData.extend(Success),
    async run(call, input) {
      return { success: true as const, ...toTransactionData(await readPurchase(call, input), call, 'merchant') }
    },
  }),
  async run(call, input) {
    const whole = await readPurchase(call, input)
    const purchase = toPurchase(whole, call)
    return { success: true as const, ...purchase, refunds: await withRequesters(call, whole, purchase.refunds) }
  },
})

/** Adds who began each refund, unless a shopper reads the purchase. */
async function withRequesters({ caller, db }: Call, whole: WholePurchase, refunds: Purchase['refunds']) {
  if (caller.kind === 'publishable' || refunds.length === 0) return refunds
  const byId = new Map(whole.refunds.map(({ refund_id, requested_by }) => [refund_id, requested_by]))
  const { staff } = await shownNames(db, whole.purchase.tenant, { devices: [], staff: [...byId.values()] })
  return refunds.map((refund) => {
    const requestedBy = byId.get(refund.refundId) ?? null
    return { ...refund, ...definedFields({ requestedBy, requestedByName: staff.get(requestedBy ?? '') ?? null }) }
  })
}

export const markPurchaseCancelled = operation({
  name: 'markPurchaseCancelled',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: rolesFrom('manager'),
  summary: 'Cancels a purchase and refunds it if it was paid.',
  description:
    'Only PENDING_PAYMENT and SUCCESS can be cancelled. A sale of a till becomes void, as with voidSale. Authorizations are revoked first; the refund is sent ' +
    'when none of them can be used any more. For a CANCELLED purchase with `refundStatus: failed`, the ' +
    'operation sends the missing amount.',
  refusals: ['purchase_not_cancellable'],
  changes: true,
  request: z.strictObject({
    purchaseId: Id.optional(),
    transactionId: Id.optional(),
    id: Id.optional(),
    reason: lines(300).optional().describe('An internal note.'),
  }),
  response: Purchase.extend(Success),
  example: { purchaseId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B', reason: 'customer changed her mind' },
  emits: [...REFUND_EVENTS],
  async run(call, input) {
    const { purchase, store } = await purchaseOfCaller(call, purchaseIdOf(input))
    const cancelled =
      purchase.till === null
        ? await cancelPurchase(call, purchase, input.reason)
        : await voidTillPurchase(call, store, purchase, input.reason)
    call.changed(purchase.purchase_id)
    call.afterCommit(() => call.services.paymentsDue.notify())
    return { success: true as const, ...toPurchase(await wholePurchase(call, cancelled), call) }
  },
})

/** Possible results of a test checkout. */
export const TEST_RESULTS = ['paid', 'declined', 'cancelled'] as const
export type TestResult = (typeof TEST_RESULTS)[number]

/** Ends a test checkout. Does nothing if the checkout already has this result. */
export async function endTestCheckout(
  call: Call,
  { purchase, store }: WholePurchase,
  result: TestResult,
): Promise<void> {
  const done = result === 'paid' ? ['SUCCESS', 'UNLOADED'] : ['CANCELLED']
  if (done.includes(purchase.status)) return
  if (purchase.approval === 'awaiting' && purchase.status === 'CREATED' && result === 'paid') {
    throw precondition('awaiting_approval', 'staff must approve this basket first: use approveCheckout')
  }
  const isLate = purchase.payment_by_ms !== null && purchase.payment_by_ms <= call.nowMs
  if ((purchase.status !== 'PENDING_PAYMENT' && purchase.status !== 'CREATED') || isLate) {
    throw precondition(
      'checkout_ended',
      isLate ? 'the time to pay has expired: start a new checkout' : `the purchase is already ${purchase.status}`,
      { allowedNext: [] },
    )
  }
  if (result === 'paid') {
    await assertForSale(call.db, purchase)
    await completePurchase(call, purchase, store)
  } else {
    call.requireAlone()
    await cancelUnpaidPurchase(call.db, purchase, { cancel_reason: result })
  }
  call.changed(purchase.purchase_id)
}

export const completeTestCheckout = operation({
  name: 'completeTestCheckout',
  together: 'sales',
  area: 'scan and go',
  minimumPackage: 'GROW',
  roles: [],
  summary: 'Ends a test checkout without its test page. Test keys only.',
  refusals: ['checkout_ended', 'awaiting_approval', 'item_already_paid', 'recalled'],
  changes: true,
  request: z.strictObject({
    transactionId: Id.optional(),
    purchaseId: Id.optional(),
    id: Id.optional(),
    result: z.enum(TEST_RESULTS).optional().describe('Default `paid`.'),
  }),
  response: Purchase.extend(Success),
  example: { transactionId: 'pur_01KANX6Y7C3V9Q2M8R5T4W6Z1B', result: 'paid' },
  emits: [...COMPLETION_EVENTS],
  async run(call, input) {
    if (knownCaller(call.caller).mode !== 'test')
      throw new Failure('permission-denied', 'completeTestCheckout works with test keys only', {
        reason: 'test_keys_only',
      })
    const whole = await purchaseOfCaller(call, purchaseIdOf(input))
    await endTestCheckout(call, whole, input.result ?? 'paid')
    return { success: true as const, ...toPurchase(await purchaseOfCaller(call, whole.purchase.purchase_id), call) }
  },
})
