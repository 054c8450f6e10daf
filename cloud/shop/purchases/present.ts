import type { z } from 'zod'
import type { SaleName } from '../../../policy/till-sale.ts'
import { receiptAddress } from '../../../policy/receipts/receipt-token.ts'
import { originOf } from '../../platform/foundation/config.ts'
import { eurosOf, iso, definedFields } from '../../platform/operations/fields.ts'
import type { Call } from '../../platform/operations/operation.ts'
import type { Row } from '../../platform/persistence/schema.ts'
import { qrPngBase64 } from '../../platform/foundation/qr-code.ts'
import type { PriceOrigin, PriceReason, Purchase, PurchaseStatus, StoreData, TransactionData } from './schema.ts'
import { paidByLine, vatBreakdown } from './line-value.ts'
import { refundedCent, toRefundInEuros, toRefundInCents } from './refund-queries.ts'

/**
 * Placeholder for the signature of a certified fiscal device. The texts of the placeholder show that it is no evidence.
 */
const SANDBOX_TSE = {
  state: 'simulated',
  serialNumber: 'SANDBOX-0000000000',
  signatureCounter: '0',
  signature: 'SANDBOX-NO-FISCAL-EVIDENCE',
  note: 'Platzhalter der Sandbox. Kein steuerlicher Nachweis. / Sandbox placeholder. No fiscal evidence.',
}

export interface WholePurchase {
  purchase: Row<'purchase'>
  lines: readonly Row<'purchase_line'>[]
  store: Row<'store'>
  /** The oldest first. */
  refunds: readonly Row<'refund'>[]
}

function tagFields({ purchase, store }: WholePurchase) {
  if (purchase.security_tag_mode === 'none') return {}
  return definedFields({
    securityTagMode: purchase.security_tag_mode as Purchase['securityTagMode'] | null,
    securityTagStatus: purchase.security_tag_status as Purchase['securityTagStatus'] | null,
    securityTagHint: store.security_tag_hint,
  })
}

/** True for the tenant of an account's test mode. */
export function isTest(tenant: string): boolean {
  return tenant.endsWith('.test')
}

/** Store data of a receipt. */
export function storeDataOf(store: Row<'store'>): z.infer<typeof StoreData> {
  const media = store.media === null ? {} : (JSON.parse(store.media) as { logo?: string })
  return {
    id: store.store_id,
    name: store.trading_name,
    mode: isTest(store.tenant) ? 'demo' : 'live',
    address: `${store.street}, ${store.postal_code} ${store.city}, ${store.country_code}`,
    ...definedFields({ logo: media.logo }),
  }
}

/**
 * Who reads a purchase. `public` omits the buyer and the session id, because a publishable key with the session id
 * could read more. `list` omits QR codes, because drawing them takes milliseconds.
 */
type Audience = 'merchant' | 'public' | 'list'

/** True after the expiry of the receipt token. Devices then no longer accept the token. */
export function isReceiptExpired({ receipt_exp }: Pick<Row<'purchase'>, 'receipt_exp'>, nowMs: number): boolean {
  return receipt_exp !== null && nowMs >= receipt_exp * 1_000
}

/** Who set the price of a line, and why. */
function originOfPrice(line: Row<'purchase_line'>) {
  return {
    priceOrigin: line.price_origin as PriceOrigin,
    ...definedFields({ priceReason: line.price_reason as PriceReason | null }),
  }
}

/** Converts a purchase to the transaction data form. */
export function toTransactionData(whole: WholePurchase, call: Call, audience: Audience): TransactionData {
  const { purchase, lines, store, refunds } = whole
  const vat = vatBreakdown(lines.map((l) => ({ cent: l.price_cent * l.quantity, rate: l.vat })))
  const address =
    purchase.receipt_token === null ? null : receiptAddress(originOf(call.services.config), purchase.receipt_token)
  const showsQrCode = audience !== 'list' && !isReceiptExpired(purchase, call.nowMs)
  return {
    id: purchase.purchase_id,
    ...definedFields({
      sessionId: audience === 'public' ? null : purchase.session_id,
      userId: audience === 'public' ? null : purchase.user_id,
      checkoutSessionId: audience === 'public' ? null : purchase.checkout_session_id,
    }),
    storeData: storeDataOf(store),
    items: lines.map((line) => ({
      itemLineId: line.line_id,
      name: line.name,
      ...definedFields({ ean: line.ean }),
      priceUnit: line.price_cent,
      ...definedFields({ listPriceUnit: line.list_price_cent }),
      quantity: line.quantity,
      vat: line.vat as 0 | 7 | 19,
      totalCent: line.price_cent * line.quantity,
      ...definedFields({
        cameBack: line.came_back || null,
        depositOf: line.deposit_of,
        barcode: line.barcode,
        weightGrams: line.weight_grams,
        pricePerKgCent: line.kg_price_cent,
        lot: line.lot,
        expiry: line.expiry,
        serial: line.serial,
      }),
      ...(audience !== 'public' && originOfPrice(line)),
    })),
    currency: purchase.currency,
    subtotalCent: purchase.total_cent,
    vatBreakdown: vat,
    totalVatCent: Object.values(vat).reduce((sum, { tax }) => sum + tax, 0),
    totalCent: purchase.total_cent,
    refundedCent: refundedCent(refunds),
    refunds: refunds.map(toRefundInCents),
    status: purchase.status as PurchaseStatus,
    createdAt: purchase.created_ms,
    ...definedFields({
      refundStatus: purchase.refund_status as TransactionData['refundStatus'] | null,
      completedAt: purchase.completed_ms,
      receiptUrl: address,
      receiptQrCode: showsQrCode && address !== null ? `data:image/png;base64,${qrPngBase64(address)}` : null,
    }),
    tse: isTest(purchase.tenant) ? SANDBOX_TSE : null,
    ...(purchase.till !== null && { till: JSON.parse(purchase.till) as SaleName }),
    ...definedFields({ fiscal: purchase.fiscal }),
    ...tagFields(whole),
  }
}

/** Converts a purchase to the API form, with the transaction data as `receipt`. */
export function toPurchase(whole: WholePurchase, call: Call, audience: Audience = 'merchant'): Purchase {
  const { purchase, lines, refunds } = whole
  const paid = paidByLine(lines)
  return {
    transactionId: purchase.purchase_id,
    storeId: purchase.store_id,
    items: lines.map((line) => ({
      itemLineId: line.line_id,
      ...definedFields({ productId: line.product_id }),
      name: line.name,
      price: eurosOf(line.price_cent),
      paid: eurosOf(paid.get(line.line_id) ?? 0),
      ...(line.list_price_cent !== null && { listPrice: eurosOf(line.list_price_cent) }),
      quantity: line.quantity,
      ...definedFields({
        cameBack: line.came_back || null,
        depositOf: line.deposit_of,
        weightGrams: line.weight_grams,
      }),
      ...(audience !== 'public' && originOfPrice(line)),
    })),
    total: eurosOf(purchase.total_cent),
    refunded: eurosOf(refundedCent(refunds)),
    refunds: refunds.map(toRefundInEuros),
    currency: purchase.currency,
    timestamp: iso(purchase.completed_ms ?? purchase.created_ms),
    status: purchase.status as PurchaseStatus,
    ...definedFields({ refundStatus: purchase.refund_status as Purchase['refundStatus'] | null }),
    ...(purchase.approval === 'awaiting' &&
      purchase.status === 'CREATED' && {
        awaitingApproval: true,
        ...definedFields({ approvalReason: purchase.approval_reason }),
      }),
    ...tagFields(whole),
    receipt: toTransactionData(whole, call, audience),
  }
}
