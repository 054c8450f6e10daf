import { z } from 'zod'
import { findingsOf, findingText } from '../../policy/findings.ts'
import type { PushedRecord, PushFault } from './connector.ts'
import { VendorFault } from './vendor-fault.ts'

/** A sale as it is written to systems that know sales: an item of `exportSalesData` (cents) or a purchase of the API (EUR). */
export interface Transaction {
  readonly id: string
  readonly completedAt: string | undefined
  readonly currency: string
  readonly totalCent: number
  readonly lines: readonly TransactionLine[]
}

export interface TransactionLine {
  readonly name: string
  readonly ean: string | undefined
  readonly quantity: number
  readonly unitCent: number
  readonly vat: number | undefined
}

const Item = z.looseObject({
  name: z.string().min(1).max(300),
  ean: z.string().max(14).nullish(),
  quantity: z.int().min(1).max(100_000),
  priceUnit: z.number().min(0).max(100_000_000),
  vat: z.number().min(0).max(100).nullish(),
})

const Sent = z.looseObject({
  transactionId: z.string().min(1).max(60),
  completedAt: z.iso.datetime({ offset: true }).nullish(),
  currency: z.string().length(3).nullish(),
  totalCent: z.int().min(0).nullish(),
  total: z.number().min(0).max(1_000_000).nullish(),
  items: z.array(Item).min(1).max(500),
})

/** The sale in a record, or what is wrong with it. */
export function readTransaction(record: PushedRecord, index: number): { transaction: Transaction } | { fault: PushFault } {
  const read = Sent.safeParse(record)
  if (!read.success) {
    const [finding] = findingsOf(read.error.issues, record)
    return { fault: { index, field: finding?.path.join('.') ?? '', code: 'invalid', message: finding ? findingText(finding) : 'invalid' } }
  }
  const { transactionId, completedAt, currency, totalCent, total, items } = read.data
  const isCents = typeof totalCent === 'number'
  const cents = (amount: number) => (isCents ? Math.round(amount) : Math.round(amount * 100))
  const lines = items.map(({ name, ean, quantity, priceUnit, vat }) => ({ name, ean: ean ?? undefined, quantity, unitCent: cents(priceUnit), vat: vat ?? undefined }))
  const sum = lines.reduce((all, { quantity, unitCent }) => all + quantity * unitCent, 0)
  const stated = isCents ? totalCent : typeof total === 'number' ? Math.round(total * 100) : sum
  return { transaction: { id: transactionId, completedAt: completedAt ?? undefined, currency: currency ?? 'EUR', totalCent: stated, lines } }
}

/**
 * Writes sales one by one. What a system refuses is a fault of that record; what would happen to all of them ends the call,
 * and a repeat must find for itself what was written.
 */
export async function sendTransactions(records: readonly PushedRecord[], send: (transaction: Transaction, index: number) => Promise<PushFault | undefined>): Promise<PushFault[]> {
  const faults: PushFault[] = []
  for (const [index, record] of records.entries()) {
    const read = readTransaction(record, index)
    try {
      const fault = 'fault' in read ? read.fault : await send(read.transaction, index)
      if (fault) faults.push(fault)
    } catch (error) {
      if (!(error instanceof VendorFault) || error.code !== 'system_refused') throw error
      faults.push({ index, field: '', code: 'refused', message: error.message })
    }
  }
  return faults
}

/** EUR with two decimals, as a text. */
export function decimal(cents: number): string {
  return (cents / 100).toFixed(2)
}

/** Whether an ERP's prices hold the VAT. */
export const PricesSetting = z.enum(['gross', 'net'])

/** The price of one unit in EUR, with its VAT or without. */
export function unitPrice({ unitCent, vat }: TransactionLine, prices: z.output<typeof PricesSetting> = 'gross'): number {
  return prices === 'gross' ? unitCent / 100 : Math.round((unitCent / (1 + (vat ?? 0) / 100)) * 100) / 10_000
}

/** A line names no article that the ERP knows by its EAN. */
export function unknownArticle(index: number, line: number): PushFault {
  return { index, field: `items.${line}.ean`, code: 'unknown_product', message: 'the system has no article with this EAN' }
}
