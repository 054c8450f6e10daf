import { z } from 'zod'
import { SECURITY_TAG_MODES } from '../../policy/vocabulary.ts'
import { Id, text, VatRate } from '../operations/fields.ts'

export const PURCHASE_STATUSES = ['CREATED', 'PENDING_PAYMENT', 'SUCCESS', 'UNLOADED', 'CANCELLED'] as const
export type PurchaseStatus = (typeof PURCHASE_STATUSES)[number]

/** Source of a line's price (ADR 0008). */
export const PRICE_ORIGINS = ['catalogue', 'item', 'client'] as const
export type PriceOrigin = (typeof PRICE_ORIGINS)[number]

/** Maximum number of lines per checkout. */
const LINES_LIMIT = 500
/** Maximum number of units per line. */
const QUANTITY_LIMIT = 1_000
/** Maximum number of units per purchase. */
export const UNITS_LIMIT = 5_000

const Identifiers = z.array(text(128)).min(1).max(QUANTITY_LIMIT).optional()

/** One line of a basket in a request (ADR 0008). */
export const CheckoutLine = z.strictObject({
  name: text(120).optional(),
  priceUnit: z
    .int()
    .min(0)
    .max(100_000_000)
    .optional()
    .describe('Cents; required if the server does not know the price.'),
  quantity: z.int().min(1).max(QUANTITY_LIMIT),
  vat: VatRate.optional(),
  ean: text(128).optional().describe('An EAN or a code that a scale printed; the code contains price or weight.'),
  productId: Id.optional(),
  tagIds: Identifiers,
  epcs: Identifiers,
  tagUids: Identifiers,
  serialNumber: text(128).optional(),
})
export type CheckoutLine = z.output<typeof CheckoutLine>

export const CheckoutRequest = z.strictObject({
  sessionId: Id,
  items: z.array(CheckoutLine).min(1).max(LINES_LIMIT),
  userId: text(128).optional(),
  storeId: Id.optional(),
  currency: z.literal('EUR').optional(),
  destination: text(128).optional().describe('PSP account id.'),
})

const TagFields = {
  securityTagMode: z.enum(SECURITY_TAG_MODES).optional(),
  securityTagStatus: z.enum(['pending', 'deactivated']).optional(),
  securityTagHint: z.string().optional(),
}

/** Fields that all forms of a refund share. */
export const RefundFields = {
  refundId: z.string(),
  kind: z
    .enum(['whole', 'part', 'late'])
    .describe('`late`: refund of a payment that arrived after the purchase had ended.'),
  status: z.enum(['pending', 'done', 'failed']),
  inDoubt: z.literal(true).optional().describe('The refund failed, but the provider may have paid it.'),
  itemLineIds: z.array(z.string()).optional().describe('Lines whose items were returned.'),
}
const REFUNDED = 'Amount of completed refunds, without pending and failed refunds and refunds of late payments.'
const RefundStatus = z
  .enum(['pending', 'done', 'failed'])
  .optional()
  .describe(
    '`failed`: money is missing, and you may repeat the request. With status SUCCESS the cancellation was ' +
      'undone; with CANCELLED a part was refunded.',
  )

/** The store in the data of a purchase. */
export const StoreData = z.strictObject({
  id: z.string(),
  name: z.string(),
  mode: z.enum(['demo', 'live']),
  address: z.string(),
  logo: z.string().optional().describe('URL, as `media.logo` of the store.'),
})

const PriceOrigin = z
  .enum(PRICE_ORIGINS)
  .optional()
  .describe(
    'Source of the price: the store’s catalogue and offers, its registered item, or the client that started the ' +
      'checkout. Not on public receipts.',
  )

/** Transaction data form: amounts in cents. */
export const TransactionData = z.strictObject({
  id: z.string(),
  sessionId: z
    .string()
    .optional()
    .describe('Omitted when a receipt is read by its token, because a publishable key can read the purchase with it.'),
  userId: z.string().optional(),
  checkoutSessionId: z.string().optional(),
  storeData: StoreData,
  items: z.array(
    z.strictObject({
      itemLineId: z.string(),
      name: z.string(),
      ean: z.string().optional(),
      priceUnit: z.int(),
      quantity: z.int(),
      vat: VatRate,
      totalCent: z.int(),
      depositOf: z.string().optional().describe('The line that this deposit belongs to.'),
      barcode: z.string().optional().describe('The scanned label, if a scale printed it.'),
      weightGrams: z.int().optional(),
      pricePerKgCent: z.int().optional(),
      priceOrigin: PriceOrigin,
    }),
  ),
  currency: z.string(),
  subtotalCent: z.int(),
  vatBreakdown: z.record(z.string(), z.strictObject({ net: z.int(), tax: z.int() })),
  totalVatCent: z.int(),
  totalCent: z.int(),
  refundedCent: z.int().describe(REFUNDED),
  refunds: z.array(
    z.strictObject({
      ...RefundFields,
      amountCent: z.int(),
      createdAt: z.int().describe('Unix time, ms.'),
      completedAt: z.int().optional().describe('When the refund was completed.'),
    }),
  ),
  status: z.enum(PURCHASE_STATUSES),
  refundStatus: RefundStatus,
  createdAt: z.int().describe('Unix time, ms.'),
  completedAt: z.int().optional(),
  receiptUrl: z.string().optional(),
  receiptQrCode: z
    .string()
    .optional()
    .describe('Data URI of a PNG. Absent after the receipt has expired, 24 hours after payment.'),
  tse: z
    .record(z.string(), z.string())
    .nullable()
    .describe('Not fiscal evidence: placeholder values in the sandbox, null in live mode.'),
  ...TagFields,
})
export type TransactionData = z.infer<typeof TransactionData>

/** Purchase, API form. */
export const Purchase = z.strictObject({
  transactionId: z.string(),
  storeId: z.string(),
  items: z.array(
    z.strictObject({
      itemLineId: z.string(),
      productId: z.string().optional(),
      name: z.string(),
      price: z.number(),
      quantity: z.int(),
      depositOf: z.string().optional().describe('The line that this deposit belongs to.'),
      weightGrams: z.int().optional(),
      priceOrigin: PriceOrigin,
    }),
  ),
  total: z.number(),
  refunded: z.number().describe(`EUR. ${REFUNDED}`),
  refunds: z.array(
    z.strictObject({
      ...RefundFields,
      amount: z.number().describe('EUR.'),
      createdAt: z.string(),
      completedAt: z.string().optional().describe('When the refund was completed.'),
    }),
  ),
  currency: z.string(),
  timestamp: z.string(),
  status: z.enum(PURCHASE_STATUSES),
  refundStatus: RefundStatus,
  awaitingApproval: z.boolean().optional().describe('Staff must approve the basket first: `approveCheckout`.'),
  approvalReason: z.enum(['age', 'spot_check']).optional(),
  ...TagFields,
  receipt: TransactionData,
})
export type Purchase = z.infer<typeof Purchase>
