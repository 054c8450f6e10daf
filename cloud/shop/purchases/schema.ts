import { z } from 'zod'
import { SECURITY_TAG_MODES } from '../../../policy/vocabulary.ts'
import { UnitInput, UnitOutput } from '../catalogue/render.ts'
import { Id, VatRate, scanned, text, ProductCodeText } from '../../platform/operations/fields.ts'

export const PURCHASE_STATUSES = ['CREATED', 'PENDING_PAYMENT', 'SUCCESS', 'UNLOADED', 'CANCELLED'] as const
export type PurchaseStatus = (typeof PURCHASE_STATUSES)[number]

/** Source of a line's price (ADR sales). */
const PRICE_ORIGINS = ['catalogue', 'item', 'client'] as const
export type PriceOrigin = (typeof PRICE_ORIGINS)[number]

/** Why a till sells at its own price (ADR sales). */
export const PRICE_REASONS = ['staff', 'markdown', 'coupon', 'till'] as const
export type PriceReason = (typeof PRICE_REASONS)[number]

/** Maximum number of lines per checkout. */
const LINES_LIMIT = 500
/** Maximum price of a unit, cents. A coupon takes off at most the same amount. */
const PRICE_LIMIT = 100_000_000
/** Maximum number of units per line. */
export const QUANTITY_LIMIT = 1_000

/** Tags of a line. */
export const Identifiers = z.array(scanned(128)).min(1).max(QUANTITY_LIMIT).optional()

/** One line of a basket in a request (ADR sales). */
export const CheckoutLine = z.strictObject({
  name: text(120).optional(),
  priceUnit: z
    .int()
    .min(-PRICE_LIMIT)
    .max(PRICE_LIMIT)
    .optional()
    .describe('Cents; required if the server does not know the price. Negative only on a coupon line without goods.'),
  priceReason: z
    .enum(PRICE_REASONS)
    .optional()
    .describe('Sells at `priceUnit` instead of the price of the store. Secret keys only.'),
  quantity: z.int().min(1).max(QUANTITY_LIMIT),
  vat: VatRate.optional(),
  ean: ProductCodeText.optional().describe(
    'The EAN as an app or scanner read it, or a code that a scale printed; that code contains price or weight.',
  ),
  productId: Id.optional(),
  tagIds: Identifiers,
  epcs: Identifiers,
  tagUids: Identifiers,
  serialNumber: text(128).optional(),
  ...UnitInput,
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

/** Pieces of a line that came back with a refund. */
export const ReturnedLine = z.strictObject({
  itemLineId: z.string(),
  quantity: z.int(),
  part: z.number().optional().describe('Part of the one piece of weighed goods, if not all of it came back: 0.4.'),
})

const CameBack = z
  .int()
  .optional()
  .describe('Pieces that the same sale of a till took back. They cannot come back again.')

/** Fields that all forms of a refund share. */
export const RefundFields = {
  refundId: z.string(),
  kind: z
    .enum(['whole', 'part', 'late'])
    .describe('`late`: refund of a payment that arrived after the purchase had ended.'),
  status: z.enum(['pending', 'done', 'failed']),
  inDoubt: z.literal(true).optional().describe('The refund failed, but the provider may have paid it.'),
  outside: z
    .enum(['refund', 'dispute'])
    .optional()
    .describe('The money moved at the provider without a call: a refund there, or a dispute that took it back.'),
  lines: z.array(ReturnedLine).optional().describe('Pieces that came back. Absent if the refund names no goods.'),
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
const PriceReason = z
  .enum(PRICE_REASONS)
  .optional()
  .describe('Why the client set another price. Not on public receipts.')

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
      priceUnit: z.int().describe('Negative on a coupon line.'),
      listPriceUnit: z.int().optional().describe('Price of the store, if the client set another price.'),
      quantity: z.int(),
      vat: z.literal([0, 7, 19]).describe('Percent; 0 only from tills.'),
      totalCent: z.int(),
      cameBack: CameBack,
      depositOf: z.string().optional().describe('The line that this deposit belongs to.'),
      barcode: z.string().optional().describe('The scanned label, if a scale printed it.'),
      weightGrams: z.int().optional(),
      pricePerKgCent: z.int().optional(),
      ...UnitOutput,
      priceOrigin: PriceOrigin,
      priceReason: PriceReason,
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
  till: z
    .strictObject({ saleId: z.string(), tillId: z.string().optional(), series: z.string().optional() })
    .optional()
    .describe('The till’s own names of this sale, if a till sold it (recordSales).'),
  fiscal: z.string().optional().describe('Text of the till’s fiscal device.'),
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
      price: z.number().describe('EUR. Negative on a coupon line.'),
      paid: z.number().describe('EUR: paid for the whole line, less its part of the coupons of its VAT rate.'),
      listPrice: z.number().optional().describe('EUR: price of the store, if the client set another price.'),
      quantity: z.int(),
      cameBack: CameBack,
      depositOf: z.string().optional().describe('The line that this deposit belongs to.'),
      weightGrams: z.int().optional(),
      priceOrigin: PriceOrigin,
      priceReason: PriceReason,
    }),
  ),
  total: z.number(),
  refunded: z.number().describe(`EUR. ${REFUNDED}`),
  refunds: z.array(
    z.strictObject({
      ...RefundFields,
      amount: z.number().describe('EUR.'),
      requestedBy: z.string().optional().describe('User, API key or job. Only in `fetchPurchase` with a secret key.'),
      requestedByName: z.string().optional().describe('Name of the user. Only with `requestedBy`.'),
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
