import { z } from 'zod'
import { findingsOf, findingText } from '../../policy/findings.ts'
import { dayOf } from '../analytics/days.ts'
import type { PushedRecord, PushFault } from './connector.ts'
import { VendorFault } from './vendor-fault.ts'

/** A sale as it is written to systems that know sales: it was paid, and nothing of it has gone back. */
export interface Transaction {
  readonly id: string
  /** ISO 8601 in UTC. */
  readonly completedAt: string | undefined
  /** The store's day that it belongs to, for systems that book by days. */
  readonly day: string | undefined
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
  /** Nobody scans a deposit: it has no EAN. */
  readonly isDeposit: boolean
}

const Cents = z.int().min(0)
const Euros = z.number().min(0).max(1_000_000)

const Item = z.looseObject({
  name: z.string().min(1).max(300),
  ean: z.string().max(14).nullish(),
  quantity: z.int().min(1).max(100_000),
  priceUnit: z.number().min(0).max(100_000_000),
  vat: z.number().min(0).max(100).nullish(),
  refundedCent: Cents.nullish(),
  depositOf: z.string().max(128).nullish(),
})

const Sent = z.looseObject({
  transactionId: z.string().min(1).max(60),
  completedAt: z.union([z.iso.datetime({ offset: true }), z.int().min(0).max(Date.parse('9999-12-31'))]).nullish(),
  status: z.enum(['CREATED', 'PENDING_PAYMENT', 'SUCCESS', 'UNLOADED', 'CANCELLED']).nullish(),
  currency: z.string().length(3).nullish(),
  totalCent: Cents.nullish(),
  total: Euros.nullish(),
  refundedCent: Cents.nullish(),
  refunded: Euros.nullish(),
  items: z.array(Item).min(1).max(500),
})
type Sent = z.output<typeof Sent>

/**
 *   an item of exportSalesData (cents) ──────────────────────────────┐
 *   a purchase of the API (EUR) ─ its receipt: EAN and VAT of lines ─┼─▶ Transaction, or what is wrong with it
 *   its transaction data form (cents; id, times in ms) ──────────────┘
 */
export function readTransaction(
  record: PushedRecord,
  index: number,
): { transaction: Transaction } | { fault: PushFault } {
  const { at, form } = plainForm(record)
  const read = Sent.safeParse(form)
  if (!read.success) {
    const [finding] = findingsOf(read.error.issues, form)
    const there = finding && { ...finding, path: [...at, ...finding.path] }
    return {
      fault: {
        index,
        field: there?.path.join('.') ?? '',
        code: 'invalid',
        message: there ? findingText(there) : 'invalid',
      },
    }
  }
  const refused = refusalOf(read.data)
  if (refused) return { fault: { index, ...refused, field: [...at, refused.field].join('.') } }
  return { transaction: transactionOf(read.data) }
}

type Fields = Readonly<Record<string, unknown>>

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function plainItem(item: unknown): unknown {
  return isFields(item) ? { ...item, priceUnit: item['priceUnit'] ?? item['price'] } : item
}

/** A purchase under the names of the export, and where in the record its fields stand. */
function plainForm(record: PushedRecord): { at: string[]; form: Fields } {
  const { receipt } = record
  const isWrapped = isFields(receipt) && Array.isArray(receipt['items'])
  const { items, ...rest } = isWrapped ? receipt : record
  const form = {
    ...rest,
    transactionId: rest['transactionId'] ?? rest['purchaseId'] ?? rest['id'],
    completedAt: rest['completedAt'] ?? rest['timestamp'],
    items: Array.isArray(items) ? items.map(plainItem) : items,
  }
  return { at: isWrapped ? ['receipt'] : [], form }
}

/**
 * What is no sale, or not all of it any more. These systems are told of sales only: with the sale alone their books would be too high,
 * and a smaller sale would be none that there was (its receipt and its day's closing say otherwise).
 */
function refusalOf({ status, refundedCent, refunded, items }: Sent): Omit<PushFault, 'index'> | undefined {
  if (status === 'CREATED' || status === 'PENDING_PAYMENT')
    return { field: 'status', code: 'not_paid', message: 'nobody has paid this purchase: there is no sale to write' }
  if (status === 'CANCELLED')
    return { field: 'status', code: 'taken_back', message: 'the purchase was taken back: there is no sale to write' }
  const message = 'a part of what was paid has gone back: book the sale and its refund by hand'
  if ((refundedCent ?? 0) > 0) return { field: 'refundedCent', code: 'taken_back', message }
  if ((refunded ?? 0) > 0) return { field: 'refunded', code: 'taken_back', message }
  const line = items.findIndex((item) => (item.refundedCent ?? 0) > 0)
  return line < 0 ? undefined : { field: `items.${line}.refundedCent`, code: 'taken_back', message }
}

function transactionOf({ transactionId, completedAt, currency, totalCent, total, items }: Sent): Transaction {
  const isCents = typeof totalCent === 'number'
  const cents = (amount: number) => (isCents ? Math.round(amount) : Math.round(amount * 100))
  const lines = items.map(({ name, ean, quantity, priceUnit, vat, depositOf }) => ({
    name,
    ean: ean ?? undefined,
    quantity,
    unitCent: cents(priceUnit),
    vat: vat ?? undefined,
    isDeposit: typeof depositOf === 'string',
  }))
  const sum = lines.reduce((all, { quantity, unitCent }) => all + quantity * unitCent, 0)
  const stated = isCents ? totalCent : typeof total === 'number' ? Math.round(total * 100) : sum
  const completed = completedAt === undefined || completedAt === null ? undefined : new Date(completedAt)
  return {
    id: transactionId,
    completedAt: completed?.toISOString(),
    day: completed && dayOf(completed.getTime()),
    currency: currency ?? 'EUR',
    totalCent: stated,
    lines,
  }
}

/**
 * Writes sales one by one. What a system refuses is a fault of that record; what would happen to all of them ends the call,
 * and a repeat must find for itself what was written.
 */
export async function sendTransactions(
  records: readonly PushedRecord[],
  send: (transaction: Transaction, index: number) => Promise<PushFault | undefined>,
): Promise<PushFault[]> {
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
