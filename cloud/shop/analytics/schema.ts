import { z } from 'zod'
import { PRICE_REASONS, RefundFields } from '../purchases/schema.ts'
import { PERIODS } from './store-days.ts'

/** A date in requests, limited to plausible years. */
export const Day = z.iso
  .date()
  .refine((day) => day >= '2000-01-01' && day <= '2099-12-31', 'must be between 2000-01-01 and 2099-12-31')
  .describe('A date such as 2026-11-20 in the store’s time zone (Europe/Berlin).')

const Percent = z.number().min(0).max(100).describe('Percent, one decimal.')

/** Analytics report (specification). */
export const AnalyticsReport = z.strictObject({
  storeId: z.string(),
  date: z.string().describe('The day; for weeks the Monday, for months the first day.'),
  period: z.enum(PERIODS),
  scanAndGo: z.strictObject({
    sessions: z.int(),
    completedCheckouts: z.int(),
    abandonedRate: Percent.describe('Sessions without a valid purchase, percent.'),
    revenueCent: z.int(),
    avgBasketCent: z.int(),
    itemsScanned: z.int().describe('Units in completed checkouts.'),
  }),
  tills: z
    .strictObject({ sales: z.int(), revenueCent: z.int(), avgBasketCent: z.int(), itemsSold: z.int() })
    .describe('Sales of tills (recordSales), which `scanAndGo` does not contain.'),
  offers: z.strictObject({
    activeOffers: z.int(),
    totalClicks: z.int(),
    totalFavorites: z.int(),
    conversionRate: Percent.describe('Clicks on offers that led to a favourite, percent.'),
  }),
  store: z.strictObject({
    profileViews: z.int(),
    newFollowers: z.int(),
    totalFollowers: z.int().describe('At the end of the period.'),
    dmReceived: z.int(),
  }),
})
export type AnalyticsReport = z.infer<typeof AnalyticsReport>

const VatTotals = z.record(z.string(), z.strictObject({ net: z.int(), tax: z.int() })).describe('By rate, cents.')

const Totals = {
  receiptCount: z.int(),
  salesCent: z.int().describe('Gross.'),
  refundCount: z.int(),
  refundCent: z.int().describe('Gross.'),
  totalCent: z.int().describe('Sales less refunds, gross.'),
  vatBreakdown: VatTotals.describe('Sales less refunds by rate, cents, summed from the receipts.'),
}

/** Closing of a store's days; it never changes. */
export const Closing = z.strictObject({
  storeId: z.string(),
  number: z.int().describe('Number of the closing in its store, from 1 without gaps.'),
  from: z.string().describe('The day after the previous closing, so that no day is omitted.'),
  date: z.string().describe('The last day of the closing.'),
  closedAt: z.string(),
  currency: z.literal('EUR'),
  ...Totals,
  tills: z.strictObject(Totals).describe('Sales of tills (recordSales), which the totals above do not contain.'),
})
export type Closing = z.infer<typeof Closing>

/** Columns of the CSV export. */
export const SALE_COLUMNS = [
  'transactionId',
  'storeId',
  'completedAt',
  'status',
  'currency',
  'itemLineId',
  'ean',
  'name',
  'quantity',
  'vat',
  'priceUnit',
  'listPriceUnit',
  'priceReason',
  'totalCent',
  'depositOf',
  'refundedCent',
] as const

export const Sale = z.strictObject({
  transactionId: z.string(),
  storeId: z.string(),
  completedAt: z.string(),
  status: z.enum(['SUCCESS', 'UNLOADED', 'CANCELLED']).describe('CANCELLED: paid and then cancelled.'),
  currency: z.string(),
  totalCent: z.int().describe('Amount of the sale.'),
  refundedCent: z.int().describe('Amount refunded so far.'),
  refunds: z
    .array(
      z.strictObject({
        ...RefundFields,
        amountCent: z.int(),
        createdAt: z.string(),
        completedAt: z.string().optional().describe('When the refund was completed.'),
      }),
    )
    .describe('JSON only. `pushToPOS` and `pushToERP` write the completed ones.'),
  vatBreakdown: VatTotals.describe('Amount of the sale by rate, cents.'),
  items: z.array(
    z.strictObject({
      itemLineId: z.string(),
      ean: z.string().optional(),
      name: z.string(),
      quantity: z.int(),
      vat: z.int(),
      priceUnit: z.int().describe('Cents. Negative on a coupon line.'),
      listPriceUnit: z.int().optional().describe('Price of the store, if the client set another price.'),
      priceReason: z.enum(PRICE_REASONS).optional(),
      totalCent: z.int(),
      refundedCent: z
        .int()
        .describe(
          'Share of the refunds in this line: first refunds that name the line, then its part of those that name none.',
        ),
      depositOf: z.string().optional().describe('The line that this deposit belongs to.'),
    }),
  ),
})
export type Sale = z.infer<typeof Sale>
